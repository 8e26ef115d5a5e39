"""Classic groups as a capture shows them: JoinGroup, SyncGroup, Heartbeat, LeaveGroup to generations and departures.

A JoinGroup is answered with the number of the generation that it helped to make, so joins are gathered by that number.
A session is renewed by a heartbeat (also one that is told to rejoin), an answered join or sync and an accepted commit,
and does not end while a member waits in JoinGroup or SyncGroup (Kafka's group-coordinator: ClassicGroup,
GroupMetadataManager). What no frame says, as an eviction, follows from these and from who is missing afterwards.
"""

from __future__ import annotations

from typing import Any

from kwire.analyze.calls import COMMITS, HEARTBEAT, JOIN, LEAVE, SYNC, Call
from kwire.analyze.causes import finish, settle, tally
from kwire.analyze.findings import Reference
from kwire.analyze.history import Cause, Generation, History, Join
from kwire.analyze.members import Contact, Departure, TrackedMember
from kwire.analyze.payload import assigned, subscribed
from kwire.schema import codes


class ClassicHistory:
    """asked(call) and answered(call) are called in the order of time; the history gets what they show."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.told: dict[str, tuple[int, Reference]] = {}  # members that were told to rejoin, by id
        self.before: Generation | None = None  # the generation before the current one

    def asked(self, call: Call) -> None:
        """A request is there."""
        if call.key == JOIN:
            self._join_asked(call)
        elif call.key == SYNC and not call.error:
            self._sync_asked(call)
        elif call.key == LEAVE:
            self._leave(call)
        elif call.key == HEARTBEAT:
            self._heartbeat(call)

    def answered(self, call: Call) -> None:
        """It was answered."""
        if call.key == JOIN and not call.error:
            self._join_answered(call)
        elif call.key == SYNC and not call.error:
            self._sync_answered(call)
        elif call.key in COMMITS and call.member and call.member in self.history.members:
            self._commit(call)
        elif call.key == JOIN and call.error == codes.MEMBER_ID_REQUIRED:
            self.history.ids[str((call.answer or {}).get("MemberId", ""))] = call.proof
            if len(self.history.ids) > 10_000:
                self.history.ids.pop(next(iter(self.history.ids)))

    def finish(self, end: int) -> None:
        """The capture is over."""
        current = self.history.current
        if current is not None and not current.by_epochs:
            settle(self.history, self.before, current)
            tally(self.before, current)
            finish(self.history, end)

    def _join_asked(self, call: Call) -> None:
        history = self.history
        if call.error:
            return
        number = call.answer["GenerationId"] if call.answer else None
        ident = call.answer["MemberId"] if call.answer else call.member
        if not ident and call.answered_at is None:
            ident = f"(no id yet) {call.connection}"
        if not ident:
            return
        history.ids.pop(ident, None)
        history.protocol_type = call.body["ProtocolType"] or history.protocol_type
        current = history.current
        member = self._seen(ident, call)
        topics = subscribed(next((one["Metadata"] for one in call.body["Protocols"]), None))
        changed = _changed(member.topics, topics) if member.topics and member.gone is None else ""
        member.topics = topics
        member.session = call.body["SessionTimeoutMs"]
        member.rebalance = call.body.get("RebalanceTimeoutMs", member.session)
        member.said, member.polled = call.asked, call.asked_at
        if number is not None and current is not None and self._anew(current, number, ident, call):
            settle(history, self.before, current)
            tally(self.before, current)
            self.before, current = None, None
            history.restart(call.asked_at)
            member = self._seen(ident, call)
            member.gone = None
        if number is not None and current is not None and number <= current.number:
            if call.instance and not call.body["MemberId"] and ident not in current.members:
                self._returned(current, member, call)
            return  # otherwise asked again in the same generation
        forming = history.forming
        if forming is None:
            forming = history.forming = Generation(-1 if number is None else number, call.asked_at)
        elif number is not None:
            forming.number = number
        told = self.told.get(ident)
        member.parked = call.asked_at
        known = forming.joins.get(ident)
        fresh = current is None or ident not in current.members
        join = Join(member, call.asked_at, call.asked, None, None, call.body.get("Reason") or "",
                    told[1] if told else None, fresh, changed)  # fmt: skip
        if known is None:
            forming.joins[ident] = join
        else:  # asked again before it was answered
            join.asked_at, join.asked = known.asked_at, known.asked
            forming.joins[ident] = join

    def _anew(self, current: Generation, number: int, ident: str, call: Call) -> bool:
        """Whether a join shows that the coordinator had forgotten the group: deleted, expired, or lost."""
        if number < current.number:
            return True
        stranger = ident not in current.members and not call.instance
        return number == current.number and current.whole and current.synced != {} and stranger

    def _returned(self, current: Generation, member: TrackedMember, call: Call) -> None:
        """A static member takes its place again under another id; the generation stands (KIP-345)."""
        settle(self.history, self.before, current)
        tally(self.before, current)
        current.returns.append(Cause(call.asked_at, "returned", member.label, (call.asked,), None, member))
        for ident, old in list(current.members.items()):
            if old.instance == call.instance and ident in current.assignment:
                current.assignment[member.id] = current.assignment.pop(ident)

    def _join_answered(self, call: Call) -> None:
        history, answer, at = self.history, call.answer, call.answered_at
        if answer is None or at is None:
            asked = self.history.members.get(call.member)
            if asked is not None:
                asked.parked = None
            return
        number, ident = answer["GenerationId"], answer["MemberId"]
        member = self._seen(ident, call)
        member.parked = None
        member.contact = Contact(at, "JoinGroup", call.proof)
        member.beat_at = None
        current, forming = history.current, history.forming
        if forming is not None and (current is None or number > current.number):
            forming.number, forming.formed, forming.formed_by = number, at, call.answered
            self._form(forming)
            current = forming
        if current is None or number != current.number:
            return
        join = current.joins.get(ident)
        if join is not None:
            join.answered_at, join.answered = at, call.answered
        member.joined_at = member.joined_at or at
        member.generation = number
        current.members[ident] = member
        current.leader = answer["Leader"] or current.leader
        current.protocol = answer["ProtocolName"] or current.protocol
        for other in answer["Members"]:
            named = history.named(other["MemberId"], other.get("GroupInstanceId"))
            named.topics = subscribed(other["Metadata"]) or named.topics
            named.generation = number
            current.members[named.id] = named
            current.whole = True
        if current.whole:
            settle(history, self.before, current)
            member.seat.enter(at)

    def _form(self, forming: Generation) -> None:
        """A generation stands: the joins that were gathered made it."""
        history = self.history
        previous = history.current
        if previous is not None:
            settle(history, self.before, previous)
            tally(self.before, previous)
        history.forming, history.current, self.before = None, forming, previous
        history.add_generation(forming)
        forming.told = min((ref for _, ref in self.told.values()), key=lambda ref: ref.time, default=None)
        self.told = {}

    def _sync_asked(self, call: Call) -> None:
        current = self.history.current
        member = self.history.members.get(call.member)
        if member is not None:
            member.parked = call.asked_at
        if current is None or call.generation != current.number:
            self._adopt(call)
            current = self.history.current
        given = call.body["Assignments"]
        if given and current is not None and call.generation == current.number:
            current.assignment = {one["MemberId"]: assigned(one["Assignment"]) for one in given}
            current.assigned = call.asked
            current.whole = True
            current.leader = current.leader or call.member
            for ident in current.assignment:
                current.members[ident] = self.history.named(ident, None)

    def _sync_answered(self, call: Call) -> None:
        history, at = self.history, call.answered_at
        member = self._seen(call.member, call)
        member.parked = None
        current = history.current
        if at is None or current is None or call.generation != current.number:
            return
        member.contact = Contact(at, "SyncGroup", call.proof)
        member.assignment = assigned((call.answer or {}).get("Assignment"))
        current.members.setdefault(member.id, member)
        current.synced[member.id] = at
        if all(cause.member is not member for cause in current.returns):
            current.done = max(current.done or 0, at)
        current.assignment.setdefault(member.id, member.assignment)

    def _heartbeat(self, call: Call) -> None:
        history = self.history
        if call.answered_at is None and call.member not in history.members:
            return
        if call.error not in (0, codes.REBALANCE_IN_PROGRESS):
            return
        member = self._seen(call.member, call)
        if call.error:
            self.told.setdefault(member.id, (call.asked_at, call.proof))
        elif history.current is None or (call.generation or 0) > history.current.number:
            self._adopt(call)
        gap = None if member.beat_at is None else call.asked_at - member.beat_at
        member.beat_at = call.asked_at
        member.contact = Contact(call.asked_at, "heartbeat", call.asked)
        member.seat.beats.add(gap, call.asked)
        member.seat.ticks.add(call.asked_at)
        member.seat.enter(call.asked_at)
        current = history.current
        if current is not None and call.generation == current.number:
            current.members.setdefault(member.id, member)

    def _commit(self, call: Call) -> None:
        member = self.history.members[call.member]
        if not call.error:
            member.contact = Contact(call.asked_at, "commit", call.asked)
        elif call.error == codes.REBALANCE_IN_PROGRESS:
            self.told.setdefault(member.id, (call.asked_at, call.proof))

    def _leave(self, call: Call) -> None:
        """Members leave, by themselves or by an administrator's hand."""
        named: list[dict[str, Any]] = call.body.get("Members") or [{"MemberId": call.member}]
        results = (call.answer or {}).get("Members") or []
        for number, one in enumerate(named):
            instance = one.get("GroupInstanceId")
            holder = self.history.instances.get(instance) if instance else None
            ident = one["MemberId"] or (holder.id if holder else "")
            failed = results[number]["ErrorCode"] if number < len(results) else call.error
            if failed or not ident:
                continue
            member = self._seen(ident, call) if one["MemberId"] else self.history.members[ident]
            own = call.client_id == member.seat.client_id
            self.history.part(
                member,
                Departure("left" if own else "removed", call.asked_at, (call.asked,), one.get("Reason") or "",
                          by="" if own else call.client_id),
            )  # fmt: skip

    def _adopt(self, call: Call) -> None:
        """The capture begins in the middle of a generation."""
        history = self.history
        if call.generation is None or call.generation < 0:
            return
        if history.current is not None and call.generation <= history.current.number:
            return
        forming = history.forming
        if forming is not None and any(join.member.parked is None for join in forming.joins.values()):
            found, forming.number, forming.formed = (
                forming,
                call.generation,
                call.asked_at,
            )  # the answers cannot be read
        else:
            found = Generation(call.generation, call.asked_at, adopted=True)
        if history.current is not None:
            settle(history, self.before, history.current)
            tally(self.before, history.current)
        self.before, history.current = history.current, found
        history.add_generation(found)
        history.forming = None
        self.told = {}

    def _seen(self, ident: str, call: Call) -> TrackedMember:
        member = self.history.member(ident, call)
        if call.instance:
            member.instance = call.instance
            holder = self.history.instances.get(call.instance)
            if holder is not None and holder is not member and call.key == JOIN and holder.gone is None:
                self.history.part(holder, Departure("replaced", call.asked_at, (call.asked,), by=member.id))
            if holder is None or call.key == JOIN:
                self.history.instances[call.instance] = member
        return member


def _changed(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """How a subscription changed, as "+orders -carts"."""
    words = [f"+{topic}" for topic in after if topic not in before]
    return " ".join(words + [f"-{topic}" for topic in before if topic not in after])
