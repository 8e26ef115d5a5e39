"""kwire stats: counts that agree with what kwire read lists, for every width and filter."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "fixtures" / "captures").glob("*.pcap*"))
CLASSIC, FRANZ = "fixtures/captures/classic.pcap.gz", "fixtures/captures/franz.pcap.gz"
NOT_KAFKA, SHARE = "fixtures/captures/notkafka.pcap", "fixtures/captures/share.pcap"
every = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])


def _document(kwire: Any, *arguments: str) -> dict[str, Any]:
    document = json.loads(kwire("stats", "--format", "json", *arguments).text)
    assert isinstance(document, dict)
    return document


def _rows(kwire: Any, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kwire("read", "--format", "json", *arguments).text.splitlines()]


@every
def test_no_line_is_wider_than_the_terminal(path: Path, kwire: Any) -> None:
    for width in (60, 80, 120):
        for options in ((), ("--all",)):
            ran = kwire("stats", str(path), *options, columns=width)
            assert [line for line in ran.text.splitlines() if len(line) > width] == []


@every
def test_its_counts_are_those_of_read(path: Path, kwire: Any) -> None:
    rows, found = _rows(kwire, str(path)), _document(kwire, str(path))
    requests = [row for row in rows if row["kind"] == "request"]
    answers = [row for row in rows if row["kind"] == "response"]
    assert found["total"]["sent_bytes"] == sum(row["size"] + 4 for row in requests)
    assert found["total"]["got_bytes"] == sum(row["size"] + 4 for row in answers)
    assert found["total"]["errors"] == Counter(row["error"] for row in answers if row["errors"])
    apis = {row["api"]: row["count"] for row in found["apis"]}
    assert sum(apis.values()) == found["total"]["count"]
    named = Counter(f"{row['api']} v{row['api_version']}" for row in requests if row["api_version"] is not None)
    assert {name: count for name, count in apis.items() if name in named} == named
    longest = max((row["latency_ns"] for row in answers if row["latency_ns"] is not None), default=None)
    assert found["total"]["max_ns"] == longest


def test_filters_leave_their_part(kwire: Any) -> None:
    options = (CLASSIC, "--api", "Heartbeat", "--client-id", "classic-c1")
    wanted = [row for row in _rows(kwire, *options) if row["kind"] == "request"]
    found = _document(kwire, *options)
    assert found["total"]["count"] == len(wanted)
    assert [row["api"] for row in found["apis"]] == ["Heartbeat v3"]
    assert [row["client"] for row in found["clients"]] == ["classic-c1"]


def test_topics_of_incremental_fetches_are_counted(kwire: Any) -> None:
    whole = {row["topic"]: row for row in _document(kwire, FRANZ)["topics"]}
    slow = {row["topic"]: row for row in _document(kwire, FRANZ, "--api", "Fetch", "--slower", "100ms")["topics"]}
    assert set(slow) <= set(whole)
    assert sum(row["count"] for row in slow.values()) > 3


def test_several_captures_are_counted_together(kwire: Any) -> None:
    counts = [_document(kwire, path)["total"]["count"] for path in (CLASSIC, SHARE)]
    assert _document(kwire, CLASSIC, SHARE)["total"]["count"] == sum(counts)


def test_connections_that_are_not_kafka_are_named(kwire: Any) -> None:
    text = kwire("stats", NOT_KAFKA, columns=120).text
    assert "  127.0.0.1:46714>127.0.0.1:9092#1  HTTP request\n" in text
    found = Counter(row["what"] for row in _document(kwire, NOT_KAFKA)["connections"])
    assert (found["Kafka"], found["not recognized"], found["refused"]) == (2, 3, 1)


def test_all_shows_every_row(kwire: Any) -> None:
    short, long = (
        kwire("stats", "fixtures/captures/oldjava.pcap.gz").text,
        kwire("stats", "fixtures/captures/oldjava.pcap.gz", "--all").text,
    )
    assert "more (--all)" in short
    assert "more (--all)" not in long
    assert len(long.splitlines()) > len(short.splitlines())


def test_without_errors_it_says_that_nothing_went_wrong(kwire: Any) -> None:
    ran = kwire("stats", "fixtures/doctor/slow-client-healthy.pcap", "--errors", "--api", "Fetch")
    assert ran.text.startswith("nothing went wrong\n")
    assert ran.status == Exit.OK
    ran = kwire("stats", CLASSIC, "--id", "12345678")
    assert ran.text.startswith("no exchanges that fit\n")


def test_nothing_is_said_to_be_nothing(kwire: Any) -> None:
    ran = kwire("stats", CLASSIC, "--port", "1")
    assert ran.text == "no exchanges\n"
    assert ran.status == Exit.NOT_KAFKA
    assert kwire("stats", CLASSIC, "--id", "12345678").status == Exit.OK
