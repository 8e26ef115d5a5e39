"""A member's life against the embedded broker, one call a step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kwire.client.address import Address
from kwire.client.cluster import ClusterClient
from kwire.client.connection import BrokerConnection
from kwire.client.consumer import ClassicMember, ConsumerConfig, JoinedGroup
from kwire.client.failure import Refusal
from kwire.client.producer import produce
from kwire.errors import Failure
from kwire.testing import Broker


def _fill(broker: Broker, *values: bytes, partition: int = 0) -> None:
    with BrokerConnection.open(Address.parse(broker.address)) as connection:
        produce(connection, "t", partition, [(None, value) for value in values])


@pytest.mark.parametrize("era", [None, "0.9"])
def test_a_member_alone_reads_everything(era: str | None) -> None:
    with Broker(topics={"t": 2}) as broker:
        _fill(broker, b"one", b"two")
        _fill(broker, b"three", partition=1)
        with ClassicMember(broker.address, "g", "t", cluster=ClusterClient(era=era)) as member:
            member.find()
            joined = member.join()
            assert joined.leads
            assert (joined.generation, joined.protocol, joined.asked) == (1, "range", 1 if era else 2)
            assert [row.topics for row in joined.members] == [("t",)]
            assert member.sync() == [("t", 0), ("t", 1)]
            assert member.heartbeat() == 0
            assert [polled.record.value for polled in member.poll()] == [b"one", b"two", b"three"]
            assert member.reader.positions == {("t", 0): 2, ("t", 1): 1}
            assert member.poll(0) == []
            assert member.leave() == 0
            assert (member.member, member.partitions) == ("", [])


def test_latest_begins_at_the_end() -> None:
    with Broker(topics={"t": 1}) as broker:
        _fill(broker, b"old")
        with ClassicMember(broker.address, "g", "t", ConsumerConfig(earliest=False)) as member:
            member.find()
            member.join()
            member.sync()
            assert member.poll(0) == []
            _fill(broker, b"new")
            assert [polled.record.value for polled in member.poll()] == [b"new"]


def test_two_members_share() -> None:
    with (
        Broker(topics={"t": 3}) as broker,
        ClassicMember(broker.address, "g", "t") as one,
        ClassicMember(broker.address, "g", "t") as two,
    ):
        one.find()
        one.join()
        assert len(one.sync()) == 3
        two.find()
        second = _in_thread(two.join)
        _until(lambda: one.heartbeat() == 27)
        first = one.join()
        joined = second()
        assert first.generation == joined.generation == 2
        leader, other = (one, two) if first.leads else (two, one)
        assert sorted([*leader.sync(), *other.sync()]) == [("t", 0), ("t", 1), ("t", 2)]
        assert {len(one.partitions), len(two.partitions)} == {1, 2}


def _in_thread(call: Callable[[], JoinedGroup]) -> Callable[[], JoinedGroup]:
    out: list[JoinedGroup] = []
    thread = threading.Thread(target=lambda: out.append(call()), daemon=True)
    thread.start()

    def wait() -> JoinedGroup:
        thread.join(60)
        return out[0]

    return wait


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_errors_are_raised_with_their_code() -> None:
    faults = ["SyncGroup:error=REBALANCE_IN_PROGRESS,times=1"]
    with Broker(topics={"t": 1}, faults=faults) as broker, ClassicMember(broker.address, "g", "t") as member:
        member.find()
        member.join()
        with pytest.raises(Refusal, match=r"^SyncGroup v5: 27 REBALANCE_IN_PROGRESS: ") as caught:
            member.sync()
        assert caught.value.code == 27
        member.sync()
        broker.fault("Heartbeat:error=UNKNOWN_MEMBER_ID,times=1")
        assert member.heartbeat() == 25


def test_a_coordinator_that_is_not_ready_is_asked_again() -> None:
    faults = ["FindCoordinator:error=COORDINATOR_NOT_AVAILABLE,times=2",
              "JoinGroup:error=COORDINATOR_LOAD_IN_PROGRESS,times=1"]  # fmt: skip
    with Broker(topics={"t": 1}, faults=faults) as broker, ClassicMember(broker.address, "g", "t") as member:
        member.find()
        assert member.place.passed == [15, 15]
        assert member.join().asked == 3


def test_a_broker_that_is_not_there(unused: Address) -> None:
    with pytest.raises(Failure) as caught:
        ClassicMember([unused], "g", "t").find()
    assert caught.value.kind == "refused"


def test_the_first_address_that_answers_is_taken(unused: Address) -> None:
    with Broker(topics={"t": 1}) as broker, ClassicMember(f"{unused},{broker.address}", "g", "t") as member:
        assert str(member.find()) == broker.address
