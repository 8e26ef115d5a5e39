"""Transcripts of real brokers replayed against the broker without sockets: whole answers are compared.

A transcript (fixtures/transactions, tests/interop/record.py) is replayed at its own times; producer ids
that the broker made up are given to the coordinator as they stand there. Left out of the comparison: throttle times,
messages for people, times (only whether there is one), and the order of topics, partitions and producers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import transcripts
from transcripts import Row, body_of, load, unlike

from kwire.broker.acls import ALL, DENY, GROUP, PREFIXED, TOPIC, TRANSACTIONAL_ID, Acl, Acls
from kwire.broker.context import MS, BrokerSettings
from kwire.coordinator.types import TransactionSettings

FOLDER = Path(__file__).parents[2] / "fixtures" / "transactions"
PRODUCER_ID = re.compile(r'"ProducerId": (\d+)')
AFTER = 2_000_000_000_000_000_000  # ns, a time after those of the recorded records
TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl.gz"))
LAB = TransactionSettings(offsets_topic_num_partitions=4)  # as fixtures/README.md has it
NO_RULE = (*transcripts.NO_RULE, "Metadata", "_tagged")
TIMES = ("TransactionStartTimeMs", "LastTimestamp", "LogAppendTimeMs", "Timestamp")


@dataclass
class Replay:
    """A transcript under replay. given: producer ids that were given out, at: the step that is replayed."""

    head: Row
    steps: list[Row]
    socketless: Any
    given: set[str] = field(default_factory=set)
    at: int = 0
    others: Any = field(default_factory=lambda: count(900_000))

    def run(self) -> list[str]:
        """What the broker does otherwise, a line each."""
        self.socketless.state.transactions.coordinator._context.new_producer = self.new_producer
        self.socketless.clock.time = AFTER
        for topic, partitions in self.head["topics"].items():
            self.socketless.state.create(topic, partitions)
        if self.head.get("denied"):
            self.socketless.state.acls = Acls([], open=True)
            for kind in (TOPIC, GROUP, TRANSACTIONAL_ID):
                name = self.head["denied"]
                self.socketless.state.acls.add(Acl(kind, name, PREFIXED, "User:ANONYMOUS", "*", ALL, DENY))
        start = self.socketless.clock.now()
        found = []
        for number, step in enumerate(self.steps):
            self.socketless.clock.run(max(start + round(step["at_ms"] * MS) - self.socketless.clock.now(), 0) // MS)
            if "epochs" in step:
                for name, epoch in step["epochs"].items():
                    txn = self.socketless.state.transactions.coordinator.transactions[name]
                    txn.epoch, txn.last_epoch = epoch, -1
                continue
            self.at = number
            title = f"step {number + 1} {step['client']} {step['api']} v{step['version']}"
            found += [f"{title}: {line}" for line in self.differences(step)]
        return found

    def differences(self, step: Row) -> list[str]:
        real = body_of(step["api"] + "Response", step["version"], step["response"])
        asked = body_of(step["api"] + "Request", step["version"], step["request"])
        ours = self.socketless.ask(step["api"], step["version"], asked)
        if step["api"] == "ListTransactions":
            ours["TransactionStates"] = [
                row for row in ours["TransactionStates"] if row["TransactionalId"].startswith(self.head["script"])
            ]
        return unlike(comparable(real), comparable(ours))

    def new_producer(self) -> int:
        """The first id that the transcript names from here on and not before."""
        for step in self.steps[self.at :]:
            for named in PRODUCER_ID.findall(json.dumps(step["response"])) if "response" in step else ():
                if named not in self.given:
                    self.given.add(named)
                    return int(named)
        return int(next(self.others))


def comparable(value: Any) -> Any:
    """A body without what Kafka has no rule for."""
    return transcripts.comparable(decided(value), no_rule=NO_RULE)


def decided(value: Any, key: str = "") -> Any:
    """Of times only whether there is one, and of aborted transactions those that there is something to read of."""
    if isinstance(value, dict):
        if value.get("AbortedTransactions"):  # Kafka's index may name more than there is to read
            stable = value["LastStableOffset"]
            kept = [row for row in value["AbortedTransactions"] if row["FirstOffset"] < stable]
            value = value | {"AbortedTransactions": kept}
        return {key: decided(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [decided(inner, key) for inner in value]
    return value >= 0 if key in TIMES else value


def transcript(path: Path, make_socketless: Callable[..., Any]) -> Replay:
    head, steps = load(path)
    major, minor = head["broker"].split(".")[:2]
    return Replay(head, steps, make_socketless(BrokerSettings(era=(int(major), int(minor)), transactions=LAB)))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_broker_answers_as_the_real_one_did(path: Path, make_socketless: Callable[..., Any]) -> None:
    assert "\n".join(transcript(path, make_socketless).run()) == ""


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_there_are_transcripts_of_each_release(release: str) -> None:
    assert len([path for path in TRANSCRIPTS if path.name.endswith(f".{release}.jsonl.gz")]) > 20
