"""The bridge between requests, the transaction coordinator and the logs."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import BrokerSettings
from kwire.broker.faults import Faults
from kwire.records import build, read_records


class Producer:
    """A transactional producer by transaction.version 2, with the topic t."""

    def __init__(self, make_socketless: Any, *rules: str, nodes: int = 1) -> None:
        faults = Faults()
        for rule in rules:
            faults.add(rule)
        self.socketless = make_socketless(BrokerSettings(topics=(("t", 1),), nodes=nodes), faults)
        self.state, self.sequence = self.socketless.state, 0
        got = self.ask("InitProducerId", 5, TransactionTimeoutMs=5_000)
        self.producer, self.epoch = got["ProducerId"], got["ProducerEpoch"]

    def ask(self, api: str, version: int, **body: Any) -> Any:
        node = self.state.cluster.coordinator("x")
        return self.socketless.ask(api, version, {"TransactionalId": "x", **body}, node)

    def write(self) -> int:
        who = {"producer_id": self.producer, "producer_epoch": self.epoch, "base_sequence": self.sequence}
        rows = [{"Index": 0, "Records": build([(None, b"v")], is_transactional=True, **who)}]
        body = {"TransactionalId": "x", "Acks": -1, "TimeoutMs": 1000}
        body |= {"TopicData": [{"Name": "t", "PartitionData": rows}]}
        leader = self.state.cluster.topics["t"].partitions[0].leader
        got = self.socketless.ask("Produce", 12, body, leader)["Responses"][0]["PartitionResponses"][0]
        self.sequence += not got["ErrorCode"]
        return int(got["ErrorCode"])

    def end(self, *, commit: bool = True) -> int:
        who = {"ProducerId": self.producer, "ProducerEpoch": self.epoch}
        return int(self.ask("EndTxn", 5, **who, Committed=commit)["ErrorCode"])

    def markers(self) -> list[tuple[int, bytes | None]]:
        """Epoch and key of the control records."""
        log = self.state.cluster.topics["t"].partitions[0].log
        data = b"".join(log.read(0, 1 << 30, whole_first=True))
        return [(b.producer_epoch, b.records[0].key) for b in read_records(data) if b.is_control]

    def happened(self, *kinds: str) -> list[str]:
        return [event.kind for event in self.state.happenings if event.kind in kinds]


def test_an_end_is_written_to_the_log(make_socketless: Any) -> None:
    one = Producer(make_socketless)
    assert (one.write(), one.end()) == (0, 0)
    assert one.markers() == [(1, b"\0\0\0\1")]
    assert one.happened("began", "commit", "abort") == ["began", "commit"]


def test_the_clock_aborts_what_is_open_for_too_long(make_socketless: Any) -> None:
    one = Producer(make_socketless)
    assert one.write() == 0
    one.socketless.clock.run(5_001)
    assert one.markers() == [(1, b"\0\0\0\0")]
    assert (one.write(), one.end()) == (47, 48)  # as Kafka: an EndTxn sent again, but for a commit


@pytest.mark.parametrize(("rule", "error"), [("EndTxn:expire", 48), ("EndTxn:forget", 49)])
def test_faults_end_the_transaction_first(make_socketless: Any, rule: str, error: int) -> None:
    one = Producer(make_socketless, rule)
    assert (one.write(), one.end()) == (0, error)
    assert one.markers() == [(1, b"\0\0\0\0")]


def test_a_coordinator_that_moves_takes_its_transactions_along(make_socketless: Any) -> None:
    one = Producer(make_socketless, "EndTxn:move", nodes=2)
    assert (one.write(), one.end()) == (0, 16)
    assert one.end() == 0
    assert one.markers() == [(1, b"\0\0\0\1")]


def test_a_topic_that_is_deleted_holds_nothing_up(make_socketless: Any) -> None:
    one = Producer(make_socketless)
    assert one.write() == 0
    one.state.cluster.delete(one.state.cluster.topics["t"])
    assert one.end() == 0
    assert one.happened("marker") == ["marker"]
    (row,) = one.ask("DescribeTransactions", 0, TransactionalIds=["x"])["TransactionStates"]
    assert row["TransactionState"] == "CompleteCommit"


def test_offsets_of_a_stranger_stay_outside(make_socketless: Any) -> None:
    one = Producer(make_socketless)
    rows = [{"PartitionIndex": 0, "CommittedOffset": 7, "CommittedMetadata": ""}]
    body = {"GroupId": "g", "ProducerId": one.producer, "Topics": [{"Name": "t", "Partitions": rows}]}
    for epoch, version, error in ((5, 5, 47), (0, 3, 48), (0, 4, 120), (0, 5, 0)):
        got = one.socketless.ask("TxnOffsetCommit", version, {"TransactionalId": "x", "ProducerEpoch": epoch, **body})
        assert got["Topics"][0]["Partitions"][0]["ErrorCode"] == error
    assert one.state.groups.coordinator.offsets.pending["g"][one.producer]["t", 0].offset == 7
    topic, index = one.state.transactions.coordinator.group_place("g")
    row = {"ProducerId": one.producer, "ProducerEpoch": 1, "TransactionResult": True, "CoordinatorEpoch": 0}
    marker = {**row, "Topics": [{"Name": topic, "PartitionIndexes": [index]}]}
    one.socketless.ask("WriteTxnMarkers", 1, {"Markers": [marker]})
    assert one.state.groups.coordinator.offsets.committed["g"]["t", 0].offset == 7
