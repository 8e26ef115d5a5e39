"""Transcripts of real brokers replayed against the broker without sockets: whole answers are compared.

A transcript (fixtures/transactions, tests/interop/record_transactions.py) is replayed at its own times; producer ids
that the broker made up are given to the coordinator as they stand there. Left out of the comparison: throttle times,
messages for people, times (only whether there is one), and the order of topics, partitions and producers.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kwire.broker.acls import ALL, DENY, GROUP, PREFIXED, TOPIC, TRANSACTIONAL_ID, Acl, Acls
from kwire.broker.context import MS, Settings
from kwire.codec.library import builtin_library
from kwire.coordinator.types import TransactionSettings
from kwire.records import read_records
from kwire.render.jsonform import from_json, to_jsonable

FOLDER = Path(__file__).parents[2] / "fixtures" / "transactions"
PRODUCER_ID = re.compile(r'"ProducerId": (\d+)')
AFTER = 2_000_000_000_000_000_000  # ns, a time after those of the recorded records
TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl.gz"))
LAB = TransactionSettings(offsets_topic_num_partitions=4)  # as fixtures/README.md has it
NO_RULE = ("ThrottleTimeMs", "ErrorMessage", "Metadata")
TIMES = ("TransactionStartTimeMs", "LastTimestamp", "LogAppendTimeMs", "Timestamp")
NAMES = ("TransactionalId", "Topic", "Name", "PartitionIndex", "Index", "ProducerId")
Row = dict[str, Any]


@dataclass
class Replay:
    """A transcript under replay. given: producer ids that were given out, at: the step that is replayed."""

    head: Row
    steps: list[Row]
    desk: Any
    given: set[str] = field(default_factory=set)
    at: int = 0
    others: Any = field(default_factory=lambda: count(900_000))

    def run(self) -> list[str]:
        """What the broker does otherwise, a line each."""
        self.desk.state.transactions.coordinator._desk.new_producer = self.new_producer
        self.desk.clock.time = AFTER
        for topic, partitions in self.head["topics"].items():
            self.desk.state.create(topic, partitions)
        if self.head.get("denied"):
            self.desk.state.acls = Acls([], open=True)
            for kind in (TOPIC, GROUP, TRANSACTIONAL_ID):
                name = self.head["denied"]
                self.desk.state.acls.add(Acl(kind, name, PREFIXED, "User:ANONYMOUS", "*", ALL, DENY))
        start = self.desk.clock.now()
        found = []
        for number, step in enumerate(self.steps):
            self.desk.clock.run(max(start + round(step["at_ms"] * MS) - self.desk.clock.now(), 0) // MS)
            if "epochs" in step:
                for name, epoch in step["epochs"].items():
                    txn = self.desk.state.transactions.coordinator.transactions[name]
                    txn.epoch, txn.last_epoch = epoch, -1
                continue
            self.at = number
            title = f"step {number + 1} {step['client']} {step['api']} v{step['version']}"
            found += [f"{title}: {line}" for line in self.differences(step)]
        return found

    def differences(self, step: Row) -> list[str]:
        real = body_of(step["api"] + "Response", step["version"], step["response"])
        asked = body_of(step["api"] + "Request", step["version"], step["request"])
        ours = self.desk.ask(step["api"], step["version"], asked)
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


def body_of(name: str, version: int, body: Row) -> Row:
    return from_json(builtin_library().plan(name, version), json.dumps(body))


def comparable(value: Any, key: str = "") -> Any:
    """A body without what Kafka has no rule for."""
    if isinstance(value, dict):
        if value.get("AbortedTransactions"):  # Kafka's index may name more than there is to read
            value["AbortedTransactions"] = [
                row for row in value["AbortedTransactions"] if row["FirstOffset"] < value["LastStableOffset"]
            ]
        return {key: comparable(inner, key) for key, inner in value.items() if key not in NO_RULE and key != "_tagged"}
    if isinstance(value, list):
        return sorted((comparable(inner, key) for inner in value), key=place)
    if key == "Records" and value is not None:
        return [
            (r.offset, repr(r.key), repr(r.value), b.producer_id, b.producer_epoch, b.base_sequence, b.is_control)
            for b in read_records(value)
            for r in b.records
        ]
    if key in TIMES:
        return value >= 0
    return to_jsonable(value)


def place(value: Any) -> str:
    names = [value[name] for name in NAMES if name in value] if isinstance(value, dict) else []
    return json.dumps([names, value], sort_keys=True)


def unlike(real: Any, ours: Any, path: str = "") -> list[str]:
    """Where two bodies differ, a line a place."""
    if isinstance(real, dict) and isinstance(ours, dict) and real.keys() == ours.keys():
        return [line for key in real for line in unlike(real[key], ours[key], f"{path}.{key}")]
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [line for i in range(len(real)) for line in unlike(real[i], ours[i], f"{path}[{i}]")]
    return [] if real == ours else [f"{path[1:]}: broker {json.dumps(real)}, kwire {json.dumps(ours)}"]


def transcript(path: Path, make_desk: Callable[..., Any]) -> Replay:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        head, *steps = (json.loads(line) for line in lines)
    major, minor = head["broker"].split(".")[:2]
    return Replay(head, steps, make_desk(Settings(era=(int(major), int(minor)), transactions=LAB)))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_broker_answers_as_the_real_one_did(path: Path, make_desk: Callable[..., Any]) -> None:
    assert "\n".join(transcript(path, make_desk).run()) == ""


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_there_are_transcripts_of_each_release(release: str) -> None:
    assert len([path for path in TRANSCRIPTS if path.name.endswith(f".{release}.jsonl.gz")]) > 20
