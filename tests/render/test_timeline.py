"""Timelines in characters: lanes, ticks, bands and marks stand where their times are."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.analyze.findings import TimeFormat
from kwire.render.lines import plain
from kwire.render.timeline import Band, Chart, Lane, Mark, timeline_lines

SECOND = 1_000_000_000


def chart(*lanes: Lane, bands: tuple[Band, ...] = (), end: int = 30, hidden: int = 0) -> Chart:
    return Chart("g", TimeFormat(0), 0, end * SECOND, lanes, bands, hidden)


def lane(
    spells: tuple[tuple[int, int], ...], beats: tuple[int, ...] = (), marks: tuple[tuple[int, str], ...] = ()
) -> Lane:
    return Lane(
        "c1",
        tuple((start * SECOND, end * SECOND) for start, end in spells),
        tuple((at * SECOND, 1) for at in beats),
        tuple(Mark(at * SECOND, kind, "") for at, kind in marks),
    )


def drawn(shown: Chart, width: int = 42) -> list[str]:
    """One column is a second: 30 columns behind a label of 10."""
    return [plain(line) for line in timeline_lines(shown, width)]


def test_heartbeats_are_ticks_where_they_came() -> None:
    assert drawn(chart(lane(((2, 10),), (4, 6, 8))))[2] == "c1            ──┴─┴─┴──"


@pytest.mark.parametrize(("kind", "glyph"), [("joins", ">"), ("leaves", "<"), ("out", "×"), ("error", "!")], ids=str)
def test_marks(kind: str, glyph: str) -> None:
    assert drawn(chart(lane(((0, 5),), (), ((5, kind),))))[2] == f"c1          ─────{glyph}"


def test_bands_cover_members_only() -> None:
    shown = chart(lane(((0, 4), (10, 12))), bands=(Band(3 * SECOND, 11 * SECOND, 2, "generation 2"),))
    assert drawn(shown)[1:3] == ["generation     2", "c1          ───▒▒     ▒▒─"]


def test_an_eviction_stands_out_of_its_band() -> None:
    shown = chart(lane(((0, 5),), (), ((5, "out"),)), bands=(Band(4 * SECOND, 6 * SECOND, 2, "generation 2"),))
    assert drawn(shown)[1:3] == ["generation      2", "c1          ────▒×"]


def test_times_over_their_columns_and_the_legend() -> None:
    lines = drawn(chart(lane(((0, 30),))), 112)
    assert lines[0].split() == ["0.0", "4.2", "8.5", "12.8", "17.1", "21.4", "25.7", "30.0"]
    assert lines[0].index("30.0") == 108
    assert lines[-1] == (
        "┴ heartbeats  ▒ rebalance  > joins  < leaves  × evicted or replaced  ! error; a column is 300 ms"
    )


def test_hidden_members_are_counted() -> None:
    assert "  … 7 more members (--all)" in drawn(chart(lane(((0, 5),)), hidden=7))[3]


WANTED = [
    "              0.4            4.9            9.3            13.7           18.2        22.6",
    "  generation  1      2                                  3              4       5",
    "  paused      >───┴──▒▒──┴──┴───┴──┴────────────────────×              ! ▒───┴─<",
    "  steady             >▒──┴──┴───┴──┴───┴──┴───┴──┴───┴──▒───┴──┴──┴───┴▒▒▒───┴─▒▒───┴──┴─<",
    "  ┴ heartbeats  ▒ rebalance  > joins  < leaves  × evicted or replaced  ! error",
]


def test_the_timeline_of_a_capture(kwire: Any) -> None:
    text = kwire("groups", "fixtures/captures/evict-stopped.pcap.gz", columns=90).text
    assert text.splitlines()[-5:] == WANTED
