"""Stored state of share partitions as the share coordinator tells and takes it; answers are those of a real 4.3.1."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.broker.apis.share_state import share_key
from kwire.broker.context import BrokerSettings
from kwire.coordinator.share.states import SharePartitionKey

APIS = ("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState")


def ask(
    socketless: Any,
    api: str,
    group: str = "g",
    topic: UUID | None = None,
    partition: int = 0,
    node: int = 1,
    **part: Any,
) -> Any:
    """The row of one partition, without what says which it is."""
    topic = topic or socketless.state.cluster.topics["t"].id
    version = 1 if api in ("WriteShareGroupState", "ReadShareGroupStateSummary") else 0
    body = {"GroupId": group, "Topics": [{"TopicId": topic, "Partitions": [{"Partition": partition, **part}]}]}
    row = socketless.ask(api, version, body, node)["Results"][0]["Partitions"][0]
    row.pop("ErrorMessage")
    assert row.pop("Partition") == partition
    return row


def write(
    socketless: Any, epoch: int, leader: int, start: int, complete: int, *batches: tuple[int, int, int, int]
) -> int:
    names = ("FirstOffset", "LastOffset", "DeliveryState", "DeliveryCount")
    rows = [dict(zip(names, batch, strict=True)) for batch in batches]
    part: dict[str, Any] = {
        "StateEpoch": epoch,
        "LeaderEpoch": leader,
        "StartOffset": start,
        "DeliveryCompleteCount": complete,
    }
    code: int = ask(socketless, "WriteShareGroupState", **part, StateBatches=rows)["ErrorCode"]
    return code


@pytest.fixture
def socketless(make_socketless: Any) -> Any:
    return make_socketless(BrokerSettings(topics=(("t", 1),)))


def test_what_was_never_initialised(socketless: Any) -> None:
    assert ask(socketless, "ReadShareGroupState", LeaderEpoch=1)["ErrorCode"] == 42
    assert write(socketless, 1, 1, 0, 0) == 42
    assert ask(socketless, "DeleteShareGroupState") == {"ErrorCode": 0}
    nothing = {"ErrorCode": 0, "StateEpoch": 0, "LeaderEpoch": 0, "StartOffset": -1, "DeliveryCompleteCount": -1}
    assert ask(socketless, "ReadShareGroupStateSummary", LeaderEpoch=1) == nothing


def test_epochs_fence_and_what_is_written_is_read(socketless: Any) -> None:
    def summary() -> tuple[int, int, int, int]:
        row = ask(socketless, "ReadShareGroupStateSummary", LeaderEpoch=1)
        return row["StateEpoch"], row["LeaderEpoch"], row["StartOffset"], row["DeliveryCompleteCount"]

    assert ask(socketless, "InitializeShareGroupState", StateEpoch=3, StartOffset=5)["ErrorCode"] == 0
    assert ask(socketless, "InitializeShareGroupState", StateEpoch=2, StartOffset=5)["ErrorCode"] == 124
    assert summary() == (3, 0, 5, 0)
    read = ask(socketless, "ReadShareGroupState", LeaderEpoch=4)
    assert read == {"ErrorCode": 0, "StateEpoch": 3, "StartOffset": 5, "StateBatches": []}
    assert ask(socketless, "ReadShareGroupState", LeaderEpoch=3)["ErrorCode"] == 74
    assert write(socketless, 3, 4, 6, 2, (7, 8, 2, 1), (9, 9, 0, 1)) == 0
    assert (write(socketless, 2, 4, 6, 0), write(socketless, 3, 3, 6, 0)) == (124, 74)
    assert write(socketless, 3, 4, 6, 2, (9, 9, 3, 1)) == 42
    assert write(socketless, 3, 4, -1, 1) == 0  # the start stays
    batches = ask(socketless, "ReadShareGroupState", LeaderEpoch=4)["StateBatches"]
    assert [tuple(batch.values()) for batch in batches] == [(7, 8, 2, 1), (9, 9, 0, 1)]
    assert summary() == (3, 4, 6, 1)
    assert ask(socketless, "InitializeShareGroupState", StateEpoch=3, StartOffset=-1)["ErrorCode"] == 0
    assert summary() == (3, 0, -1, -1)
    assert ask(socketless, "DeleteShareGroupState")["ErrorCode"] == 0
    assert summary() == (0, 0, -1, -1)


def test_what_is_not_there(socketless: Any) -> None:
    part: dict[str, Any] = {
        "StateEpoch": 1,
        "LeaderEpoch": 1,
        "StartOffset": 0,
        "DeliveryCompleteCount": 0,
        "StateBatches": [],
    }
    codes = {api: ask(socketless, api, topic=UUID(int=17), **part)["ErrorCode"] for api in APIS}
    assert list(codes.values()) == [3, 42, 42, 3]
    assert {ask(socketless, api, partition=-1, **part)["ErrorCode"] for api in APIS} == {42}
    assert socketless.ask(
        "ReadShareGroupState", 0, {"GroupId": "", "Topics": [{"TopicId": UUID(int=1), "Partitions": []}]}
    ) == {"Results": []}


def test_one_node_has_it_and_is_found(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=3, topics=(("t", 1),)))
    topic = socketless.state.cluster.topics["t"].id
    key = share_key(SharePartitionKey("a:b", topic, 0))
    keys = [key, "bad", "g:nouuid:0", f"{key[:-1]}x", key[1:].partition(":")[2][1:], ""]
    found = socketless.ask("FindCoordinator", 6, {"KeyType": 2, "CoordinatorKeys": keys})["Coordinators"]
    assert [row["ErrorCode"] for row in found] == [0, 42, 42, 42, 42, 42]
    assert "__share_group_state" in socketless.state.cluster.topics
    codes = [
        ask(socketless, "ReadShareGroupStateSummary", group="a:b", node=node, LeaderEpoch=0)["ErrorCode"]
        for node in (1, 2, 3)
    ]
    assert sorted(codes) == [0, 16, 16]
    assert codes.index(0) + 1 == found[0]["NodeId"]
