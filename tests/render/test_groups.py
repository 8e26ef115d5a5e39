"""Groups as text of every width, as SVG and HTML, as JSON; what comes from the wire is shown, never obeyed."""

from __future__ import annotations

import json
import xml.dom.minidom
from pathlib import Path
from typing import Any

import pytest
from analyze.test_worse_fixtures import to_broker
from packetsmade import pcap
from scenes import packets_of

from kwire.analyze.findings import Finding, Reference
from kwire.render.groups import findings_lines
from kwire.render.lines import plain

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "fixtures" / "captures").glob("*.pcap*"))
every = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
REF = Reference("a.pcap", 118, 0, "c>b#1", "HeartbeatResponse v4")


def shown(*findings: Finding, width: int = 60, everything: bool = False) -> list[str]:
    return [plain(line) for line in findings_lines([("g", one) for one in findings], width, everything)]


def test_a_finding_with_advice_and_frames() -> None:
    found = Finding(
        "error", "c1: evicted at 9.200, 6.0 s after its last heartbeat (frame 118)", (REF,), "look at the process"
    )
    assert shown(found) == [
        "",
        "error    c1: evicted at 9.200, 6.0 s after its last",
        "         heartbeat (frame 118)",
        "         → look at the process",
        "         frame 118",
    ]


def test_the_worst_come_first_and_notes_take_little_room() -> None:
    lines = shown(Finding("note", "one"), Finding("note", "two", (REF,)), Finding("error", "three"))
    assert lines == ["", "error    three", "", "note     one", "note     two (frame 118)"]


def test_only_so_many_findings_unless_all_are_asked_for() -> None:
    many = [Finding("note", f"number {number}") for number in range(20)]
    assert shown(*many)[-1] == "… 8 more findings (--all)"
    assert len([line for line in shown(*many, everything=True) if line]) == 20


def test_of_requests_alone_nobody_says_that_nothing_is_wrong(tmp_path: Path, kwire: Any) -> None:
    """The whole capture has an eviction."""
    packets = [packet.data for packet in packets_of(ROOT / "fixtures/captures/classic.pcap.gz") if to_broker(packet)]
    path = str(pcap(tmp_path / "requests.pcap", packets, link=1))
    text = kwire("groups", path).text
    assert text.startswith("1 group · no answers in the capture: what went wrong would not be seen")
    assert "nothing wrong" not in text + kwire("groups", path, "--format", "html").text


def test_control_characters_are_spelled() -> None:
    assert shown(Finding("error", "c\x1b[31m: lost")) == ["", "error    c\\x1b[31m: lost"]


@every
def test_no_line_is_wider_than_the_terminal(path: Path, kwire: Any) -> None:
    for width in (60, 80, 100, 160):
        ran = kwire("groups", str(path), "--all", columns=width)
        assert [line for line in ran.text.splitlines() if len(line) > width] == []


@every
def test_pictures_are_well_formed(path: Path, kwire: Any) -> None:
    ran = kwire("groups", str(path), "--format", "svg")
    root = xml.dom.minidom.parseString(ran.text).documentElement
    assert root is not None
    assert root.tagName == "svg"


@every
def test_json_has_all_that_text_has(path: Path, kwire: Any) -> None:
    text = kwire("groups", str(path), "--all", columns=2000).text
    for group in json.loads(kwire("groups", str(path), "--format", "json").text)["groups"]:
        assert group["group"] in text
        for finding in group["findings"]:
            assert " ".join(finding["what"].split()) in " ".join(text.split())
        for member in group["members"]:
            assert member["name"] in text


def test_the_text_of_a_group(kwire: Any) -> None:
    text = kwire("groups", "fixtures/captures/evict-stopped.pcap.gz", "--no-timeline", columns=90).text
    assert text[text.index("  member") :].splitlines() == [
        "  member  host       session / rebalance  heartbeats",
        "  paused  127.0.0.1  6,000 / 300,000 ms   7, every 1.0 s, at most 1.0 s · 2 member ids",
        "  steady  127.0.0.1  6,000 / 300,000 ms   20, every 1.0 s, at most 1.0 s",
        "",
        "   began    took  gen  what",
        "   0.655   79 ms    1  paused joined; 4 partitions",
        "   2.607  242 ms    2  steady joined; paused joined last, after 233 ms; led by paused;",
        "                       partitions: paused 2, steady 2; 2 moved: orders-2,3 paused → steady",
        "  12.853   52 ms    3  paused was evicted, 6.0 s after its last heartbeat (frame 306); 4",
        "                       partitions; 2 moved: orders-0,1 paused → steady",
        "  17.245  673 ms    4  paused came back; steady joined last, after 668 ms; led by steady;",
        "                       partitions: paused 2, steady 2; 2 moved: orders-0,1 steady → paused",
        "  19.642  295 ms    5  paused left; 4 partitions; 2 moved: orders-0,1 paused → steady",
        "  22.637            -  empty: steady left at 22.637",
    ]


def test_the_page_says_what_happened(kwire: Any) -> None:
    page = kwire("groups", "fixtures/captures/evict-stopped.pcap.gz", "--format", "html").text
    assert '<li><b class="error">error</b> <b>billing</b> paused: UNKNOWN_MEMBER_ID at 17.234' in page
    assert page.count("<svg") == 2  # for a wide window and for a phone, of which a page shows one


def test_json_of_a_generation(kwire: Any) -> None:
    ran = kwire("groups", "fixtures/captures/evict-stopped.pcap.gz", "--format", "json")
    (group,) = json.loads(ran.text)["groups"]
    third = group["generations"][2]
    assert third["number"] == 3
    assert third["leader"] == "steady"
    assert third["assignment"] == {"steady": {"orders": [0, 1, 2, 3]}}
    assert third["causes"][0]["kind"] == "evicted"
    assert [ref["frame"] for ref in third["causes"][0]["evidence"]] == [306, 185]
    assert third["moves"] == [
        {"topic": "orders", "partition": part, "from": "paused", "to": "steady"} for part in (0, 1)
    ]
