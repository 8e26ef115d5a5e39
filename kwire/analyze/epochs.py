"""Groups whose members only send heartbeats: consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071).

The coordinator raises the group's epoch when a member joins (epoch 0), leaves (-1, or -2 for a static member that means
to come back), is evicted or changes its subscription, and hands each member the epoch and its part with the next
heartbeat. So an epoch begins with its cause, is formed when somebody first hears of it, and is done when the last
member has reached it.
"""

from __future__ import annotations

from typing import Any

from kwire.analyze.calls import CONSUMER_HEARTBEAT, EPOCH_HEARTBEATS, SHARE_HEARTBEAT, STREAMS_HEARTBEAT, Call
from kwire.analyze.causes import tally
from kwire.analyze.history import Cause, Generation, History, Join, Status
from kwire.analyze.members import Assignment, Contact, Departure, TrackedMember

JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2
DETAIL = 500  # characters of a status that are kept
MISSED = 3  # heartbeats that a member must have missed to be taken for evicted


class EpochHistory:
    """asked(call) and answered(call) are called in the order of time; the history gets what they show."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.causes: list[Cause] = []  # since the current epoch was first heard of
        self.before: Generation | None = None
        self.early: dict[str, Assignment] = {}  # parts on the way to the next epoch, told with the current one

    def asked(self, call: Call) -> None:
        """Takes a heartbeat request."""
        if call.key not in EPOCH_HEARTBEATS or call.error or call.answered_at is None:
            return
        history = self.history
        ident = call.member or (call.answer or {}).get("MemberId") or ""
        if not ident:
            return
        known = history.members.get(ident)
        member = history.member(ident, call)
        member.instance = call.instance or member.instance
        if member.instance:
            history.instances[member.instance] = member
        if call.generation in (LEAVES, LEAVES_FOR_NOW):
            reason = "means to come back" if call.generation == LEAVES_FOR_NOW else ""
            departure = Departure("left", call.asked_at, (call.asked,), reason)
            history.part(member, departure)
            self.causes.append(Cause(call.asked_at, "left", member.label, (call.asked,), departure, member))
            return
        gap = None if member.beat_at is None else call.asked_at - member.beat_at
        if call.generation == JOINS:
            gap = None
            back = known is not None or len(member.seat.ids) > 1
            member.joined_at = call.asked_at
            member.gone = None
            kind = "back" if back else "joined"
            self.causes.append(Cause(call.asked_at, kind, member.label, (call.asked,), None, member))
            member.rebalance = call.body.get("RebalanceTimeoutMs", -1)
            member.said, member.polled = call.asked, call.asked_at
        topics = call.body.get("SubscribedTopicNames")
        if topics is not None:
            self._subscribed(call, member, tuple(sorted(topics)))
        member.beat_at = call.asked_at
        member.contact = Contact(call.asked_at, "heartbeat", call.asked)
        member.seat.beats.add(gap, call.asked)
        member.seat.ticks.add(call.asked_at)
        member.seat.enter(call.asked_at)

    def answered(self, call: Call) -> None:
        """Takes its answer."""
        if call.key not in EPOCH_HEARTBEATS or call.error or call.answered_at is None or call.answer is None:
            return
        history, answer = self.history, call.answer
        ident = call.member or answer.get("MemberId") or ""
        member = history.members.get(ident)
        epoch = answer["MemberEpoch"]
        if member is None or epoch < 0:
            return
        history.interval = answer.get("HeartbeatIntervalMs") or history.interval
        if call.key == STREAMS_HEARTBEAT:
            self._statuses(call)
        current = history.current
        if current is not None and epoch < current.number and call.generation == JOINS and _is_over(current, member):
            tally(self.before, current)
            self.before = current = None
            history.restart(call.asked_at)
            member.gone = None
        if current is None or epoch > current.number:
            current = self._raise(epoch, call)
        member.generation = epoch
        given = _given(call)
        if epoch == current.number and self._is_early(current, member, given, call):
            self.early[ident] = member.assignment = given or {}
            return
        if given is not None:
            member.assignment = given
            current.assignment[ident] = given
            current.assigned = call.answered
        if epoch == current.number:
            self._reached(current, member, call)

    def _statuses(self, call: Call) -> None:
        """What a streams group is told beside the error code."""
        told = {one["StatusCode"]: one["StatusDetail"] for one in (call.answer or {}).get("Status") or ()}
        for code, detail in told.items():
            known = self.history.statuses.get(code)
            if known is None:
                self.history.statuses[code] = Status(detail[:DETAIL], call.proof, call.proof)
            else:
                known.last, known.over = call.proof, None
                known.count += 1
        for code, known in self.history.statuses.items():
            if code not in told and known.over is None:
                known.over = call.proof

    def finish(self) -> None:
        """Ends the history with the capture."""
        current = self.history.current
        if current is None or not current.by_epochs:
            return
        tally(self.before, current)
        current.endings = [cause for cause in self.causes if cause.departure is not None]
        if current.members and all(member.gone is not None for member in current.members.values()):
            current.emptied = max((cause.time for cause in current.endings), default=None)

    def _raise(self, epoch: int, call: Call) -> Generation:
        """Begins an epoch that an answer names first."""
        history, at = self.history, call.answered_at
        assert at is not None
        previous = history.current
        if previous is not None:
            tally(self.before, previous)
        causes = [cause for cause in self.causes if cause.time <= at]
        joiner = call.generation == JOINS
        adopted = previous is None and not joiner
        if not causes and previous is not None:
            causes = [self._silent(call)]
        self.causes = []
        causes.sort(key=lambda cause: cause.time)
        began = causes[0].time if causes else call.asked_at
        current = Generation(
            epoch, began, at, formed_by=call.answered, causes=causes, settled=True, by_epochs=True, adopted=adopted
        )
        current.whole = not adopted and (previous is None or previous.whole)
        if previous is not None:
            previous.ended = began
            previous.endings = [cause for cause in causes if cause.departure is not None]
            current.members = {ident: one for ident, one in previous.members.items() if one.gone is None}
            current.assignment = {ident: given for ident, given in previous.assignment.items()
                                  if ident in current.members}  # fmt: skip
            alive = {ident for ident, one in history.members.items() if one.gone is None} if self.early else set()
            current.assignment.update({ident: given for ident, given in self.early.items() if ident in alive})
            if not current.members and previous.members:
                previous.emptied = max((cause.time for cause in previous.endings), default=None)
        self.before, history.current, self.early = previous, current, {}
        history.add_generation(current)
        return current

    def _is_early(self, current: Generation, member: TrackedMember, given: Assignment | None, call: Call) -> bool:
        """Whether an answer with the current epoch already prepares the next: a member that comes in while others
        still hold its part, or one that gives up a part before it may go on. What raised the epoch is known by then."""
        if not any(cause.member is member or member.id in current.members for cause in self.causes):
            return False
        if call.generation == JOINS:
            return member.id not in current.members and call.instance is None
        held = _partitions(current.assignment.get(member.id))
        return given is not None and _partitions(given) < held

    def _silent(self, call: Call) -> Cause:
        """If the capture shows no member that came or left, the one that was silent longest was evicted."""
        history, at = self.history, call.answered_at or call.asked_at
        patience = (history.interval or 5000) * MISSED * 1_000_000
        quiet = [
            member
            for member in (history.current.members.values() if history.current else ())
            if member.gone is None and member.contact is not None and at - member.contact.time > patience
        ]
        if not quiet:
            return Cause(call.asked_at, "unseen", "", (call.proof,))
        member = min(quiet, key=lambda one: one.contact.time if one.contact else 0)
        assert member.contact is not None
        departure = Departure("evicted", at, (member.contact.ref, call.proof), certain=False)
        history.part(member, departure)
        return Cause(at, "evicted", member.label, departure.refs, departure, member)

    def _reached(self, current: Generation, member: TrackedMember, call: Call) -> None:
        at = call.answered_at
        assert at is not None
        if member.id not in current.joins and (member.joined_at or 0) <= (current.formed or at):
            current.joins[member.id] = Join(member, call.asked_at, call.asked, at, call.answered)
            current.done = max(current.done or 0, at)
        current.members[member.id] = member
        if member.assignment is not None:
            current.assignment.setdefault(member.id, member.assignment)

    def _subscribed(self, call: Call, member: TrackedMember, topics: tuple[str, ...]) -> None:
        if member.topics and topics != member.topics and call.generation:
            words = [f"+{topic}" for topic in topics if topic not in member.topics]
            words += [f"-{topic}" for topic in member.topics if topic not in topics]
            detail = "subscription " + " ".join(words)
            self.causes.append(Cause(call.asked_at, "rejoined", member.label, (call.asked,), None, member, detail))
        member.topics = topics


def _is_over(current: Generation, joining: TrackedMember) -> bool:
    """Whether all members of an epoch have left, or it was a generation of another type of group."""
    return not current.by_epochs or all(one.gone is not None or one is joining for one in current.members.values())


def _partitions(given: Assignment | None) -> set[tuple[str, int]]:
    return {(topic, part) for topic, parts in (given or {}).items() for part in parts}


def _given(call: Call) -> Assignment | None:
    """What the answer assigns; None when it leaves everything as it was."""
    answer: dict[str, Any] = call.answer or {}
    if call.key == CONSUMER_HEARTBEAT or call.key == SHARE_HEARTBEAT:
        assignment = answer.get("Assignment")
        if assignment is None:
            return None
        return {call.topic(one["TopicId"]): list(one["Partitions"]) for one in assignment["TopicPartitions"]}
    tasks = answer.get("ActiveTasks")
    if tasks is None:
        return None
    return {f"task {one['SubtopologyId']}": list(one["Partitions"]) for one in tasks}
