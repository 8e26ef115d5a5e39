"""The walk's steps against the embedded broker: what each says when all is well, and where each ends when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.consumer import ClassicMember, ConsumerConfig
from kwire.client.producer import produce
from kwire.client.walk.settings import WalkSettings
from kwire.client.walk.step import Step
from kwire.client.walk.walk import Walk
from kwire.testing import Broker


def _walk(broker: str | Broker, **settings: Any) -> tuple[Walk, list[Step], list[float]]:
    """The walk, its steps, and what it slept."""
    slept: list[float] = []
    address = broker if isinstance(broker, str) else broker.address
    walk = Walk(WalkSettings(Address.parse_all(address), "g", "t", **settings), slept.append)
    return walk, list(walk.steps()), slept


def _told(steps: list[Step]) -> list[tuple[int, str, int | None]]:
    return [(step.number, step.verdict, step.error) for step in steps]


def _fill(broker: Broker, count: int) -> None:
    with BrokerConnection.open(Address.parse(broker.address)) as connection:
        produce(connection, "t", 0, [(b"k%d" % n, b"v\x1b%d" % n) for n in range(count)])


@pytest.mark.parametrize(("era", "join"), [(None, ["JoinGroup v9"] * 2), ("0.9", ["JoinGroup v0"])])
def test_a_start_from_the_first_address_to_the_leaving(era: str | None, join: list[str]) -> None:
    with Broker(topics={"t": 2}) as broker:
        _fill(broker, 5)
        walk, steps, slept = _walk(broker, era=era, beats=2, interval_ms=700, records=2)
        assert _told(steps) == [(n, "ok", None) for n in (1, 2, 3, 4, 5, 6, 7, 5, 8)]
        assert [exchange.name for exchange in steps[2].exchanges] == join
        assert slept == [0.7]
        assert not walk.failed
        by_number = {step.number: step for step in steps}
        assert by_number[3].facts["generation"] == 1
        assert by_number[4].facts["assigned"] == [["t", 0], ["t", 1]]
        assert by_number[7].text == "5 records of 2 partitions"
        assert [detail.text for detail in by_number[7].details] == [
            "t-0: from 0, end 5; 5 to read, 5 came",
            "  0  k0 = v\x1b0",
            "  1  k1 = v\x1b1",
            "  … 3 more",
            "t-1: from 0, end 0; nothing to read",
        ]
        names = {exchange.api for step in steps for exchange in step.exchanges}
        assert "OffsetCommit" not in names
        assert ("ApiVersions" in names) is (era is None)


def test_the_consumer_protocol() -> None:
    with Broker(topics={"t": 2}) as broker:
        _fill(broker, 1)
        walk, steps, _ = _walk(broker, protocol="consumer", beats=1)
        assert _told(steps) == [(n, "ok", None) for n in (1, 2, 3, 4, 6, 7, 5, 8)]
        assert not walk.failed
        assert {exchange.api for exchange in steps[3].exchanges} == {"ConsumerGroupHeartbeat"}


def test_the_next_address_is_tried_and_all_again(unused: Address) -> None:
    with Broker(topics={"t": 1}) as broker:
        _, steps, _ = _walk(f"{unused},{broker.address}", beats=0)
        assert steps[0].verdict == "ok"
        assert steps[0].details[0].text == f"{unused}: connection refused: nothing listens there"
    walk, steps, slept = _walk(f"{unused},{unused}", retry=2)
    assert _told(steps) == [(1, "note", None), (1, "note", None), (1, "error", None)]
    assert [step.text for step in steps] == ["none of 2 addresses answers"] * 3
    assert [step.advice for step in steps[:2]] == ["Once more in 1 s, 2 times at most.",
                                                   "Once more in 1 s, 1 time at most."]  # fmt: skip
    assert slept == [1.0, 1.0]
    assert walk.failed


def test_silence_ends_in_an_eviction() -> None:
    with Broker(topics={"t": 1}, faults=["Heartbeat:expire"]) as broker:
        options = ConsumerConfig(session_timeout_ms=6000)
        walk, steps, slept = _walk(broker, options=options, beats=0, stop=True)
        assert slept == [7.5]
        assert [step.text for step in steps[-2:]] == [
            "no heartbeat for 7,500 ms from here on; the session timeout is 6,000 ms",
            "a beat after that silence: 25 UNKNOWN_MEMBER_ID",
        ]
        assert (steps[-1].verdict, steps[-1].error) == ("note", 25)
        assert not walk.failed
        assert not broker.requests("LeaveGroup")


def test_a_broker_that_does_not_evict() -> None:
    with Broker(topics={"t": 1}) as broker:
        walk, steps, _ = _walk(broker, beats=0, stop=True)
        assert [step.number for step in steps[-3:]] == [5, 5, 8]
        assert steps[-2].details[-1].text == "the coordinator did not evict this member"
        assert not walk.failed


FAULTS = [
    ("FindCoordinator:error=GROUP_AUTHORIZATION_FAILED", [(1, "ok", None), (2, "error", 30)]),
    ("JoinGroup:error=INVALID_SESSION_TIMEOUT", [(1, "ok", None), (2, "ok", None), (3, "error", 26)]),
    ("JoinGroup:cut", [(1, "ok", None), (2, "ok", None), (3, "error", None)]),
    ("SyncGroup:error=UNKNOWN_MEMBER_ID", [(1, "ok", None), (2, "ok", None), (3, "ok", None), (4, "error", 25)]),
]


@pytest.mark.parametrize(("fault", "told"), FAULTS)
def test_where_it_ends(fault: str, told: list[tuple[int, str, int | None]]) -> None:
    with Broker(topics={"t": 1}, faults=[fault]) as broker:
        walk, steps, _ = _walk(broker)
        assert _told(steps) == told
        assert walk.failed
        assert steps[-1].advice


LATE = [
    ("OffsetFetch:error=TOPIC_AUTHORIZATION_FAILED", (6, "error", 29)),
    ("ListOffsets:error=LEADER_NOT_AVAILABLE", (7, "error", 5)),
    ("Fetch:cut", (7, "error", None)),
    ("Fetch:short=9", (7, "error", None)),
    ("Heartbeat:error=ILLEGAL_GENERATION", (5, "error", 22)),
    ("Heartbeat:error=UNKNOWN_MEMBER_ID", (5, "error", 25)),
    ("SyncGroup:cut", (4, "error", None)),
]


@pytest.mark.parametrize(("fault", "last"), LATE)
def test_a_member_that_fails_later_leaves_its_group(fault: str, last: tuple[int, str, int | None]) -> None:
    with Broker(topics={"t": 1}, faults=[fault]) as broker:
        walk, steps, _ = _walk(broker)
        assert _told(steps)[-1] == last
        assert walk.left is (last[2] != 25)
        assert len(broker.requests("LeaveGroup")) == (1 if walk.left else 0)


def test_a_rebalance_is_joined_again() -> None:
    with Broker(topics={"t": 1}, faults=["Heartbeat:error=REBALANCE_IN_PROGRESS,times=1"]) as broker:
        walk, steps, _ = _walk(broker, beats=1)
        assert _told(steps)[2:] == [
            (3, "ok", None), (4, "ok", None), (5, "note", 27),
            (3, "ok", None), (4, "ok", None), (5, "ok", None), (6, "ok", None), (7, "note", None), (8, "ok", None),
        ]  # fmt: skip
        assert not walk.failed


def test_a_group_that_never_settles() -> None:
    with Broker(topics={"t": 1}, faults=["Heartbeat:error=REBALANCE_IN_PROGRESS"]) as broker:
        walk, steps, _ = _walk(broker, beats=1)
        assert [step.text for step in steps if step.verdict == "error"] == ["the group did not settle in 5 rebalances"]
        assert walk.failed


def test_a_group_with_members_is_not_disturbed() -> None:
    with Broker(topics={"t": 1}) as broker, ClassicMember(broker.address, "g", "t") as other:
        other.find()
        other.join()
        other.sync()
        walk, steps, _ = _walk(broker)
        assert _told(steps) == [(1, "ok", None), (2, "error", None)]
        assert steps[-1].details[-1].text == "group g: Stable, 1 member"
        assert steps[-1].advice is not None
        assert "--yes" in steps[-1].advice
        assert walk.failed
        assert len(broker.requests("JoinGroup")) == 2


def test_a_topic_that_is_not_there_is_not_made() -> None:
    with Broker() as broker:
        _, steps, _ = _walk(broker)
        assert _told(steps) == [(1, "error", 3)]
        _, steps, _ = _walk(broker, era="0.9")
        assert _told(steps) == [(1, "error", 3)]


def test_a_coordinator_that_cannot_be_reached(unused: Address) -> None:
    with Broker(topics={"t": 1}, faults=[f"any:advertise={unused}"]) as broker:
        _, steps, _ = _walk(broker)
        assert _told(steps) == [(1, "error", None), (2, "error", None)]
        assert steps[1].text == f"{unused}: connection refused: nothing listens there"
        assert steps[1].details[0].text == f"the coordinator is broker 1 at {unused}"
        assert steps[1].advice == (
            "A real client looks for the coordinator for ever: poll() gives nothing, and nothing is thrown."
        )


def test_several_brokers() -> None:
    with Broker(nodes=3, topics={"t": 3}) as broker:
        _, steps, _ = _walk(broker, beats=1)
        assert [step.verdict for step in steps if step.number != 7] == ["ok"] * 7
        assert len({exchange.broker for step in steps for exchange in step.exchanges}) > 1


@pytest.mark.parametrize("after", [3, 5])
def test_breaking_off_leaves_the_group(after: int) -> None:
    with Broker(topics={"t": 1}) as broker:
        walk = Walk(WalkSettings([Address.parse(broker.address)], "g", "t"))
        steps = walk.steps()
        for _ in range(after):
            next(steps)
        steps.close()
        assert walk.left
        assert len(broker.requests("LeaveGroup")) == 1


def test_no_kafka_at_all(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")])
    _, steps, _ = _walk(str(server.address))
    assert [step.text for step in steps] == [
        f"{server.address}: not Kafka: HTTP response (HTTP/1.1 400 Bad Request)"
    ]  # fmt: skip


def test_a_row_is_plain_data() -> None:
    with Broker(topics={"t": 1}) as broker:
        _, steps, _ = _walk(broker, beats=0)
        row = steps[0].row()
        assert (row["step"], row["name"], row["verdict"], row["error"]) == (1, "bootstrap", "ok", None)
        assert row["facts"]["brokers"] == [{"node": 1, "address": broker.address, "failure": None}]


def test_names_that_do_not_resolve(unused: Address) -> None:
    _, [only], _ = _walk("nosuch.invalid:9092")
    assert only.advice is not None
    assert only.advice.startswith("A Java client ends here, in its constructor: ConfigException")
    _, [both], _ = _walk(f"nosuch.invalid:9092,{unused}")
    assert both.details[0].text.endswith("; a Java client leaves it out, and never tries it again")
    assert both.advice is not None
    assert both.advice.startswith("A real client tries the addresses again and again")
