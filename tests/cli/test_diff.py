"""kwire diff: two recordings of a program name the setting that was changed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

RECORDED = "fixtures/diff/{}.pcapng.gz"
CHANGED = {  # by recording: whose setting, from, to; None where the value is measured
    "acks": ("orders-writer", "acks", "all", "1"),
    "assignor": ("orders-reader", "partition.assignment.strategy", "range,roundrobin", "roundrobin"),
    "batch-size": ("orders-writer", "batch.size", None, None),
    "commit-interval": ("orders-reader", "auto.commit.interval.ms", None, "250"),
    "compression": ("orders-writer", "compression.type", "none", "gzip"),
    "heartbeat": ("orders-reader", "heartbeat.interval.ms", "500", "1000"),
    "isolation": ("orders-reader", "isolation.level", "read_committed", "read_uncommitted"),
    "linger": ("orders-writer", "linger.ms", None, None),
    "max-poll": ("orders-reader", "max.poll.interval.ms", "300000", "120000"),
    "max-wait": ("orders-reader", "fetch.max.wait.ms", "200", "40"),
    "metadata-age": ("orders-reader", "metadata.max.age.ms", "500", "250"),
    "min-bytes": ("orders-reader", "fetch.min.bytes", "1", "2000"),
    "partition-bytes": ("orders-reader", "max.partition.fetch.bytes", "1048576", "65536"),
    "session-timeout": ("orders-reader", "session.timeout.ms", "10000", "20000"),
}
CLASSIC = "fixtures/captures/classic.pcap.gz"


def _changes(kwire: Any, *arguments: str) -> list[dict[str, Any]]:
    ran = kwire("diff", "--format", "json", *arguments)
    assert ran.status == Exit.OK, ran.err
    changes = json.loads(ran.text)["changes"]
    assert isinstance(changes, list)
    return changes


def test_there_is_a_recording_for_each_setting() -> None:
    there = {path.name.partition(".")[0] for path in Path("fixtures/diff").glob("*.gz")}
    assert there == {*CHANGED, "base", "again"}


@pytest.mark.parametrize("first", ["base", "again"])
@pytest.mark.parametrize("name", CHANGED)
def test_one_changed_setting_is_named_and_nothing_else(name: str, first: str, kwire: Any) -> None:
    whom, setting, before, after = CHANGED[name]
    [found] = _changes(kwire, RECORDED.format(first), RECORDED.format(name))
    assert (found["kind"], found["client_id"], found["what"]) == ("setting", whom, setting)
    assert before in (None, found["before"])
    assert after in (None, found["after"])


@pytest.mark.parametrize("name", CHANGED)
def test_back_again_it_is_the_same_setting(name: str, kwire: Any) -> None:
    whom, setting, before, after = CHANGED[name]
    [found] = _changes(kwire, RECORDED.format(name), RECORDED.format("base"))
    assert (found["client_id"], found["what"]) == (whom, setting)
    assert after in (None, found["before"])
    assert before in (None, found["after"])


def test_the_same_program_twice_has_not_changed(kwire: Any) -> None:
    ran = kwire("diff", RECORDED.format("base"), RECORDED.format("again"))
    assert ran.text.splitlines()[-1].startswith("nothing changed")


def test_where_nothing_can_be_read_nothing_is_said_to_agree(kwire: Any) -> None:
    sealed = "fixtures/captures/tls-kafka/capture.pcap.gz"
    ran = kwire("diff", sealed, sealed)
    assert ran.text.splitlines()[-1] == "nothing to compare: neither holds a request that can be read"


@pytest.mark.parametrize("path", sorted(Path("fixtures/captures").glob("*.pcap*")), ids=lambda path: path.name)
def test_a_capture_has_not_changed_against_itself(path: Path, kwire: Any) -> None:
    ran = kwire("diff", str(path), str(path), "--format", "json")
    assert json.loads(ran.text)["changes"] == []


def test_two_clients_of_one_capture(kwire: Any) -> None:
    found = _changes(kwire, CLASSIC, "--client-a", "classic-c1", "--client-b", "classic-c2")
    assert [(one["kind"], one["what"]) for one in found][:1] == [("finding", "evicted")]
    text = kwire("diff", CLASSIC, "--client-a", "classic-c1", "--client-b", "classic-c2", columns=80).text
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "classic-c1" in text.splitlines()[0]


def test_findings_may_be_left_out(kwire: Any) -> None:
    found = _changes(kwire, CLASSIC, "--client-a", "classic-c1", "--client-b", "classic-c2", "--no-findings")
    assert [one for one in found if one["kind"] == "finding"] == []


@pytest.mark.parametrize(
    "arguments", [(CLASSIC,), (CLASSIC, CLASSIC, CLASSIC), (CLASSIC, "--client-a", "x")], ids=["one", "three", "half"]
)
def test_it_takes_two_captures_or_two_clients(arguments: tuple[str, ...], kwire: Any) -> None:
    assert kwire("diff", *arguments).status == Exit.USAGE
