"""Produce and Fetch: batches in and out, long polls, errors of partitions, old formats."""

# mypy: disable-error-code="func-returns-value, index"

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.answers import ReplyFrame
from kwire.broker.context import BrokerSettings
from kwire.records import build, read_records


def values(row: Any) -> list[bytes | None]:
    return [record.value for batch in read_records(row["Records"]) for record in batch.records]


def test_what_is_produced_is_fetched(socketless: Any) -> None:
    assert [socketless.produce("t", b"a", b"b")["BaseOffset"], socketless.produce("t", b"c")["BaseOffset"]] == [0, 2]
    row = socketless.fetch("t", 1)
    assert (row["ErrorCode"], row["HighWatermark"], row["LogStartOffset"]) == (0, 3, 0)
    assert values(row) == [b"a", b"b", b"c"]
    assert values(socketless.fetch("t", 2)) == [b"c"]


@pytest.mark.parametrize("version", range(14))
def test_every_version_of_produce_writes(socketless: Any, version: int) -> None:
    magic = 0 if version < 2 else 1 if version < 3 else 2
    part = {"Index": 1, "Records": build([(b"k", b"v")], magic=magic)}
    topic = {"Name": "t", "TopicId": socketless.state.cluster.topics["t"].id, "PartitionData": [part]}
    answer = socketless.ask("Produce", version, {"Acks": 1, "TimeoutMs": 1, "TopicData": [topic]})
    assert answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0
    assert socketless.state.cluster.topics["t"].partitions[1].log.end == 1


@pytest.mark.parametrize("version", range(19))
def test_every_version_of_fetch_reads(socketless: Any, version: int) -> None:
    socketless.produce("t", b"v", timestamp=5)
    part = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}
    topic = {"Topic": "t", "TopicId": socketless.state.cluster.topics["t"].id, "Partitions": [part]}
    answer = socketless.ask("Fetch", version, {"ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 1, "Topics": [topic]})
    (batch,) = read_records(answer["Responses"][0]["Partitions"][0]["Records"])
    assert (batch.magic, batch.records[0].value) == (0 if version < 2 else 1 if version < 4 else 2, b"v")


@pytest.mark.parametrize(
    ("topic", "partition", "version", "how", "code"),
    [
        ("none", 0, 9, {}, 3),
        ("t", 2, 9, {}, 3),
        ("t", 0, 9, {"records": b"junk"}, 87),
        ("t", 0, 9, {"records": b"x" * 80}, 2),
        ("t", 0, 9, {"magic": 1}, 87),
        ("t", 0, 2, {}, 87),
        ("t", 0, 6, {"compression": "zstd"}, 76),
        ("t", 0, 7, {"compression": "zstd"}, 0),
        ("t", 0, 9, {"producer_id": 1, "producer_epoch": 0, "base_sequence": 9}, 0),
    ],
)
def test_produce_refuses_partition_by_partition(
    socketless: Any, topic: str, partition: int, version: int, how: dict[str, Any], code: int
) -> None:
    assert socketless.produce(topic, b"v", partition=partition, version=version, **how)["ErrorCode"] == code


def test_a_batch_larger_than_the_topic_takes(socketless: Any) -> None:
    socketless.state.cluster.configs.change(2, "t", [("max.message.bytes", 0, "100")])
    row = socketless.produce("t", bytes(200))
    assert (row["ErrorCode"], row["ErrorMessage"]) == (10, "a batch of 270 bytes, max.message.bytes is 100")


def test_append_time_is_told(socketless: Any) -> None:
    socketless.state.cluster.configs.change(2, "t", [("message.timestamp.type", 0, "LogAppendTime")])
    assert socketless.produce("t", b"v")["LogAppendTimeMs"] == socketless.clock.time // 1_000_000


def test_a_repeat_is_answered_with_its_offset(socketless: Any) -> None:
    how = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    assert [socketless.produce("t", b"v", **how)["BaseOffset"] for _ in range(2)] == [0, 0]
    assert socketless.state.cluster.topics["t"].partitions[0].log.end == 1


def test_without_acks_there_is_no_answer_and_a_failure_closes(socketless: Any) -> None:
    part = {"Index": 0, "Records": build([(None, b"v")])}
    body = {"Acks": 0, "TimeoutMs": 1, "TopicData": [{"Name": "t", "PartitionData": [part]}]}
    assert socketless.send("Produce", 9, body) == [ReplyFrame(None)]
    body["TopicData"][0]["Name"] = "none"
    why = "Produce with acks=0 failed, and there is no other way to say so: none-0: error 3"
    assert socketless.send("Produce", 9, body) == [ReplyFrame(None, why)]


def test_acks_that_are_none(socketless: Any) -> None:
    part = {"Index": 0, "Records": build([(None, b"v")])}
    body = {"Acks": 5, "TimeoutMs": 1, "TopicData": [{"Name": "t", "PartitionData": [part]}]}
    assert socketless.ask("Produce", 9, body)["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 21


def test_the_leader_is_named_to_who_asks_elsewhere(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2, topics=(("t", 1),)))
    leader = socketless.state.cluster.topics["t"].partitions[0].leader
    part = {"Index": 0, "Records": build([(None, b"v")])}
    body = {"Acks": 1, "TimeoutMs": 1, "TopicData": [{"Name": "t", "PartitionData": [part]}]}
    answer = socketless.ask("Produce", 10, body, node=3 - leader)
    row = answer["Responses"][0]["PartitionResponses"][0]
    assert (row["ErrorCode"], row["CurrentLeader"]) == (6, {"LeaderId": leader, "LeaderEpoch": 0})
    assert [node["NodeId"] for node in answer["NodeEndpoints"]] == [leader]


# ---------------------------------------------------------------- waiting


def test_a_fetch_waits_for_enough_bytes(socketless: Any) -> None:
    replies = socketless.send("Fetch", 12, socketless.fetch_body("t", wait=1000, least=100))
    socketless.clock.run(500)
    socketless.produce("t", b"a")
    assert replies == []
    socketless.produce("t", b"b")
    assert values(socketless.body("Fetch", 12, replies[0])["Responses"][0]["Partitions"][0]) == [b"a", b"b"]
    socketless.clock.run(1000)
    assert len(replies) == 1


def test_a_fetch_that_waits_is_not_read_again_for_every_batch(socketless: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = socketless.send("Fetch", 12, socketless.fetch_body("t", wait=10_000, least=10_000))
    reads: list[int] = []
    log = socketless.state.cluster.topics["t"].partitions[0].log
    read = type(log).read
    monkeypatch.setattr(type(log), "read", lambda *given, **how: (reads.append(1), read(*given, **how))[1])
    for _ in range(100):
        socketless.produce("t", b"a" * 50)
    assert (len(reads), len(replies)) == (1, 1)


def parts(count: int) -> list[dict[str, int]]:
    return [{"Partition": n, "FetchOffset": 0, "PartitionMaxBytes": 10_000} for n in range(count)]


def test_a_fetch_of_many_partitions_is_read_in_steps(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("t", 1_000),)))
    socketless.produce("t", b"v")
    body = {**socketless.fetch_body("t"), "Topics": [{"Topic": "t", "Partitions": parts(1_000)}]}
    answer = socketless.ask("Fetch", 12, body)
    assert len(answer["Responses"][0]["Partitions"]) == 1_000
    assert socketless.steps >= 10


def test_a_fetch_of_many_partitions_waits(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("t", 1_000),)))
    body = {**socketless.fetch_body("t", wait=1_000), "Topics": [{"Topic": "t", "Partitions": parts(1_000)}]}
    replies = socketless.send("Fetch", 12, body)
    assert replies == []
    socketless.produce("t", b"v", partition=999)
    assert len(socketless.body("Fetch", 12, replies[0])["Responses"][0]["Partitions"]) == 1_000


def test_a_partition_that_is_named_twice_is_fetched_once(socketless: Any) -> None:
    socketless.produce("t", b"v")
    body = {**socketless.fetch_body("t"), "Topics": [{"Topic": "t", "Partitions": parts(1) * 1_000}]}
    (row,) = socketless.ask("Fetch", 12, body)["Responses"][0]["Partitions"]
    assert values(row) == [b"v"]


def test_a_fetch_ends_with_its_time(socketless: Any) -> None:
    replies = socketless.send("Fetch", 12, socketless.fetch_body("t", wait=1000))
    socketless.clock.run(999)
    assert replies == []
    socketless.clock.run(1)
    assert socketless.body("Fetch", 12, replies[0])["Responses"][0]["Partitions"][0]["Records"] == b""


@pytest.mark.parametrize("how", ["closed", "deleted", "answered"])
def test_nothing_is_left_of_a_fetch_that_waited(socketless: Any, how: str) -> None:
    log = socketless.state.cluster.topics["t"].partitions[0].log
    replies = socketless.raw(socketless.frame("Fetch", 12, socketless.fetch_body("t", wait=1000)))
    assert len(log.waiting) == 1
    if how == "closed":
        socketless.peer.close()
    elif how == "deleted":
        socketless.ask("DeleteTopics", 1, {"TopicNames": ["t"], "TimeoutMs": 1})
    else:
        socketless.produce("t", b"v")
    assert (log.waiting, socketless.clock.timers, len(replies)) == ({}, [], 0 if how == "closed" else 1)


def test_errors_do_not_wait(socketless: Any) -> None:
    assert socketless.fetch("none", wait=1000)["ErrorCode"] == 3
    assert socketless.fetch("t", 5, wait=1000)["ErrorCode"] == 1
    socketless.state.cluster.topics["t"].partitions[0].log.delete_before(0)


def test_sizes_are_kept_to_but_for_the_first_batch(socketless: Any) -> None:
    for _ in range(3):
        socketless.produce("t", bytes(100))
    assert len(read_records(socketless.fetch("t", most=1)["Records"])) == 1
    assert len(read_records(socketless.fetch("t", most=400)["Records"])) == 2


def test_sessions_are_refused(socketless: Any) -> None:
    body = socketless.fetch_body("t")
    assert socketless.ask("Fetch", 12, {**body, "SessionEpoch": 0})["SessionId"] == 0
    answer = socketless.ask("Fetch", 12, {**body, "SessionId": 9, "SessionEpoch": 1})
    assert (answer["ErrorCode"], answer["Responses"]) == (70, [])


def test_topics_by_id(socketless: Any) -> None:
    from uuid import UUID

    part = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}
    body = {"MaxWaitMs": 0, "MinBytes": 1, "Topics": [{"TopicId": UUID(int=5), "Partitions": [part]}]}
    answer = socketless.ask("Fetch", 13, body)
    assert answer["Responses"][0]["Partitions"][0]["ErrorCode"] == 100


def test_a_fetch_of_what_is_committed_ends_with_the_marker(socketless: Any) -> None:
    log = socketless.state.cluster.topics["t"].partitions[0].log
    body = {**socketless.fetch_body("t", wait=10_000, least=150), "IsolationLevel": 1}
    replies = socketless.send("Fetch", 12, body)
    log.append(
        build([(None, b"v" * 200)], producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True), 0, 0
    )
    assert replies == []
    log.mark(5, 0, True, 0, 0, 0, 0)
    assert len(replies) == 1
