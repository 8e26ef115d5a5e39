"""Results as tables that fit, as blocks where they do not, as markdown."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.render.lines import plain
from kwire.render.results import markdown, result_lines


def _shown(columns: list[str], kinds: list[str], rows: list[tuple[Any, ...]], width: int | None) -> list[str]:
    return [plain(line) for line in result_lines(columns, kinds, rows, len(rows), width)]


def test_long_text_is_cut_and_numbers_are_not() -> None:
    lines = _shown(["name", "n"], ["text", "number"], [("x" * 100, 123456789), ("y", None)], 40)
    assert lines == [
        f"name{'n':>36}",
        f"{'x' * 14}…{'x' * 14}  123456789",
        f"y{'NULL':>39}",
        "2 rows",
    ]


def test_columns_that_have_no_room_become_blocks() -> None:
    names = [f"column{at}" for at in range(9)]
    lines = _shown(names, ["text"] * 9, [("x" * 90,) * 9], 60)
    assert lines[0] == "row 1"
    assert lines[1] == "  column0  " + "x" * 48 + "…"
    assert all(len(line) <= 60 for line in lines)


def test_times_are_clock_times_with_the_day_where_there_are_several() -> None:
    first, later = 1795227371331748000, 1795327371331748123
    assert _shown(["time"], ["time"], [(first,)], 80)[1] == "02:16:11.331748"
    assert _shown(["time"], ["time"], [(first,), (later,)], 80)[2] == "2026-11-22 06:02:51.331748"
    assert _shown(["time"], ["time"], [(1 << 62,), (-(1 << 62),)], 80)[-1] == "2 rows"


def test_null_is_dim() -> None:
    assert result_lines(["a"], ["text"], [(None,)], 1)[1] == [("NULL", "dim")]


def test_what_is_left_out_is_counted() -> None:
    assert plain(result_lines(["a"], ["number"], [(1,)], 1234)[-1]) == "the first 1 of 1,234 rows"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain_text", "plain_text"),
        ("a|b", "a\\|b"),
        ("x\n|", "`x\\n\\|`"),
        ("a\\|b", "`a\\\\|b`"),
        ("<script>alert(1)</script>", "`<script>alert(1)</script>`"),
        ("[click](http://evil)", "`[click](http://evil)`"),
        ("see http://evil", "`see http://evil`"),
        ("WWW.evil.example", "`WWW.evil.example`"),
        ("me@evil.example", "`me@evil.example`"),
        ("&lt;b&gt;", "`&lt;b&gt;`"),
        ("billing*", "`billing*`"),
        ("`<b>`", "`` `<b>` ``"),
        ("a``<b>", "```a``<b>```"),
        ("", ""),
    ],
)
def test_markdown_holds_no_html_and_no_links(text: str, shown: str) -> None:
    assert list(markdown([text], [[text]], [text])) == [f"| {shown} |", "| ---: |", f"| {shown} |"]
