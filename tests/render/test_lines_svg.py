"""SVG: well-formed, with every line at its place, and nothing from elsewhere."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from kwire.render.lines import Line
from kwire.render.lines_svg import ADVANCE, LEADING, MARGIN, SIZE, svg

SVG = "{http://www.w3.org/2000/svg}"
LINES: list[Line] = [
    [("HeartbeatResponse v4", "title"), (" · 16 bytes", "dim")],
    [],
    [("   13  ", "offset"), ("ErrorCode  ", "name"), ("27 <&> \"'", "error"), ("   ", "")],
]


def test_an_svg_is_xml_and_its_pieces_stand_in_their_columns() -> None:
    root = ElementTree.fromstring(svg(LINES, "a <title>"))
    assert root.findtext(f"{SVG}title") == "a <title>"
    pieces = [(text.get("x"), text.get("y"), text.get("textLength"), text.text) for text in root.iter(f"{SVG}text")]

    def at(column: int, row: int, length: int, text: str) -> tuple[str, str, str, str]:
        return f"{MARGIN + ADVANCE * column:g}", f"{MARGIN + LEADING * row + SIZE}", f"{ADVANCE * length:g}", text

    assert pieces == [
        at(0, 0, 20, "HeartbeatResponse v4"),
        at(21, 0, 10, "· 16 bytes"),
        at(3, 2, 2, "13"),
        at(7, 2, 9, "ErrorCode"),
        at(18, 2, 9, "27 <&> \"'"),
    ]


def test_an_svg_is_as_large_as_its_lines() -> None:
    root = ElementTree.fromstring(svg(LINES, ""))
    width, height = 2 * MARGIN + ADVANCE * 31, 2 * MARGIN + LEADING * 3
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == (
        f"{width:g}",
        f"{height}",
        f"0 0 {width:g} {height}",
    )


def test_every_style_that_is_used_is_defined_for_dark_and_light() -> None:
    text = svg(LINES, "")
    used = set(re.findall(r'class="(\w+)"', text))
    assert {"title", "dim", "offset", "error"} <= used
    assert all(text.count(f".{style} {{") == 2 for style in used)
    assert text.count("prefers-color-scheme: light") == 1


def test_nothing_is_loaded_or_run() -> None:
    hostile: list[Line] = [[("<script>alert(1)</script><img src=x>", "value"), ("]]>", "<b>")]]
    text = svg(hostile, "</title><script>")
    assert not re.search(r"<script|<img|<b>|url\(|@import|<link|href=|src=\w", text.replace("src=x&gt;", ""))


def test_no_lines_make_an_empty_document() -> None:
    assert "empty" in svg([], "empty")
