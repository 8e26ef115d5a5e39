"""A capture's requests put to the coordinator's model, in the order in which the broker had them, and the answers
compared.

Where they agree, the model says which check decided. Where they differ for no known reason, the capture contradicts
Kafka's rules as the model has them; the contradiction is kept, and the model adopts what was seen. Until the model
knows all members of a generation, as in a capture that begins in the middle, nothing is compared.
"""

from __future__ import annotations

from kwire.analyze.calls import COMMITS, HEARTBEAT, JOIN, LEAVE, SYNC, Call
from kwire.analyze.history import Contradiction, History
from kwire.analyze.model import LATE_MS, KnownMember, Model
from kwire.coordinator.group import GroupState
from kwire.coordinator.types import MS, Check
from kwire.schema import codes

SLACK = LATE_MS * MS  # ns within which the order of requests is not certain
NOT_REACHED = {
    codes.OFFSET_OUT_OF_RANGE,
    codes.REQUEST_TIMED_OUT,
    codes.COORDINATOR_LOAD_IN_PROGRESS,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
    codes.INVALID_GROUP_ID,
    codes.INVALID_SESSION_TIMEOUT,
    codes.TOPIC_AUTHORIZATION_FAILED,
    codes.GROUP_AUTHORIZATION_FAILED,
    codes.UNSUPPORTED_VERSION,
    codes.INVALID_REQUEST,
    codes.GROUP_MAX_SIZE_REACHED,
}  # errors that come before the group's rules, or from outside
MOST = 20
BROKEN = (ValueError, KeyError, IndexError, TypeError, StopIteration)  # what the model does with what no client sends


class Replay:
    """asked(call) and answered(call) in the order of time. A call gets the check that decided it."""

    def __init__(self, history: History, era: tuple[int, int]) -> None:
        self.history = history
        self.era = era
        self.model: Model | None = None
        self._begun = False
        self._tickets: dict[int, int] = {}  # by id of the call, which the sequence of answers keeps alive
        self._errors: dict[int, int] = {}  # by ticket
        self._changed = 0  # when a request came that changes the group, ns

    def give_up(self) -> None:
        """Forgets the group, since a request that cannot be read may have changed it."""
        self.model = None

    def asked(self, call: Call) -> None:
        """A request is there, and what will be answered is known."""
        if not self._begun:
            self._begun = True
            if call.key == JOIN and not call.member:
                self.model = Model(self.history.name, self.era)
        if call.cut and call.key in (JOIN, SYNC, LEAVE):
            self.model = None
        if self.model is None or call.error in NOT_REACHED or (call.key in COMMITS and not call.member):
            return
        if call.answered_at is None and call.key != JOIN:
            return
        try:
            self._ask(call, self.model)
        except BROKEN:
            self.model = None

    def answered(self, call: Call) -> None:
        """A request was answered."""
        ticket = self._tickets.pop(id(call), None)
        try:
            if call.key == JOIN and call.fine and not call.cut:
                self._joined(call, ticket)
            elif call.key == SYNC and ticket is not None and self.model is not None and call.answered_at is not None:
                if call.fine and self._error(ticket) is None:
                    self.model.stand(call.answered_at)
                self._settle(call, ticket)
        except BROKEN:
            self.model = None

    def _ask(self, call: Call, model: Model) -> None:
        ticket, check = model.ask(call)
        if check is None:
            if call.answered_at is not None:
                self._tickets[id(call)] = ticket
            self._changed = call.asked_at
            return
        call.check = check
        changed = self._changed
        if call.key in (JOIN, LEAVE, SYNC):
            self._changed = call.asked_at
        if call.answered_at is None:
            return
        if check.error != call.error and call.key not in (JOIN, LEAVE, SYNC):
            model.tick(call.asked_at + 2 * SLACK)  # what was due may have come before it
            _, again = model.ask(call)
            if again is not None and again.error == call.error:
                call.check = check = again
        if check.error == call.error:
            self.history.agreed += 1
            return
        call.check = None
        group = model.group
        if call.asked_at - changed <= SLACK or (group is not None and call.asked_at - group.since <= SLACK):
            return
        if group is not None and group.state is GroupState.COMPLETING and call.key == HEARTBEAT:
            return  # up to 2.6 such heartbeats were refused
        if call.error != codes.REBALANCE_IN_PROGRESS or check.error:
            self._contradicts(call, check)
        self._adopt(call, model, check)

    def _adopt(self, call: Call, model: Model, check: Check) -> None:
        """Lets the model adopt what was seen."""
        if call.error == codes.REBALANCE_IN_PROGRESS and not check.error:  # somebody whom the capture does not show
            model.rebalance(call.asked_at)
        elif call.error in (codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID) and not check.error:
            model.drop(call.member, call.asked_at)
        else:
            self.model = None

    def _joined(self, call: Call, ticket: int | None) -> None:
        """A join was answered with a generation."""
        answer, at = call.answer, call.answered_at
        if answer is None or at is None:
            self.model = None
            return
        model, number = self.model, answer["GenerationId"]
        if model is not None and ticket is not None:
            if self._error(ticket) is None:
                absent = model.form(at)
                group = model.group
                if absent and group is not None:
                    self._waited(call, absent)
            if not self._settle(call, ticket):
                model = self.model = None
        group = model.group if model is not None else None
        if group is not None and group.generation != number and group.state is GroupState.COMPLETING:
            group.generation = number
        members = answer["Members"]
        if members and (group is None or {one["MemberId"] for one in members} != set(group.members)):
            if group is not None and group.generation == number and len(members) < len(group.members):
                self._contradicts(call, None)
            self._seed(call, number)

    def _seed(self, call: Call, number: int) -> None:
        """The leader's answer names all members: the model begins here."""
        answer, at = call.answer or {}, call.answered_at or call.asked_at
        known = []
        for one in answer["Members"]:
            member = self.history.members.get(one["MemberId"])
            seat = member.seat if member else None
            known.append(KnownMember(
                one["MemberId"], one.get("GroupInstanceId"), seat.client_id if seat else "", seat.host if seat else "",
                member.session if member else None, member.rebalance if member else None, one["Metadata"],
            ))  # fmt: skip
        self.model = Model(self.history.name, self.era)
        kind = call.body["ProtocolType"]
        self.model.adopt(number, answer["Leader"], answer["ProtocolName"] or "", kind, known, at)
        self._tickets, self._errors, self._changed = {}, {}, at

    def _error(self, ticket: int) -> int | None:
        """What the model answered to a request that waited; None when it still waits."""
        if self.model is not None:
            self._errors.update(self.model.answers())
        if len(self._errors) > 100_000:
            self._errors.clear()
        return self._errors.get(ticket)

    def _settle(self, call: Call, ticket: int) -> bool:
        """Compares what a request that waited was answered; whether it is the same."""
        error = self._error(ticket)
        self._errors.pop(ticket, None)
        if error is None or error == call.error:
            self.history.agreed += error is not None
            return error is not None
        if call.answered_at is not None and call.answered_at - self._changed > SLACK:
            self._contradicts(call, Check(0, "", error, "the wait ended so"))
        return False

    def _waited(self, call: Call, absent: list[str]) -> None:
        """Notes a generation that formed although, by the rules, a member was still waited for."""
        known = [self.history.members[one] for one in absent if one in self.history.members]
        names = [member.label for member in known if member.gone is None and member.seat.host]
        if not names:  # of the others the capture shows nothing
            return
        why = f"the join phase would have waited for {', '.join(names[:3]) or 'a member'}"
        self._contradicts(call, Check(0, "waiting", -1, why))

    def _contradicts(self, call: Call, check: Check | None) -> None:
        history = self.history
        history.disagreed += 1
        if len(history.contradictions) < MOST:
            member = history.members.get(call.member)
            label = member.label if member else call.client_id
            history.contradictions.append(Contradiction(call.slim(), label, check))
