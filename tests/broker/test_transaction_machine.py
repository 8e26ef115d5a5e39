"""Transactions under a state machine: producers that come, write, end, are fenced and time out, on nodes that change.

Each record's value is its own. A reader of committed records does what clients do: it reads up to the last stable
offset and leaves out what the aborted list names. What must hold at any time: committed records are seen exactly once,
others never; the last stable offset lies before every open transaction and never goes back; a fenced producer writes
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire.broker.context import BrokerSettings
from kwire.records import build, read_records

from .conftest import SocketlessBroker

IDS, PARTITIONS, NODES, TIMEOUT_MS = ("x", "y", "z"), 2, 3, 60_000


@dataclass
class Incarnation:
    """A producer as its client knows it, which may have been fenced. open: the values of its open transaction."""

    id: str
    producer: int
    epoch: int
    new: bool  # by transaction.version 2
    fenced: bool = False
    sequences: dict[int, int] = field(default_factory=dict)
    open: list[bytes] = field(default_factory=list)
    began: bool = False


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.socketless = SocketlessBroker(BrokerSettings(nodes=NODES, topics=(("t", PARTITIONS),)))
        self.topic = self.socketless.state.cluster.topics["t"]
        self.all: list[Incarnation] = []
        self.committed: set[bytes] = set()
        self.stable = [0] * PARTITIONS
        self.values = count()

    # ------------------------------------------------------------ what producers do

    @rule(name=st.sampled_from(IDS), new=st.booleans())
    def init(self, name: str, new: bool) -> None:
        asked = {"TransactionalId": name, "TransactionTimeoutMs": TIMEOUT_MS}
        for other in self.all:
            if other.id == name:
                other.fenced, other.open, other.began = True, [], False
        for _ in range(2):
            got = self.coordinator(name, "InitProducerId", 5, asked)
            if got["ErrorCode"] != 51:
                break
        assert got["ErrorCode"] == 0
        self.all.append(Incarnation(name, got["ProducerId"], got["ProducerEpoch"], new))

    @precondition(lambda self: self.all)
    @rule(data=st.data(), partition=st.integers(0, PARTITIONS - 1), many=st.integers(1, 3))
    def write(self, data: st.DataObject, partition: int, many: int) -> None:
        one = data.draw(st.sampled_from(self.all))
        if not one.new:
            self.add(one, partition)
        values = [b"%d" % next(self.values) for _ in range(many)]
        first, end = one.sequences.get(partition, 0), self.log(partition).end
        batch = build(
            [(None, value) for value in values], producer_id=one.producer, producer_epoch=one.epoch,
            base_sequence=first, is_transactional=True,
        )  # fmt: skip
        rows = [{"Name": "t", "PartitionData": [{"Index": partition, "Records": batch}]}]
        body = {"TransactionalId": one.id, "Acks": -1, "TimeoutMs": 1000, "TopicData": rows}
        leader = self.topic.partitions[partition].leader
        got = self.socketless.ask("Produce", 12 if one.new else 11, body, leader)
        error = got["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
        if one.fenced:
            assert error
            assert self.log(partition).end == end
        else:
            assert error == 0
            one.sequences[partition] = first + many
            one.open += values
            one.began = True

    def add(self, one: Incarnation, partition: int) -> None:
        who = {"TransactionalId": one.id, "ProducerId": one.producer, "ProducerEpoch": one.epoch}
        topics = [{"Name": "t", "Partitions": [partition]}]
        body = {f"V3AndBelow{key}": value for key, value in who.items()} | {"V3AndBelowTopics": topics}
        got = self.coordinator(one.id, "AddPartitionsToTxn", 3, body)
        row = got["ResultsByTopicV3AndBelow"][0]["ResultsByPartition"][0]
        assert (row["PartitionErrorCode"] != 0) == one.fenced
        one.began = one.began or not one.fenced

    @precondition(lambda self: self.all)
    @rule(data=st.data(), commit=st.booleans())
    def end(self, data: st.DataObject, commit: bool) -> None:
        one = data.draw(st.sampled_from(self.all))
        body = {"TransactionalId": one.id, "ProducerId": one.producer, "ProducerEpoch": one.epoch, "Committed": commit}
        got = self.coordinator(one.id, "EndTxn", 5 if one.new else 4, body)
        if one.fenced:
            return  # nothing of it is open, whatever the answer says
        if not one.began and (commit or not one.new):
            assert got["ErrorCode"] in (0, 48)
            return
        assert got["ErrorCode"] == 0
        if commit:
            self.committed.update(one.open)
        one.open, one.began = [], False
        if one.new:
            one.producer, one.epoch = got["ProducerId"], got["ProducerEpoch"]
            one.sequences.clear()

    # ------------------------------------------------------------ what happens around them

    @rule()
    def a_minute_passes(self) -> None:
        self.socketless.clock.run(TIMEOUT_MS + 1_000)
        for one in self.all:
            if one.began:
                one.fenced, one.open, one.began = True, [], False

    @rule()
    def coordinators_move(self) -> None:
        self.socketless.state.cluster.moved += 1

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def a_leader_moves(self, partition: int) -> None:
        self.socketless.state.cluster.move_leader(self.topic.partitions[partition])

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def somebody_without_transactions_writes(self, partition: int) -> None:
        value = b"%d" % next(self.values)
        self.log(partition).append(build([(None, value)]), 0, 0)
        self.committed.add(value)

    # ------------------------------------------------------------ what holds

    @invariant()
    def committed_records_are_seen_once_and_others_never(self) -> None:
        seen: list[bytes] = []
        for partition in range(PARTITIONS):
            seen += self.read(partition)
        assert len(seen) == len(set(seen))
        assert set(seen) <= self.committed
        if not any(one.open for one in self.all):
            assert set(seen) == self.committed

    @invariant()
    def the_stable_offset_lies_before_what_is_open_and_does_not_go_back(self) -> None:
        still = {value for one in self.all for value in one.open}
        for partition in range(PARTITIONS):
            log = self.log(partition)
            first = next((offset for offset, value in self.values_of(partition) if value in still), log.end)
            assert log.stable == first
            assert log.stable >= self.stable[partition]
            self.stable[partition] = log.stable

    def values_of(self, partition: int) -> list[tuple[int, bytes | None]]:
        data = b"".join(self.log(partition).read(0, 1 << 40, whole_first=True))
        return [(r.offset, r.value) for b in read_records(data) if not b.is_control for r in b.records]

    def read(self, partition: int) -> list[bytes]:
        """As a client reads committed records, a few bytes at a time."""
        seen: list[Any] = []
        offset, leader = 0, self.topic.partitions[partition].leader
        while True:
            part = {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 300}
            body = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "IsolationLevel": 1}
            got = self.socketless.ask("Fetch", 11, body | {"Topics": [{"Topic": "t", "Partitions": [part]}]}, leader)
            row = got["Responses"][0]["Partitions"][0]
            assert row["ErrorCode"] == 0
            aborted = sorted(row["AbortedTransactions"], key=lambda each: each["FirstOffset"])
            out: set[int] = set()
            batches = read_records(row["Records"])
            if not batches:
                assert offset == row["LastStableOffset"]
                return seen
            for batch in batches:
                while aborted and aborted[0]["FirstOffset"] <= batch.last_offset:
                    out.add(aborted.pop(0)["ProducerId"])
                if batch.is_control:
                    out.discard(batch.producer_id)
                elif batch.producer_id not in out:
                    seen += [record.value or b"" for record in batch.records]
                offset = batch.last_offset + 1

    # ------------------------------------------------------------ shorthand

    def log(self, partition: int) -> Any:
        return self.topic.partitions[partition].log

    def coordinator(self, name: str, api: str, version: int, body: dict[str, Any]) -> Any:
        return self.socketless.ask(api, version, body, self.socketless.state.cluster.coordinator(name))


TestTransactions = Machine.TestCase
TestTransactions.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
