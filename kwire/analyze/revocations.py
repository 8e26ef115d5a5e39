"""What members of a KIP-848 or streams group are to give up, and what they wait for, out of their heartbeats.

An answer's Assignment that lacks partitions which the member owns takes them away; its next TopicPartitions without
them gives them back, and only then another member gets them (GroupMetadataManager, CurrentAssignmentBuilder). Members
of streams groups own tasks in the same way: ActiveTasks of requests and answers (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.callers import host_of
from kwire.analyze.findings import Reference
from kwire.schema.keys import CONSUMER_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange

HEARTBEATS = frozenset((CONSUMER_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT))
MOST = 10_000  # members
MOST_KEPT = 1000  # revocations and waits that are over
Partitions = frozenset[tuple[str, int]]


@dataclass(slots=True)
class RevocationSpan:
    """Something that lasts. began, seen and over: ns; seen: the member's last heartbeat in it; over is None as long as
    it lasts."""

    group: str
    member: str
    client_id: str
    host: str
    partitions: Partitions
    began: int
    proof: Reference
    rebalance_ms: int
    seen: int = 0
    seen_proof: Reference | None = None
    over: int | None = None
    over_proof: Reference | None = None
    heartbeats: int = 0
    noun: str = "partition"  # or task
    beat_ms: int = 0  # heartbeat interval that the member was told

    @property
    def length(self) -> int:
        """ns, as far as it was seen."""
        return (self.seen if self.over is None else self.over) - self.began

    @property
    def label(self) -> str:
        return self.client_id or self.member

    def meets(self, other: RevocationSpan) -> int:
        """The overlap of both, ns."""
        end = min(self.over or self.seen, other.over or other.seen)
        return max(end - max(self.began, other.began), 0)


@dataclass(slots=True)
class OwningMember:
    """owned: as it said last; rebalance_ms: as it said when it joined."""

    owned: Partitions = frozenset()
    rebalance_ms: int = -1
    revoking: RevocationSpan | None = None
    waiting: RevocationSpan | None = None


@dataclass(slots=True)
class Revocations:
    """exchange(exchange) of HEARTBEATS, in the order of time. revoked and waited: those that are over and
    those that last."""

    members: dict[tuple[str, str], OwningMember] = field(default_factory=dict)
    revoked: list[RevocationSpan] = field(default_factory=list)
    waited: list[RevocationSpan] = field(default_factory=list)

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        asked = request.body() if request else None
        answer = response.body() if response else None
        if request is None or response is None or asked is None or answer is None:
            return
        ident = asked["MemberId"] or answer["MemberId"] or ""
        key = asked["GroupId"], ident
        if asked["MemberEpoch"] < 0 or answer["ErrorCode"]:
            member = self.members.get(key)
            if member is not None and (asked["MemberEpoch"] < 0 or asked["MemberEpoch"] > 0):
                self._end(member.revoking, exchange)
                self._end(member.waiting, exchange)
                del self.members[key]
            return
        member = self.members.get(key)
        if member is None:
            if len(self.members) >= MOST:
                return
            member = self.members[key] = OwningMember()
        if asked["RebalanceTimeoutMs"] > 0:
            member.rebalance_ms = asked["RebalanceTimeoutMs"]
        owned = _held(exchange, asked)
        if owned is not None:
            member.owned = owned
            if member.revoking is not None and not member.revoking.partitions & member.owned:
                self._end(member.revoking, exchange)
                member.revoking = None
        for span in (member.revoking, member.waiting):
            if span is not None:
                span.seen, span.seen_proof = request.time, Reference.of(request)
                span.heartbeats += 1
        self._assigned(exchange, key, member, asked, answer)

    def _assigned(
        self,
        exchange: Exchange,
        key: tuple[str, str],
        member: OwningMember,
        asked: dict[str, Any],
        answer: dict[str, Any],
    ) -> None:
        response = exchange.response
        given = _held(exchange, answer)
        if given is None or response is None:
            return
        taken = member.owned - given
        made = (*key, exchange.client_id or "", host_of(exchange.connection))
        proof = Reference.of(response)
        if taken and member.revoking is None and len(self.revoked) < MOST_KEPT:
            member.revoking = RevocationSpan(*made, taken, response.time, proof, member.rebalance_ms, response.time)
            member.revoking.noun = "task" if "ActiveTasks" in answer else "partition"
            self.revoked.append(member.revoking)
        if given:
            if member.waiting is not None:
                member.waiting.partitions = given
                self._end(member.waiting, exchange)
                member.waiting = None
        elif asked["MemberEpoch"] == 0 and member.waiting is None and len(self.waited) < MOST_KEPT:
            member.waiting = RevocationSpan(*made, given, response.time, proof, member.rebalance_ms, response.time)
            member.waiting.noun = "task" if "ActiveTasks" in answer else "partition"
            member.waiting.beat_ms = max(answer.get("HeartbeatIntervalMs", 0), 0)
            self.waited.append(member.waiting)

    def _end(self, span: RevocationSpan | None, exchange: Exchange) -> None:
        message = exchange.response or exchange.first
        if span is not None and span.over is None:
            span.over, span.over_proof = message.time, Reference.of(message)


def _held(exchange: Exchange, body: dict[str, Any]) -> Partitions | None:
    """What a member owns by its request, or is given by an answer; None where that is as it was."""
    if "ActiveTasks" in body:
        tasks = body["ActiveTasks"]
        if tasks is None:
            return None
        return frozenset(
            (f"subtopology {task['SubtopologyId']}", part) for task in tasks for part in task["Partitions"]
        )
    topics = body["Assignment"]["TopicPartitions"] if body.get("Assignment") else body.get("TopicPartitions")
    if topics is None:
        return None
    named = exchange.connection.topics.name
    return frozenset((named(topic["TopicId"]), part) for topic in topics for part in topic["Partitions"])
