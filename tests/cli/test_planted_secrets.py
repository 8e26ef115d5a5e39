"""A password planted in small captures is in no output: whole, cut anywhere, or with any one bit flipped."""

from __future__ import annotations

import random
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from planted import (
    FORMATS,
    LOGINS,
    PASSWORD,
    TABLES,
    TALKS,
    VIEWS,
    arguments,
    controller,
    cut,
    flipped,
    holed,
    leaks,
    packets,
    pcap,
)

from kwire.schema.registry import builtin

SOME = 40  # damaged captures of each kind; a run over many thousands of them found nothing
talks = pytest.mark.parametrize("talk", TALKS)


@talks
def test_every_view_would_show_it_when_asked(talk: str, kwire: Any, tmp_path: Path) -> None:
    path = tmp_path / "whole.pcap"
    path.write_bytes(pcap(packets([TALKS[talk]])))
    for view in VIEWS[:5]:
        assert leaks(kwire(*arguments(view, path), "--show-secrets").text), view


@talks
def test_no_view_of_a_whole_capture_shows_it(talk: str, kwire: Any, tmp_path: Path) -> None:
    path = tmp_path / "whole.pcap"
    path.write_bytes(pcap(packets([TALKS[talk]])))
    for view in (*VIEWS, *TABLES):
        ran = kwire(*arguments(view, path))
        assert leaks(ran.text + ran.err) == [], view


@talks
def test_no_view_of_a_cut_capture_shows_it(talk: str, kwire: Any, tmp_path: Path) -> None:
    _try(list(cut(packets([TALKS[talk]]))), talk, kwire, tmp_path)


@talks
def test_no_view_of_a_capture_with_a_flipped_bit_shows_it(talk: str, kwire: Any, tmp_path: Path) -> None:
    _try(list(flipped(packets([TALKS[talk]]), range(8))), talk, kwire, tmp_path)


@talks
def test_no_view_of_a_capture_with_a_size_that_fits_a_hole_shows_it(talk: str, kwire: Any, tmp_path: Path) -> None:
    _try(list(holed(TALKS[talk])), talk, kwire, tmp_path, 6)


def _try(captures: list[tuple[str, bytes]], seed: str, kwire: Any, folder: Path, some: int = SOME) -> None:
    rng = random.Random(seed)
    for where, data in rng.sample(captures, some):
        path = folder / "damaged.pcap"
        path.write_bytes(data)
        for view in rng.sample(VIEWS, 3):
            ran = kwire(*arguments(view, path))
            assert leaks(ran.text + ran.err) == [], (where, view)


def test_columns_of_python_do_not_show_it(tmp_path: Path) -> None:
    import kwire

    path = tmp_path / "whole.pcap"
    path.write_bytes(pcap(packets(TALKS.values())))
    assert leaks(str(kwire.to_arrow(path, "bodies").to_pylist())) == []


def test_thousands_of_fetches_of_the_metadata_log_do_not_show_it(kwire: Any, tmp_path: Path) -> None:
    """Enough of them that the fast path takes them."""
    first, *_, by_name, by_id = controller()[:5]
    path = tmp_path / "many.pcap"
    path.write_bytes(pcap(packets([[first, *[by_name, by_id] * 100]])))
    ran = kwire("read", str(path), "--format", "json", "--body")
    assert ran.text.count('"api": "Fetch"') == 400
    assert leaks(ran.text) == []


# ---------------------------------------------------------------- bytes of which nothing else is known

ASKED = [
    (talk, frame)
    for talk, pairs in {**LOGINS, "controller": controller()}.items()
    for frame in dict.fromkeys(asked for asked, _ in pairs)
    if "bare" not in talk and leaks(frame.decode("latin-1"))
]


@pytest.mark.parametrize(("talk", "frame"), ASKED, ids=[f"{talk}-{at}" for at, (talk, _) in enumerate(ASKED)])
def test_a_cut_request_does_not_show_it(talk: str, frame: bytes, kwire: Any) -> None:
    name = f"{builtin().api(int.from_bytes(frame[4:6], 'big')).name}Request"
    version = str(int.from_bytes(frame[6:8], "big"))
    rng = random.Random(talk)
    for size in rng.sample(range(frame.index(PASSWORD[:8]) + 6, len(frame)), 8):
        for data in (frame[:size], frame[4:size]):
            for options in ((), ("--as", name), ("--as", name, "-v", version)):
                form = rng.choice(FORMATS)
                ran = kwire("decode", "--format", form, "--full", *options, stdin=data)
                assert leaks(ran.text + ran.err) == [], (size, options, form)


@pytest.mark.parametrize("talk", LOGINS)
@pytest.mark.parametrize("side", [0, 1])
def test_frames_in_a_row_with_a_flipped_bit_do_not_show_it(talk: str, side: int, kwire: Any) -> None:
    data = b"".join(chain(pair[side] for pair in LOGINS[talk]))
    rng = random.Random(talk)
    for at in rng.sample(range(len(data)), 30):
        damaged = data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
        ran = kwire("decode", "--format", rng.choice(FORMATS), "--full", stdin=damaged)
        assert leaks(ran.text + ran.err) == [], at
