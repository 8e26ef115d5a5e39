"""A group's life as a capture shows it: members, generations, what went wrong; filled by classic.py and epochs.py.

Everything is bounded: of generations the latest are kept, of problems the first, and the rest is counted.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from kwire.analyze.calls import Call
from kwire.analyze.findings import Reference
from kwire.analyze.members import Assignment, Contact, Departure, Seats, TrackedMember, client_of
from kwire.coordinator.types import Check

MOST_GENERATIONS = 2000
MOST_PROBLEMS = 1000
MOST_MEMBERS = 20_000
MOST_MOVES = 200
COMMITTED = 10_000  # partitions whose last commit is kept


@dataclass(slots=True)
class Join:
    """A member's way into a generation. told: the answer that said that the group rebalances, before it joined; fresh:
    it was not in the generation before."""

    member: TrackedMember
    asked_at: int
    asked: Reference
    answered_at: int | None = None
    answered: Reference | None = None
    reason: str = ""
    told: Reference | None = None
    fresh: bool = False
    changed: str = ""  # its subscription, as "+orders"


@dataclass(slots=True)
class Cause:
    """What made a group rebalance. kind: joined, back, replaced, rejoined, or a Departure's kind, or unseen."""

    time: int
    kind: str
    label: str
    refs: tuple[Reference, ...] = ()
    departure: Departure | None = None
    member: TrackedMember | None = None
    detail: str = ""


@dataclass(slots=True)
class Move:
    """A partition that another member has now; labels, None where nobody had or has it."""

    topic: str
    partition: int
    source: str | None
    target: str | None


@dataclass(slots=True)
class Generation:
    """A generation, or in groups with epochs an epoch. Times are ns: began with its first cause, formed when the joins
    were answered, done when all members had their parts, ended when the next one began. whole: all members are known.
    given: how many partitions each has; moves: those that others have now, moved how many somebody had to give up."""

    number: int
    began: int
    formed: int | None = None
    done: int | None = None
    ended: int | None = None
    joins: dict[str, Join] = field(default_factory=dict)
    members: dict[str, TrackedMember] = field(default_factory=dict)
    whole: bool = False
    leader: str = ""
    protocol: str = ""
    formed_by: Reference | None = None
    causes: list[Cause] = field(default_factory=list)
    assignment: dict[str, Assignment] = field(default_factory=dict)
    assigned: Reference | None = None
    synced: dict[str, int] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    moved: int = 0
    returns: list[Cause] = field(default_factory=list)  # static members that took a place in it, without a rebalance
    unmet: list[str] = field(default_factory=list)  # for whom it waited in vain
    told: Reference | None = None  # the first answer that said that the group rebalances
    endings: list[Cause] = field(default_factory=list)  # how its members went
    emptied: int | None = None
    by_epochs: bool = False  # of a group whose members only send heartbeats
    adopted: bool = False  # it began before the capture, or unseen
    settled: bool = False
    tallied: bool = False

    @property
    def weight(self) -> int:
        """How much it holds."""
        parts = sum(len(parts) for topics in self.assignment.values() for parts in topics.values())
        return len(self.members) + 2 * len(self.joins) + len(self.synced) + len(self.given) + len(self.causes) + parts

    def outline(self) -> None:
        """Keeps what its line needs."""
        last = self.last_join
        self.joins = {last.member.id: last} if last else {}
        self.members = {ident: one for ident, one in self.members.items() if ident in (self.leader, *self.joins)}
        self.given = dict(sorted(self.given.items(), key=lambda item: -item[1])[:4])
        self.assignment, self.synced = {}, {}
        del self.causes[4:], self.endings[20:]

    @property
    def trigger(self) -> Cause | None:
        return self.causes[0] if self.causes else None

    @property
    def took(self) -> int | None:
        """ns from its cause until everybody could work again."""
        end = self.done or self.formed
        return None if end is None else max(end - self.began, 0)

    @property
    def waited(self) -> bool:
        """Whether somebody had to join who was in the generation before."""
        return any(not join.fresh for join in self.joins.values()) or bool(self.unmet)

    @property
    def last_join(self) -> Join | None:
        """The one that all others waited for."""
        joins = [join for ident, join in self.joins.items() if join.answered_at is not None or ident in self.members]
        return max(joins, key=lambda join: join.asked_at) if joins else None


@dataclass(slots=True)
class HistoryBudget:
    """What may be kept of all groups together."""

    members: int = 200_000
    problems: int = 20_000
    parts: int = 1_000_000  # members, joins and partitions of past generations


@dataclass(slots=True)
class Problem:
    """A request about a group that ended in an error or without an answer. What was known then is kept with it."""

    call: Call
    label: str
    member: TrackedMember | None
    contact: Contact | None
    current: Generation | None
    gone: Departure | None = None
    solved: Reference | None = None
    solved_at: int | None = None
    repeats: int = 0
    last: Reference | None = None
    taker: TrackedMember | None = None  # who holds the instance id now
    unstored: tuple[int, tuple[str, ...]] = (0, ())  # of a refused commit: how many partitions, of which topics

    @property
    def time(self) -> int:
        return self.call.answered_at or self.call.asked_at


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An answer that is not what the rules give. check: what they give and why; None: a member is missing."""

    call: Call
    label: str
    check: Check | None


@dataclass(slots=True)
class LastCommit:
    """The last offset committed for a partition."""

    offset: int
    time: int
    by: str
    ref: Reference


@dataclass(slots=True)
class Status:
    """What keeps a streams group from running, as heartbeats are told. over: the first that was not told so."""

    detail: str
    first: Reference
    last: Reference
    count: int = 1
    over: Reference | None = None


class History:
    """A group. kinds: classic, consumer, share, streams as they were met; protocol_type of classic ones."""

    def __init__(self, name: str, time: int, budget: HistoryBudget) -> None:
        self.name = name
        self.budget = budget
        self.kinds: Counter[str] = Counter()
        self.protocol_type = ""
        self.first = self.last = time
        self.calls = self.answers = 0
        self.errors: Counter[int] = Counter()
        self.members: dict[str, TrackedMember] = {}
        self.seats = Seats()
        self.instances: dict[str, TrackedMember] = {}
        self.generations: deque[Generation] = deque(maxlen=MOST_GENERATIONS)
        self.formed = 0
        self.current: Generation | None = None
        self.forming: Generation | None = None
        self.problems: list[Problem] = []
        self.unkept = 0  # problems beyond those
        self.open: dict[str, list[Problem]] = {}  # by label
        self.coordinators: Counter[str] = Counter()
        self.committed: dict[tuple[str, int], LastCommit] = {}
        self.commits: Counter[str] = Counter()  # by label
        self.contradictions: list[Contradiction] = []
        self.disagreed = 0
        self.agreed = 0  # answers that the model foretold
        self.deleted: Reference | None = None
        self.interval: int | None = None  # ms, what the coordinator asks for
        self.statuses: dict[int, Status] = {}  # of streams groups, by code
        self.ids: dict[str, Reference] = {}  # handed out by MEMBER_ID_REQUIRED and not used so far

    def member(self, ident: str, call: Call) -> TrackedMember:
        """The member of that id, who speaks on the call's connection."""
        known = self.members.get(ident)
        if known is None:
            seat = self.seats.of(call.client_id, call.host, call.instance, call.connection)
            known = self._add(TrackedMember(ident, seat, call.instance))
        else:
            seat = known.seat
            if not seat.host and call.client_id == seat.client_id:
                seat.host = call.host
            self.seats.meet(seat, call.connection)
        known.connection = call.connection
        return known

    def named(self, ident: str, instance: str | None) -> TrackedMember:
        """A member that others speak of."""
        known = self.members.get(ident)
        if known is None:
            client = client_of(ident)
            known = self._add(TrackedMember(ident, self.seats.of(client, "", instance, ""), instance))
        return known

    def _add(self, member: TrackedMember) -> TrackedMember:
        if len(self.members) >= MOST_MEMBERS or (self.budget.members <= 0 and self.members):
            self.members.pop(next(iter(self.members)))  # the one that is known longest
        else:
            self.budget.members -= 1
        self.members[member.id] = member
        member.seat.taken = True
        if len(member.seat.ids) < MOST_GENERATIONS:
            member.seat.ids.append(member.id)
        return member

    def part(self, member: TrackedMember, departure: Departure) -> None:
        """The member is gone."""
        if member.gone is None:
            member.gone = departure
            departure.contact = departure.contact or member.contact
            member.parked = None
            member.seat.leave(departure.time)
            self.seats.vacate(member.seat)

    def keep(self, problem: Problem) -> None:
        """A request that went wrong; the same again is only counted."""
        call = problem.call
        known = self.open.setdefault(problem.label, [])
        for old in known:
            if (old.call.key, old.call.error, old.call.member) == (call.key, call.error, call.member):
                old.repeats += 1
                old.last = call.proof
                return
        if len(self.problems) >= MOST_PROBLEMS or self.budget.problems <= 0:
            self.unkept += 1
            return
        self.budget.problems -= 1
        self.problems.append(problem)
        known.append(problem)

    def restart(self, time: int) -> None:
        """The group was forgotten and begins anew, with lower numbers than before."""
        if self.current is not None:
            self.current.ended = self.current.ended or time
            for member in self.current.members.values():
                self.part(member, Departure("gone", time, certain=False))
        self.current = self.forming = None

    def add_generation(self, generation: Generation) -> None:
        """The group's next. Of those long past the budget may leave the outline only."""
        if len(self.generations) > 1:
            past = self.generations[-2]
            self.budget.parts -= past.weight
            if self.budget.parts <= 0:
                past.outline()
        self.generations.append(generation)
        self.formed += 1


def moves(before: dict[str, Assignment], after: dict[str, Assignment], labels: dict[str, str]) -> list[Move]:
    """The partitions that changed hands. labels: of members, by id."""
    owned = {(topic, part): labels.get(ident, ident) for ident, topics in before.items()
             for topic, parts in topics.items() for part in parts}  # fmt: skip
    given = {(topic, part): labels.get(ident, ident) for ident, topics in after.items()
             for topic, parts in topics.items() for part in parts}  # fmt: skip
    changed = [key for key in {**owned, **given} if owned.get(key) != given.get(key)]
    return [Move(topic, part, owned.get((topic, part)), given.get((topic, part))) for topic, part in sorted(changed)]
