"""kwire report: one page of a capture, of bounded size, in which nothing of the wire is markup."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostilenames import NAMES, hostile_capture

from kwire.render.report import document

Runs = Callable[..., Any]
CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
ALL = sorted(path for path in CAPTURES.iterdir() if path.name.endswith((".pcap", ".pcap.gz")))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_capture_makes_a_page(path: Path, kwire: Runs) -> None:
    ran = kwire("report", str(path))
    assert ran.status in (0, 1, 3)
    assert len(ran.out) < document.MOST
    page = _Page()
    page.feed(ran.text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.targets) <= set(page.ids)


def test_the_page_holds_what_the_other_commands_say(kwire: Runs) -> None:
    capture = "fixtures/captures/evict-stopped.pcap.gz"
    page = _Page()
    page.feed(kwire("report", capture).text)
    told = " ".join(page.texts)
    assert "2026-11-21 08:16:21 to 2026-11-21 08:16:44 UTC (22.7 s)" in told
    for line in kwire("groups", capture, "--no-timeline", columns=1000).text.splitlines():
        said = re.split(r"  +|→ ", line)[-1].partition(" (frame")[0].strip()
        assert said in told or line.startswith(("billing", "1 group", "  member", "  began", "         frame"))
    assert "HeartbeatResponse v4" in told
    assert "MEMBER_ID_REQUIRED" in told
    assert "kwire decode evict-stopped.pcap.gz --frame 465" in told


def test_many_findings_of_a_detector_are_behind_a_fold(kwire: Runs) -> None:
    page = kwire("report", "fixtures/captures/evict-refused-commits.pcap.gz").text
    before, fold, behind = page.partition("<summary>1 more offset-reset</summary>")
    assert fold
    assert before.count("> offset-reset <") == 3
    assert behind.partition("</details>")[0].count("> offset-reset <") == 1


def test_a_page_goes_to_a_file_and_its_size_is_told(kwire: Runs, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    ran = kwire("report", "fixtures/captures/ipv6.pcap", "-o", str(target))
    assert ran.out == b""
    assert f"{target.stat().st_size:,} bytes to {target}" in ran.err
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_stdin_has_no_diagrams_and_says_so(kwire: Runs) -> None:
    data = (CAPTURES / "evict-stopped.pcap.gz").read_bytes()
    ran = kwire("report", "-", stdin=data)
    assert "need a capture that can be read twice" in ran.text
    assert "<summary>frame" not in ran.text


def test_exchanges_can_be_chosen(kwire: Runs) -> None:
    text = kwire("report", "fixtures/captures/evict-stopped.pcap.gz", "--api", "Fetch").text
    assert "Fetch v16" in text
    assert "Heartbeat v3" not in text


@pytest.mark.slow
def test_its_commands_are_commands_of_kwire(kwire: Runs) -> None:
    capture = "fixtures/captures/evict-stopped.pcap.gz"
    text = unescape(kwire("report", capture).text)
    shapes: dict[tuple[str, ...], list[str]] = {}
    for command, more in [
        *((one, "") for one in re.findall("<code>(kwire [^<]*)</code>", text)),
        *(("kwire read evict-stopped.pcap.gz", one) for one in re.findall('data-m="([^"]*)"', text)),
    ]:
        words = shlex.split(f"{command} {more}")[1:]
        shape = words[0], *(word for word in words if word.startswith("--"))
        shapes.setdefault(shape, [word.replace("evict-stopped.pcap.gz", capture) for word in words])
    assert {"read", "decode", "stats", "groups", "clients", "doctor", "explain"} == {shape[0] for shape in shapes}
    assert {shape: kwire(*words).err for shape, words in shapes.items() if kwire(*words).status not in (0, 1)} == {}


def test_nothing_of_the_wire_is_markup(kwire: Runs, tmp_path: Path) -> None:
    ran = kwire("report", str(hostile_capture(tmp_path)))
    page = _Page()
    page.feed(ran.text)
    assert page.open == []
    allowed = {"script": 1, "style": 1, "svg": page.tags["svg"], "meta": 4}
    for tag in ("script", "style", "img", "iframe", "b64", "link", "object", "base", "form"):
        assert page.tags.get(tag, 0) == allowed.get(tag, 0)
    assert not [name for name in page.attributes if name.startswith("on") or name in ("style", "src", "srcset")]
    assert all(target.startswith("#") for target in page.links)
    shown = " ".join(page.texts)
    assert NAMES[0] in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", ran.text)


def test_of_what_would_be_too_long_there_is_less(kwire: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = str(hostile_capture(tmp_path))
    usual = len(kwire("report", capture).out)
    monkeypatch.setattr(document, "MOST", usual - 10_000)
    assert len(kwire("report", capture).out) <= usual - 10_000


def test_passwords_are_withheld(kwire: Runs) -> None:
    for name in ("sasl.pcap.gz", "sasl-v0.pcap"):
        assert "alice-secret" not in kwire("report", f"fixtures/captures/{name}").text


VOID = {"br", "hr", "meta", "input", "link"}


class _Page(HTMLParser):
    """Tags, attributes, ids, links and texts of a page; open: elements that were not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []

    @property
    def targets(self) -> list[str]:
        return [link[1:] for link in self.links if link.startswith("#")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)
