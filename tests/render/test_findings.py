"""Findings for a person and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from scenes import START, Packet, Scene, cut, diagnosed, packets_of

from kwire.analyze.consequences import with_causes
from kwire.analyze.doctor import Diagnosis, Doctor
from kwire.analyze.findings import Finding
from kwire.analyze.live import ToldFinding
from kwire.render.findings import diagnosis_json, diagnosis_lines, explain_lines, list_lines, news_lines, told_lines
from kwire.render.lines import Line, plain

BEAT = {"GroupId": "billing\x1b[31m", "MemberId": "m", "GenerationId": 1}
NODE = frozenset({"c/1"})


def diagnosis() -> Diagnosis:
    scene = Scene()
    line = scene.connect(0)
    for at in (1, 2):
        line.ask(at, "Heartbeat", 3, BEAT, {"ErrorCode": 30})
    return diagnosed(scene.packets, ["acl-denied", "capture-quality"])


def test_text_in_eighty_columns() -> None:
    lines = [plain(line) for line in diagnosis_lines(diagnosis(), 80)]
    assert max(map(len, lines)) <= 80
    assert lines[0] == "2.0 s from 2023-11-14 22:13:20 UTC · 1 broker · 1 client · 4 messages"
    text = "\n".join(lines)
    assert "error    acl-denied · 1.001 to 2.001 · 2 times" in text
    assert "\x1b" not in text
    assert "packets 4, 6" in text
    assert "looked for and not found\n  capture-quality  a direction" in text


def test_json_is_a_finding_a_line() -> None:
    (line,) = diagnosis_json(diagnosis())
    row = json.loads(line)
    assert list(row) == [
        "detector", "severity", "about", "first_time", "last_time", "count", "packets", "text", "advice", "otherwise",
        "caused_by", "caused_at", "among",
    ]  # fmt: skip
    assert row["packets"] == ["4", "6"]
    assert (row["detector"], row["severity"], row["count"]) == ("acl-denied", "error", 2)
    assert row["last_time"] - row["first_time"] == 1_000_000_000


def test_what_follows_from_an_event_stands_under_it() -> None:
    event = Finding("error", "b:1 is gone", detector="broker-gone", time=START, about={"broker": "b:1"}, brokers=NODE)
    moved = Finding("note", "1 partition moved", advice="See why.", detector="leader-moved", time=START, brokers=NODE)
    found = replace(diagnosis(), findings=with_causes([moved, event]))
    lines = [plain(line) for line in diagnosis_lines(found, 80)]
    at = lines.index("error    broker-gone · at 0.000")
    assert lines[at + 1 : at + 5] == [
        "         b:1 is gone", "         in its wake",
        "         note     leader-moved · at 0.000", "                  1 partition moved",
    ]  # fmt: skip
    assert not any("See why." in line for line in lines)
    rows = [json.loads(line) for line in diagnosis_json(found)]
    assert [(row["detector"], row["caused_by"], row["caused_at"]) for row in rows] == [
        ("leader-moved", "broker-gone", START), ("broker-gone", None, None),
    ]  # fmt: skip
    told = [plain(line) for line in told_lines(ToldFinding(found.findings[0]), 80)]
    assert told[-1] == "         in the wake of broker-gone of 22:13:20.000"


def test_the_list_and_the_page_of_a_detector() -> None:
    assert any("thresholds: least 1" in plain(line) for line in list_lines(["acl-denied"], 80))
    text = "\n".join(plain(line) for line in explain_lines("acl-denied", 80))
    assert "least 1 (--set acl-denied.least=…)" in text
    assert "What to do" in text


def test_without_a_message_of_kafka_nothing_is_said_to_be_absent() -> None:
    """Refused connections alone show nothing of clients, groups or topics."""
    scene = Scene()
    for at in range(0, 20, 2):
        scene.dial(at)
    lines = [plain(line) for line in diagnosis_lines(diagnosed(scene.packets), 80)]
    assert lines[-1] == "no message of Kafka's was seen: nothing else can be judged"
    assert not any("not found" in line for line in lines)
    assert any(line.startswith("error    broker-gone") for line in lines)
    assert [plain(line) for line in diagnosis_lines(Doctor().diagnose(), 80)] == ["nothing seen"]


def test_the_first_line_says_what_the_capture_lacks() -> None:
    fixtures = Path(__file__).parents[2] / "fixtures"
    first = {
        name: plain(joined_head(packets_of(fixtures / name)))
        for name in ("captures/tls.pcap", "doctor/controller-change.pcap.gz", "doctor/acl-denied.pcap")
    }
    assert first["captures/tls.pcap"].endswith("9 connections · 7 connections in TLS that cannot be read")
    assert first["doctor/controller-change.pcap.gz"].endswith("9 connections begun before the capture")
    assert first["doctor/acl-denied.pcap"].endswith("4 connections · nothing missing")
    cut_short = plain(joined_head(cut(packets_of(fixtures / "doctor/acl-denied.pcap"), 96)))
    assert "messages cut by the snaplen" in cut_short


def joined_head(packets: list[Packet]) -> Line:
    return diagnosis_lines(diagnosed(packets), 300)[0]


def test_news_are_told_of_many_in_few_lines() -> None:
    found = Finding("note", "a line", detector="capture-quality")
    lines = [plain(line) for line in news_lines([ToldFinding(found)] * 25, 80)]
    assert sum("a line" in line for line in lines) == 20
    assert lines[-1].strip() == "… 5 more, told at the end"
    assert news_lines([], 80) == []
