"""Transcripts of a real broker's share and streams groups replayed against the broker without sockets.

A transcript (fixtures/share, fixtures/streams, tests/interop/record.py) is replayed at its own times, every client on a
connection of its own; whole answers are compared, and when they come. Left out: throttle times, messages for people,
the order of rows, for which there is no rule, and that the real broker tried twice to make an internal topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from transcripts import Row, body_of, comparable, load, unlike

from kwire.broker.configs import GROUP
from kwire.broker.context import MS, BrokerSettings, Peer
from kwire.coordinator.types import GroupSettings
from kwire.records.batch import read_header
from kwire.wire.uuids import from_text

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRANSCRIPTS = [path for kind in ("share", "streams") for path in sorted((FIXTURES / kind).glob("*.jsonl.gz"))]
EARLIER, LATER = 900, 300  # ms that an answer may come before or after the broker's, which was busy
ASKS_OTHERS = ("DescribeShareGroupOffsets", "Produce")  # the broker takes its time over them
LAB = {  # fixtures/README.md
    "group_share_max_size": 4, "group_share_session_timeout_ms": 4_000, "group_share_heartbeat_interval_ms": 1_000,
    "group_share_assignment_interval_ms": 0, "group_share_record_lock_duration_ms": 2_000,
    "group_share_partition_max_record_locks": 100, "group_streams_max_size": 4,
    "group_streams_session_timeout_ms": 4_000, "group_streams_heartbeat_interval_ms": 1_000,
    "group_streams_assignment_interval_ms": 0, "group_streams_initial_rebalance_delay_ms": 600,
}  # fmt: skip


@dataclass
class Replay:
    """A transcript under replay. peers: by client; pending: steps without an answer: (step, replies, when asked)."""

    head: Row
    steps: list[Row]
    socketless: Any
    peers: dict[str, Peer] = field(default_factory=dict)
    pending: list[tuple[str, Row, list[Any], int]] = field(default_factory=list)
    found: list[str] = field(default_factory=list)

    def run(self) -> list[str]:
        """What the broker does otherwise, a line each."""
        self.know(self.head["topics"])
        if self.head["configs"]:
            self.socketless.state.cluster.configs.given[GROUP, self.head["script"]] = self.head["configs"]
        for step in self.steps:
            if step.get("api") == "InitProducerId":
                self.socketless.state.cluster.producers_given = step["response"]["ProducerId"] - 1_000
        self.socketless.clock.time = self.begun()
        self.start = self.socketless.clock.now()
        for number, step in enumerate(self.steps):
            self.advance(round(step["at_ms"]))
            if "topics" in step:
                self.know(step["topics"])
            elif step.get("hangs_up"):
                self.peers.pop(step["client"]).close()
            else:
                title = f"step {number + 1} at {step['at_ms']} {step['client']} {step['api']} v{step['version']}"
                self.ask(title, step)
        self.advance(round(self.steps[-1]["at_ms"]) + 10_000)
        return self.found + [f"{title}: no answer" for title, *_ in self.pending]

    def begun(self) -> int:
        """When the script began, by the first timestamp that it sent; ns."""
        for step in self.steps:
            if step.get("api") == "Produce":
                body = body_of("ProduceRequest", step["version"], step["request"])
                header = read_header(body["TopicData"][0]["PartitionData"][0]["Records"], 0)
                return int((header.max_timestamp - step["at_ms"] + 1) * MS)
        return int(self.socketless.clock.now())

    def know(self, topics: Row) -> None:
        for name, row in topics.items():
            cluster = self.socketless.state.cluster
            made = cluster.create(name, row["partitions"])
            cluster.topics[name] = moved = made._replace(id=from_text(row["id"]))
            del cluster.by_id[made.id]
            cluster.by_id[moved.id] = moved
            cluster._tell()

    def advance(self, to: int) -> None:
        """Time passes, ms; in small steps as long as somebody waits."""
        while (left := to - self.now()) > 0:
            self.socketless.clock.run(min(left, 20) if self.pending else left)
            self.collect()

    def now(self) -> int:
        return int((self.socketless.clock.now() - self.start) // MS)

    def ask(self, title: str, step: Row) -> None:
        peer = self.peers.setdefault(step["client"], Peer(len(self.peers) + 10, "127.0.0.1", 40_000, 1))
        body = body_of(step["api"] + "Request", step["version"], step["request"])
        replies = self.socketless.raw(self.socketless.frame(step["api"], step["version"], body, step["client"]), peer)
        self.pending.append((title, step, replies, self.now()))
        self.collect()

    def collect(self) -> None:
        for entry in list(self.pending):
            title, step, replies, asked = entry
            if replies:
                self.pending.remove(entry)
                self.compare(title, step, replies[0], self.now() - asked)

    def compare(self, title: str, step: Row, reply: Any, took: int) -> None:
        if reply.data is None:
            self.found.append(f"{title}: closed: {reply.close}")
            return
        api, version = step["api"], step["version"]
        ours = comparable(own(api, self.head["script"], self.socketless.body(api, version, reply)))
        real = comparable(once(body_of(api + "Response", version, step["response"])))
        self.found += [f"{title}: {line}" for line in unlike(real, ours)]
        if api not in ASKS_OTHERS and not -EARLIER <= took - step["took_ms"] <= LATER:
            self.found.append(f"{title}: took {took:.0f} ms, the broker took {step['took_ms']} ms")


def once(body: Row) -> Row:
    """Without what became of making internal topics, which the real broker does beside the heartbeats."""
    for row in body.get("Status") or ():
        row["StatusDetail"] = row["StatusDetail"].partition("; Creation failed")[0]
    return body


def own(api: str, group: str, body: Row) -> Row:
    if api != "ListGroups":
        return body
    return body | {"Groups": [row for row in body["Groups"] if row["GroupId"] == group]}


def transcript(path: Path, make_socketless: Callable[..., Any]) -> Replay:
    head, steps = load(path)
    major, minor = head["broker"].split(".")[:2]
    groups = replace(GroupSettings(), **LAB | head["settings"])
    return Replay(head, steps, make_socketless(BrokerSettings(era=(int(major), int(minor)), groups=groups)))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_groups_are_served_as_the_real_broker_did(path: Path, make_socketless: Callable[..., Any]) -> None:
    assert "\n".join(transcript(path, make_socketless).run()) == ""
