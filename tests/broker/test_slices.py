"""Large requests in slices: the answers are those of the handlers in one go, and nothing grows beyond its limit."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from kwire.broker import slices
from kwire.broker.context import BrokerLimits, BrokerSettings
from kwire.records import build
from kwire.schema.registry import builtin

CONFIGS = {"ResourceType": 2, "ResourceName": "t", "ConfigurationKeys": None}
PARTS = [{"PartitionIndex": n % 3, "Timestamp": -1 - n % 2, "CurrentLeaderEpoch": -1} for n in range(700)]
EPOCHS = [{"Partition": n % 3, "LeaderEpoch": 0, "CurrentLeaderEpoch": -1} for n in range(700)]
COMMITS = [{"PartitionIndex": n % 3, "CommittedOffset": n, "CommittedMetadata": "m"} for n in range(700)]
NAMES = [f"n{n}" for n in range(700)]
LARGE: list[tuple[str, int, dict[str, Any]]] = [
    ("ListOffsets", 1, {"ReplicaId": -1, "Topics": [{"Name": "t", "Partitions": PARTS}]}),
    ("ListOffsets", 7, {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": PARTS} for name in ("t", "no")]}),
    ("Metadata", 4, {"Topics": [{"Name": "t"}] * 700}),
    ("Metadata", 12, {"Topics": [{"Name": "t"}] * 700}),
    ("DescribeConfigs", 1, {"Resources": [CONFIGS] * 600}),
    ("DescribeConfigs", 4, {"Resources": [{**CONFIGS, "ConfigurationKeys": ["retention.ms", *NAMES]}]}),
    ("DescribeGroups", 5, {"Groups": NAMES}),
    ("ConsumerGroupDescribe", 0, {"GroupIds": NAMES}),
    ("FindCoordinator", 4, {"CoordinatorKeys": NAMES}),
    ("DeleteTopics", 3, {"TopicNames": NAMES}),
    ("DeleteTopics", 6, {"Topics": [{"Name": name} for name in NAMES]}),
    ("DeleteGroups", 2, {"GroupsNames": NAMES}),
    ("OffsetForLeaderEpoch", 3, {"ReplicaId": -1, "Topics": [{"Topic": "t", "Partitions": EPOCHS}]}),
    ("OffsetCommit", 6, {"GroupId": "g", "MemberId": "", "Topics": [{"Name": "t", "Partitions": COMMITS}]}),
    ("OffsetFetch", 7, {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": list(range(700))}]}),
    ("OffsetFetch", 8, {"Groups": [{"GroupId": name, "Topics": None} for name in NAMES]}),
    ("OffsetDelete", 0, {"GroupId": "g", "Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0}] * 700}]}),
    ("LeaveGroup", 4, {"GroupId": "g", "Members": [{"MemberId": name} for name in NAMES]}),
    ("CreatePartitions", 2, {"Topics": [{"Name": name, "Count": 2, "Assignments": None} for name in NAMES]}),
    ("CreateTopics", 7, {"Topics": [{"Name": name + "/"} for name in NAMES]}),
    ("AlterConfigs", 2, {"Resources": [{"ResourceType": 2, "ResourceName": "t", "Configs": []}] * 600}),
    ("IncrementalAlterConfigs", 1, {"Resources": [{"ResourceType": 2, "ResourceName": "t", "Configs": []}] * 600}),
    ("DeleteRecords", 2, {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0, "Offset": 0}] * 700}]}),
    ("ElectLeaders", 2, {"TopicPartitions": [{"Topic": "t", "Partitions": [0, 1, 2] * 300}]}),
    ("DescribeProducers", 0, {"Topics": [{"Name": "t", "PartitionIndexes": [0, 7] * 400}]}),
    ("Produce", 9, {"Acks": 1, "TopicData": [{"Name": "t", "PartitionData": [{"Index": 9, "Records": b""}] * 700}]}),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "body"), LARGE, ids=[f"{api} v{version}" for api, version, _ in LARGE])
def test_the_answer_is_the_same_in_slices(make_socketless: Any, api: str, version: int, body: dict[str, Any]) -> None:
    socketless, other = (
        make_socketless(BrokerSettings(topics=(("t", 3),), limits=BrokerLimits(at_once=most)))
        for most in (BrokerLimits().at_once, 1 << 30)
    )
    for each in (socketless, other):
        each.state.cluster.id = "c"
        each.state.cluster.topics["t"] = each.state.cluster.topics["t"]._replace(
            id=socketless.state.cluster.topics["t"].id
        )
    sliced = socketless.ask(api, version, body)
    assert socketless.steps > 5
    assert sliced == other.ask(api, version, body)
    assert other.steps < 5


def test_every_table_entry_names_arrays_that_there_are() -> None:
    for api, cuts in slices.CUTS.items():
        request, response = builtin().api(builtin().find(api).definition.key).messages
        names = {field.name for field in request.fields}
        assert {cut.asked for cut in cuts} <= names
        assert {cut.answered for cut in cuts} <= {field.name for field in response.fields}


def test_few_things_are_answered_in_one_go(socketless: Any) -> None:
    socketless.ask("DescribeGroups", 5, {"Groups": [f"g{n}" for n in range(BrokerLimits().at_once)]})
    assert socketless.steps == 0


def test_all_topics_are_told_in_slices_when_they_are_many(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=tuple((f"t{n:03}", 3) for n in range(200))))
    body = socketless.ask("Metadata", 4, {"Topics": None})
    assert [row["Name"] for row in body["Topics"]] == [f"t{n:03}" for n in range(200)]
    assert [len(row["Partitions"]) for row in body["Topics"]] == [3] * 200
    assert socketless.steps > 3
    assert len(socketless.ask("ElectLeaders", 2, {"TopicPartitions": None})["ReplicaElectionResults"]) == 200


@pytest.mark.slow
def test_an_answer_has_a_limit_and_so_has_the_memory_for_it(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("t", 1),), limits=BrokerLimits(answer=1 << 20)))
    frame = socketless.frame("DescribeConfigs", 1, {"Resources": [CONFIGS] * 20_000})
    socketless.ask("DescribeConfigs", 1, {"Resources": [CONFIGS] * 600})
    tracemalloc.start()
    (reply,) = socketless.raw(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reply == (None, "the answer to DescribeConfigs is larger than 1,048,576 bytes")
    assert peak < 30 << 20  # 20,000 descriptions would take 300 MB


def test_a_request_may_hold_so_many_elements(make_socketless: Any) -> None:
    socketless = make_socketless(
        BrokerSettings(topics=(("t", 1),), limits=BrokerLimits(elements=60_000, batches=20_000))
    )
    (reply,) = socketless.send("DescribeGroups", 5, {"Groups": ["g"] * 60_001})
    assert reply.close == "DescribeGroups with more than 60,000 elements"
    parts = [{"Index": 0, "Records": b""}] * 20_001
    (reply,) = socketless.send("Produce", 9, {"Acks": 1, "TopicData": [{"Name": "t", "PartitionData": parts}]})
    assert reply.close == "Produce with more than 20,000 elements"


def test_what_cannot_be_read_is_not_gone_over_slowly(socketless: Any) -> None:
    frame = socketless.frame("DescribeGroups", 0, {"Groups": [""] * 40_000})
    (reply,) = socketless.raw(frame[:-1])
    assert reply.close is not None
    assert reply.close.startswith("DescribeGroups v0 cannot be read: ")


def test_produce_without_an_answer_in_slices(socketless: Any) -> None:
    parts = [{"Index": 0, "Records": build([(None, b"v")])} for _ in range(600)]
    (reply,) = socketless.send("Produce", 9, {"Acks": 0, "TopicData": [{"Name": "t", "PartitionData": parts}]})
    assert reply == (None, None)
    assert socketless.state.cluster.topics["t"].partitions[0].log.end == 600


def test_a_throttle_is_in_the_answer_of_slices(socketless: Any) -> None:
    socketless.faults.add("DescribeGroups:throttle=3s")
    assert socketless.ask("DescribeGroups", 5, {"Groups": [f"g{n}" for n in range(600)]})["ThrottleTimeMs"] == 3_000
