"""One classic group in the coordinator's model, fed with what a capture shows: single requests, or a whole generation
where the capture begins in the middle or contradicts the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kwire.analyze.calls import COMMITS, HEARTBEAT, JOIN, LEAVE, SYNC, Call
from kwire.coordinator import classic, heartbeat, heartbeat_rules, joins, preconditions
from kwire.coordinator.committed_offsets import Offsets
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.group import Group, GroupState, Member
from kwire.coordinator.group_kinds import Commit, kind_of
from kwire.coordinator.types import MS, Check, ClientIdentity, GroupSettings

HANDLERS: dict[int, Callable[[Context, CoordinatorRequest], Reply | None]] = {
    JOIN: joins.join, SYNC: joins.sync, HEARTBEAT: heartbeat.heartbeat, LEAVE: joins.leave,
}  # fmt: skip
ANY = 2**31 - 1
LATE_MS = 50  # by which a broker may see a request later than the capture does
NEVER_MS = 10**9  # the session timeout of a member of which none is known; and how long the first join is held back


class KnownMember(NamedTuple):
    """A member as far as the capture shows it. session, rebalance: ms; None when not seen."""

    id: str
    instance: str | None
    client_id: str
    host: str
    session: int | None
    rebalance: int | None
    metadata: bytes


class Model:
    """Times are ns. Deadlines come LATE_MS late, as requests reach a broker after they were captured."""

    def __init__(self, name: str, era: tuple[int, int]) -> None:
        settings = GroupSettings(era, 0, ANY, NEVER_MS, ANY)
        self.name = name
        self._new_id = ""
        rules = heartbeat_rules.of_era(era)
        self.context = Context(settings, lambda _: self._new_id, None, Offsets(), preconditions.of_era(era), rules)
        self.context.purgatory.kinds |= classic.kinds(self.context)
        self._tickets = 0

    @property
    def group(self) -> Group | None:
        """The group; None when the model knows of none."""
        found = self.context.groups.get(self.name)
        return found if isinstance(found, Group) else None

    def tick(self, now: int) -> None:
        """Advances the time; deadlines come a little late."""
        self.context.purgatory.tick(now - LATE_MS * MS)
        self.context.now = max(self.context.now, now)
        self.context.events.clear()

    def ask(self, call: Call) -> tuple[int, Check | None]:
        """The ticket under which a request is answered, and the check that decided when it is answered at once."""
        self.tick(call.asked_at)
        self._tickets += 1
        if call.key in COMMITS:
            return self._tickets, self._commit(call)
        body = call.body
        if call.key == JOIN:
            self._new_id = str((call.answer or {}).get("MemberId") or f"unseen-{self._tickets}")
        caller = ClientIdentity(call.client_id, call.host)
        request = CoordinatorRequest(self._tickets, call.api, call.version, body, caller)
        reply = HANDLERS[call.key](self.context, request)
        return self._tickets, None if reply is None else reply.check

    def _commit(self, call: Call) -> Check:
        group = self.group
        if group is None:
            return Check(5, "group", 0, f"there is no group {self.name}")
        generation = -1 if call.generation is None else call.generation
        who = Commit(call.member, call.instance, generation, call.api != "OffsetCommit", call.version)
        return kind_of(group).may_commit(self.context, group, who)

    def answers(self) -> dict[int, int]:
        """Errors by ticket of requests that waited and are answered now."""
        ready, self.context.answers = self.context.answers, []
        return {answer.ticket: answer.body.get("ErrorCode", 0) for answer in ready}

    def form(self, now: int) -> list[str]:
        """The capture shows that the join phase is over; returns who had not rejoined."""
        group = self.group
        self.tick(now)
        self.context.purgatory.tick(now + LATE_MS * MS)  # where the phase's time was over, that is why
        if group is None or group.state is not GroupState.PREPARING:
            return []
        absent = [member.id for member in group.missing()]
        classic.complete_join(self.context, group)
        return absent

    def stand(self, now: int) -> None:
        """The capture shows that the assignment was given."""
        group = self.group
        self.tick(now)
        if group is not None and group.state is GroupState.COMPLETING:
            group.go(GroupState.STABLE, now)
            classic.propagate(self.context, group, 0, "as seen")

    def rebalance(self, now: int) -> None:
        """The group rebalances, as the capture shows."""
        group = self.group
        self.tick(now)
        if group is not None and group.can_rebalance and group.members:
            classic.prepare(self.context, group, "as seen", None, "seen")

    def drop(self, member: str, now: int) -> None:
        """A member is gone, as the capture shows."""
        group = self.group
        self.tick(now)
        if group is not None and member in group.members:
            classic.evict(self.context, group, group.members[member], "as seen")

    def adopt(
        self, number: int, leader: str, protocol: str, kind: str, members: Iterable[KnownMember], now: int
    ) -> None:
        """A generation that was just formed: all its members are to send SyncGroup."""
        self.context.now = max(self.context.now, now)
        group = self.context.groups[self.name] = Group(self.name, since=now)
        for one in members:
            session = NEVER_MS if one.session is None else one.session
            rebalance = NEVER_MS if one.rebalance is None or one.rebalance < 0 else one.rebalance
            member = Member(one.id, one.instance, one.client_id, one.host, session, rebalance, kind,
                            ((protocol, one.metadata),))  # fmt: skip
            group.add(member)
            classic.keep_alive(self.context, group, member, "JoinGroup")
        group.leader = leader or group.leader
        group.go(GroupState.PREPARING, now)
        group.generation = number - 1
        group.next_generation(now)
        group.unsynced.update(group.members)
