"""Findings in order of their weight, times as text, references as rows."""

from __future__ import annotations

import pytest

from kwire.analyze.findings import Finding, Reference, TimeFormat, lasted, worst_first

START = 1_700_000_000_000_000_000
REF = Reference("a.pcap", 118, START, "c>b#1", "HeartbeatResponse v4")


def test_worst_come_first_then_the_earliest() -> None:
    given = [
        Finding("note", "a", time=1),
        Finding("error", "b", time=9),
        Finding("warning", "c"),
        Finding("error", "d"),
    ]
    assert [finding.what for finding in worst_first(given)] == ["d", "b", "c", "a"]


def test_rows_have_evidence() -> None:
    assert Finding("error", "lost", (REF,), "look", "group g", 5).row() == {
        "severity": "error",
        "subject": "group g",
        "time": 5,
        "what": "lost",
        "words": "",
        "advice": "look",
        "evidence": [
            {
                "capture": "a.pcap",
                "frame": 118,
                "time": START,
                "connection": "c>b#1",
                "message": "HeartbeatResponse v4",
            }
        ],
    }


@pytest.mark.parametrize(
    ("since", "text"),
    [(0, "0.000"), (12_031_999_999, "12.031"), (999_999, "0.000"), (-1_500_000_000, "-1.500"), (10**12, "1000.000")],
)
def test_clock_counts_from_the_start(since: int, text: str) -> None:
    assert TimeFormat(START)(START + since) == text


def test_clock_without_a_start_gives_the_time_of_day() -> None:
    assert TimeFormat()(START + 1_000_000) == "22:13:20.001"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (400_000, "0.4 ms"),
        (12_000_000, "12 ms"),
        (6_000_000_000, "6.0 s"),
        (119_000_000_000, "119.0 s"),
        (270_000_000_000, "4.5 min"),
        (7_560_000_000_000, "2.1 h"),
    ],
)
def test_lengths_of_time(ns: int, text: str) -> None:
    assert lasted(ns) == text
