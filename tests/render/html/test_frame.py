"""The frame of pages: one file that loads nothing, runs nothing but its own, and says at the top what it is about."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from kwire.render.colors import COLORS
from kwire.render.html.frame import common_style, digest, page, policy, pre
from kwire.render.html.markup import element
from kwire.render.lines import Line, plain

LINES: list[Line] = [
    [("HeartbeatResponse v4", "title"), (" · 16 bytes", "dim")],
    [],
    [("   13  ", "offset"), ("ErrorCode  ", "name"), ("27 <&> \"'", "error"), ("   ", "")],
]


def test_lines_stay_as_they_are() -> None:
    parser = _Text()
    parser.feed(page("a <title>", pre(LINES)))
    assert parser.texts["title"] == "a <title>"
    assert parser.texts["pre"].splitlines() == [plain(line) for line in LINES]


def test_what_a_page_is_about_stands_at_its_top() -> None:
    parser = _Text()
    parser.feed(page("kwire decode", element("p", "x"), facts=[("capture", "a<b>.pcap"), ("packet", 17)]))
    assert parser.texts["h1"] == "kwire decode"
    assert (parser.texts["dt"], parser.texts["dd"]) == ("capturepacket", "a<b>.pcap17")


def test_every_style_has_a_color_for_dark_light_and_paper() -> None:
    style = common_style()
    for name in COLORS:
        assert len(re.findall(rf"--{name or 'text'}: #", style)) == 3
        assert not name or f".{name} {{" in style


def test_the_policy_allows_the_page_its_own_style_and_script_alone() -> None:
    made = page("t", element("p"), script="let a = 1")
    told = re.search(r'Content-Security-Policy" content="([^"]*)"', made)
    assert told
    rules = dict(rule.split(" ", 1) for rule in told[1].replace("&#x27;", "'").split("; "))
    style = re.search("<style>(.*?)</style>", made, re.DOTALL)
    assert style
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == digest(style[1])
    assert rules["script-src"] == digest("let a = 1")


def test_a_page_without_a_script_runs_none() -> None:
    assert "script-src" not in policy("", "")
    assert "<script" not in page("t", element("p"))


def test_the_policy_can_allow_more() -> None:
    made = policy("", "x", {"connect-src": "'self'", "script-src": "'wasm-unsafe-eval'"})
    assert "connect-src 'self'" in made
    assert f"script-src {digest('x')} 'wasm-unsafe-eval'" in made


def test_nothing_from_the_wire_loads_or_runs() -> None:
    hostile: list[Line] = [[("<script>alert(1)</script><img src=x>", "value"), ("]]>", "<b>")]]
    made = page("</title><script>", pre(hostile), facts=[("</dl>", "<iframe src=//x>")])
    assert not re.search(r"<script|<img|<b>|<iframe|url\(|@import|<link", made)


class _Text(HTMLParser):
    """Collects the text inside each kind of tag."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.texts[tag] = self.texts.get(tag, "") + data
