"""Heartbeats of consumer groups (KIP-848) held against the coordinator's checks.

Epochs and assignments depend on topics and settings that a capture need not show, so each answer's are adopted; what is
compared is whether the checks for member, instance and epoch let the next heartbeat pass. The session timeout is the
broker's secret too: a member that was silent for several heartbeats may be unknown without contradicting anything.
"""

from __future__ import annotations

from kwire.analyze.calls import CONSUMER_HEARTBEAT, Call
from kwire.analyze.history import Contradiction, History
from kwire.analyze.replay import MOST, NOT_REACHED
from kwire.coordinator.consumer.bodies import owned_of
from kwire.coordinator.consumer.checks import JOIN, check_member, unknown_member
from kwire.coordinator.consumer.members import ConsumerMember, Members
from kwire.coordinator.consumer.reconciliation import Hold, MemberState
from kwire.coordinator.types import MS, Check
from kwire.schema import codes

MISSED = 3  # heartbeats
INTERVAL_MS = 5_000  # unless an answer says another
MOST_MEMBERS = 20_000


class EpochReplay:
    """asked(call) and answered(call) in the order of time. A call gets the check that decided it."""

    def __init__(self, history: History, era: tuple[int, int]) -> None:
        self.history, self.era = history, era
        self._members = Members()
        self._out: dict[str, None] = {}  # members that are known to be gone

    def give_up(self) -> None:
        """A heartbeat that cannot be read may have changed what its member has."""
        self._members = Members()
        self._out = {}

    def asked(self, call: Call) -> None:
        """A heartbeat is there, and what will be answered is known."""
        epoch, ident = call.generation, call.member
        if call.cut:
            self.give_up()
        if call.key != CONSUMER_HEARTBEAT or call.answered_at is None or epoch is None or epoch < 0 or not ident:
            return
        seen = self.history.members.get(ident)
        if seen is not None and seen.gone is not None:
            self._drop(ident)
        if call.error in NOT_REACHED or not (ident in self._members.by_id or ident in self._out or epoch == JOIN):
            return  # it was there before the capture
        owned = owned_of(call.body.get("TopicPartitions"))
        check = check_member(self.history.name, self._members, call.body, owned, self.era)
        error = check.error if check else 0
        if error == call.error:
            call.check = check
            self.history.agreed += 1
        elif not error and call.error in (codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH):
            if self._was_silent(call):
                call.check = unknown_member(self.history.name, ident) if call.error == codes.UNKNOWN_MEMBER_ID else None
            else:
                self._contradicts(call, Check(8, "accepted", 0, f"member epoch {epoch} is the one that it was given"))
            self._drop(ident)
        elif check is not None and not call.error:
            self._contradicts(call, check)

    def answered(self, call: Call) -> None:
        """It was answered: what the answer gives is what the member has."""
        answer, epoch = call.answer, call.generation
        if call.key != CONSUMER_HEARTBEAT or call.cut or not call.fine or answer is None or epoch is None:
            return
        ident = call.member or answer.get("MemberId") or ""
        member = self._members.by_id.get(ident)
        if epoch < 0:
            self._left(ident, member, epoch)
            return
        if member is None:
            if len(self._members.by_id) >= MOST_MEMBERS or not ident:
                return
            holder = self._members.static(call.instance)
            if holder is not None:
                self._members.take_out(holder)
            member = ConsumerMember(ident, call.instance)
            self._members.put(member)
        self._out.pop(ident, None)
        member.heard = call.asked_at
        given = owned_of((answer.get("Assignment") or {}).get("TopicPartitions"))
        assigned = member.hold.assigned if given is None else dict.fromkeys(given, answer["MemberEpoch"])
        before = member.hold.epoch if member.hold.epoch != answer["MemberEpoch"] else member.hold.previous_epoch
        self._members.hold(member, Hold(MemberState.STABLE, answer["MemberEpoch"], before, assigned))

    def _left(self, ident: str, member: ConsumerMember | None, epoch: int) -> None:
        if member is None:
            return
        if epoch == -1:
            self._drop(ident)
        else:
            self._members.hold(member, member.hold._replace(epoch=epoch))

    def _drop(self, ident: str) -> None:
        member = self._members.by_id.get(ident)
        if member is not None and member.hold.epoch >= 0:
            self._members.take_out(member)
            if len(self._out) < MOST_MEMBERS:
                self._out[ident] = None

    def _was_silent(self, call: Call) -> bool:
        member = self._members.by_id[call.member]
        patience = (self.history.interval or INTERVAL_MS) * MISSED * MS
        return call.asked_at - member.heard > patience

    def _contradicts(self, call: Call, check: Check) -> None:
        history = self.history
        history.disagreed += 1
        if len(history.contradictions) < MOST:
            member = history.members.get(call.member)
            label = member.label if member else call.client_id
            history.contradictions.append(Contradiction(call.slim(), label, check))
