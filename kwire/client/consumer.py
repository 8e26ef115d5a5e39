"""A consumer in a group of the classic protocol, one call a step: find(), join(), sync(), heartbeat(), poll(), leave().

Nothing runs in the background: who holds a ClassicMember decides when it beats, and when it forgets to. It commits
nothing and creates no topics. Not for several threads at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

from kwire.client import bodies
from kwire.client.address import Address
from kwire.client.assign import ASSIGNORS, Assignment, Subscriber, assigned, assignment, subscription, topics_of
from kwire.client.bodies import Partition
from kwire.client.cluster import ClusterClient
from kwire.client.exchange import Body
from kwire.client.failure import Refusal
from kwire.client.reader import PartitionReader, Polled
from kwire.client.topology import BACKOFF, PASSING, GroupPlace
from kwire.errors import KwireError
from kwire.schema import codes

PATIENCE = 5.0  # seconds beyond the rebalance timeout: the broker answers a join by then


class JoinedGroup(NamedTuple):
    """A JoinGroup that was accepted. members is empty for all but the leader. asked: how many requests it took.
    passed: the error codes that went by, but for MEMBER_ID_REQUIRED."""

    member: str
    generation: int
    protocol: str
    leader: str
    members: tuple[Subscriber, ...]
    asked: int
    passed: tuple[int, ...] = ()

    @property
    def leads(self) -> bool:
        return self.member == self.leader


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A consumer's configuration, by the names and in the units of Kafka's. earliest: auto.offset.reset."""

    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    assignors: tuple[str, ...] = ("range",)
    instance_id: str | None = None
    earliest: bool = True


class ClassicMember:
    """addresses: bootstrap.servers, text or Addresses. Every method raises Failure where no answer comes, and Refusal
    where the broker's is an error; heartbeat() and leave() give the error code. partitions are what was assigned."""

    def __init__(
        self, addresses: str | Sequence[Address], group: str, topic: str, options: ConsumerConfig = ConsumerConfig(),
        cluster: ClusterClient | None = None,
    ) -> None:  # fmt: skip
        self._live(GroupPlace(addresses, group, topic, cluster or ClusterClient()), options)

    @classmethod
    def at(cls, place: GroupPlace, options: ConsumerConfig = ConsumerConfig()) -> Self:
        """One whose group was found already."""
        member = cls.__new__(cls)
        member._live(place, options)
        return member

    def _live(self, place: GroupPlace, options: ConsumerConfig) -> None:
        self.place, self.cluster, self.group, self.options = place, place.cluster, place.group, options
        self.reader = PartitionReader(place, options.earliest)
        self.member, self.generation, self.protocol = "", -1, ""
        self.joined: JoinedGroup | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; the group learns nothing (leave() tells it)."""
        self.cluster.close()

    @property
    def partitions(self) -> list[Partition]:
        return self.reader.partitions

    def find(self) -> Address:
        """Bootstrap, metadata and coordinator: the address of the group's coordinator."""
        return self.place.find()

    def join(self) -> JoinedGroup:
        """JoinGroup; once more with the id that was handed out, where the broker wants that (v4 and up, KIP-394), once
        without an id that is not known any more, and again for a while where the coordinator is another by now or has
        not read its log yet."""
        protocols = [(name, subscription([self.place.topic])) for name in self.options.assignors]
        deadline = None  # from the first refusal on: an answer may take its time
        asked = 0
        passed: list[int] = []
        while True:
            asked += 1
            exchange = self.place.ask(
                "JoinGroup",
                lambda version: bodies.join_group(
                    version, self.group, self.member, self.options.session_timeout_ms,
                    self.options.rebalance_timeout_ms, protocols, self.options.instance_id,
                ),
                self.patience,
            )  # fmt: skip
            body = exchange.body()
            error = body["ErrorCode"]
            if not error:
                return self._admitted(body, asked, tuple(passed))
            if error == codes.MEMBER_ID_REQUIRED and not self.member:
                self.member = body["MemberId"]
                continue
            deadline = deadline or time.monotonic() + self.cluster.timeout
            if error == codes.UNKNOWN_MEMBER_ID and self.member:
                self.member = ""
            elif error in PASSING and time.monotonic() < deadline:
                time.sleep(BACKOFF)
                if error != codes.COORDINATOR_LOAD_IN_PROGRESS:
                    self.place.find()
            else:
                raise Refusal(exchange, error)
            passed.append(error)

    def _admitted(self, body: Body, asked: int, passed: tuple[int, ...]) -> JoinedGroup:
        self.member, self.generation = body["MemberId"], body["GenerationId"]
        self.protocol = body["ProtocolName"] or ""
        members = tuple(
            Subscriber(row["MemberId"], topics_of(row["Metadata"]), row.get("GroupInstanceId"))
            for row in body["Members"]
        )
        self.joined = JoinedGroup(self.member, self.generation, self.protocol, body["Leader"], members, asked, passed)
        return self.joined

    @property
    def patience(self) -> float:
        """Seconds that an answer to JoinGroup or SyncGroup may take."""
        longest = max(self.options.rebalance_timeout_ms, self.options.session_timeout_ms)
        return max(self.cluster.timeout, longest / 1000 + PATIENCE)

    def plan(self) -> Assignment:
        """What the leader computes; nothing for others. Raises KwireError for a protocol that is not ours."""
        joined = self.joined
        if joined is None or not joined.leads:
            return {}
        if joined.protocol not in ASSIGNORS:
            raise KwireError(f"the group's protocol is {joined.protocol}, kwire computes {', '.join(ASSIGNORS)}")
        topics = sorted({topic for member in joined.members for topic in member.topics})
        return ASSIGNORS[joined.protocol](joined.members, self.place.counts(topics))

    def sync(self, planned: Assignment | None = None) -> list[Partition]:
        """SyncGroup: the leader hands the plan in (plan() unless it is given), everybody gets their part."""
        handed = self.plan() if planned is None else planned
        exchange = self.place.ask(
            "SyncGroup",
            lambda version: bodies.sync_group(
                version, self.group, self.generation, self.member, self.protocol,
                {member: assignment(partitions) for member, partitions in handed.items()}, self.options.instance_id,
            ),
            self.patience,
        )  # fmt: skip
        body = exchange.body()
        if body["ErrorCode"]:
            raise Refusal(exchange, body["ErrorCode"])
        self.reader.assign(assigned(body["Assignment"]))
        return self.partitions

    def heartbeat(self) -> int:
        """The error code; 0 when all is well."""
        exchange = self.place.ask(
            "Heartbeat",
            lambda version: bodies.heartbeat(
                version, self.group, self.generation, self.member, self.options.instance_id
            ),
        )
        return int(exchange.body()["ErrorCode"])

    def poll(self, wait_ms: int = 500) -> list[Polled]:
        """Fetches once from every leader, from the committed offsets on, else from where options say."""
        return self.reader.poll(wait_ms)

    def leave(self, reason: str = "kwire is done") -> int:
        """The error code. The member id is forgotten, unless another coordinator must be told."""
        exchange = self.place.ask(
            "LeaveGroup",
            lambda version: bodies.leave_group(version, self.group, self.member, self.options.instance_id, reason),
        )
        code = bodies.left(exchange.body())
        if code not in PASSING:
            self.forget()
        return code

    def forget(self) -> None:
        """Starts anew: the next join() comes without a member id."""
        self.member, self.generation, self.joined = "", -1, None
        self.reader.assign([])
