"""The seven steps of a consumer to its records, as one connection shows them, and as several do together.

(1) metadata, (2) find the coordinator, (3) join, (4) get its assignment, (5) heartbeats, (6) committed offsets, (7)
list offsets where there are none, and fetch. In groups without JoinGroup and SyncGroup the heartbeat with epoch 0 is
the join, and the first answer with partitions is the fourth step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.calls import EPOCH_HEARTBEATS, FIND_COORDINATOR, HEARTBEAT, JOIN, LEAVE, OFFSET_FETCH, SYNC, calls_of
from kwire.analyze.details import DETAILS, brings_records, given_in
from kwire.analyze.elements import ALL, outcome_of
from kwire.analyze.findings import Reference, error_label
from kwire.analyze.intervals import Intervals
from kwire.codec.quality import Quality
from kwire.schema import codes, keys

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange

NAMES = ("metadata", "coordinator", "join", "assignment", "heartbeat", "offsets", "fetch")
FETCHES = (keys.FETCH, keys.SHARE_FETCH)
STEPS = {
    keys.API_VERSIONS: 1, keys.METADATA: 1, keys.SASL_HANDSHAKE: 1, keys.SASL_AUTHENTICATE: 1, FIND_COORDINATOR: 2,
    JOIN: 3, SYNC: 4, HEARTBEAT: 5, OFFSET_FETCH: 6, keys.LIST_OFFSETS: 7, **dict.fromkeys(FETCHES, 7),
}  # fmt: skip
BEFORE = (keys.SASL_HANDSHAKE, keys.API_VERSIONS, keys.SASL_AUTHENTICATE, keys.LIST_OFFSETS)
PACED = (HEARTBEAT, *EPOCH_HEARTBEATS, *FETCHES)  # what comes again and again
BY_ELEMENT = (1, 2, 6, 7)  # steps whose answers hold errors of elements
USUAL = frozenset({codes.MEMBER_ID_REQUIRED})
UNSEEN = ("its answer is missing from the capture", "none was captured")  # endings: there may have been an answer
MOST = 10_000
MOST_NAMES = 1000  # elements that are kept
LOOKED_INTO = 64  # answers of a step that are read for what they say


@dataclass(slots=True)
class ElementError:
    """An error of an element, ALL for all that was asked: how often since it last went well."""

    code: int
    subject: str
    first: Reference
    last: Reference
    count: int = 1


@dataclass(slots=True)
class StepOutcomes:
    """tries: requests; good: those of which anything went well; unseen: those whose outcome the capture does not show;
    wrong: by element. said_in: the answer that tells the detail; fine: when something last went well, ns."""

    number: int
    tries: int = 0
    good: int = 0
    unseen: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    wrong: dict[str, ElementError] = field(default_factory=dict)
    first: Reference | None = None
    reached: Reference | None = None
    last: Reference | None = None
    fine: int = 0
    asked: set[str] = field(default_factory=set)
    pending: Reference | None = None  # a request without an answer at the end
    pending_api: str = ""
    pending_on: ConnectionInfo | None = None
    detail: str = ""
    said_in: Reference | None = None
    looked: int = 0
    paces: list[Intervals] = field(default_factory=list)  # from one request to the next, of each connection

    @property
    def name(self) -> str:
        return NAMES[self.number - 1]

    @property
    def usual(self) -> int | None:
        """The interval at which requests come on each connection; None where they come irregularly."""
        found = [pace.usual for pace in self.paces if pace.seen]
        known = [one for one in found if one is not None]
        return min(known) if known and len(known) == len(found) and max(known) <= 1.25 * min(known) else None

    @property
    def middle(self) -> tuple[int, int] | None:
        """Between which most intervals lie."""
        found = [one for pace in self.paces if (one := pace.middle) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    @property
    def longest(self) -> int | None:
        """The longest interval on a connection."""
        return max((pace.longest for pace in self.paces), default=0) or None

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "step": self.number, "name": self.name, "tries": self.tries, "went_well": self.good,
            "outcome_not_captured": self.unseen,
            "errors": {error_label(code): count for code, count in self.errors.most_common()},
            "failing": [
                {"error": error_label(one.code), "subject": one.subject or None, "count": one.count,
                 "first": one.first.row(), "last": one.last.row()}
                for one in self.wrong.values()
            ],
            "detail": self.detail, "said_in": self.said_in.row() if self.said_in else None,
            "first": self.first.row() if self.first else None,
            "reached": self.reached.row() if self.reached else None,
            "last": self.last.row() if self.last else None,
            "usual_interval_ns": self.usual, "longest_interval_ns": self.longest,
            "waits": self.pending.row() if self.pending else None,
        }  # fmt: skip


@dataclass(slots=True)
class ClientTalk:
    """What a client said on one connection. grouped: from when to when it spoke for a member, ns; members: whose ids;
    given and fetched: partitions; unread: fetches of which nobody knows whether they brought records."""

    client_id: str
    host: str
    first: int
    last: int = 0
    software: str = ""
    keys: set[int] = field(default_factory=set)
    follower: bool = False
    groups: dict[str, None] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    grouped: tuple[int, int] | None = None
    given: set[str] = field(default_factory=set)
    steps: list[StepOutcomes] = field(default_factory=lambda: [StepOutcomes(number) for number in range(1, 8)])
    rounds: int = 0  # how often it joined
    left: Reference | None = None
    records: Reference | None = None  # the first fetch with records
    fetches: int = 0
    unread: int = 0
    _before: dict[int, int] = field(default_factory=dict)  # when it asked for what comes again and again, ns

    @property
    def fetched(self) -> set[str]:
        return self.steps[6].asked

    def add(self, exchange: Exchange, key: int) -> None:
        """An exchange with a request of an API."""
        request = exchange.request
        assert request is not None
        self.last = max(self.last, request.time)
        number = STEPS.get(key, 0)
        if number not in (1, 7):
            number = self._grouped(exchange, number)
        if key in FETCHES and not self.fetches and not self.steps[6].tries:
            body = request.body() or {}
            state = body.get("ReplicaState") or {}
            self.follower = max(body.get("ReplicaId", -1), state.get("ReplicaId", -1)) >= 0
        if number:
            self._step(self.steps[number - 1], exchange, key)

    def _grouped(self, exchange: Exchange, number: int) -> int:
        """The step of a request about a group; 0 for none."""
        about_group = False
        for call in calls_of(exchange):
            about_group = True
            if len(self.groups) < MOST:
                self.groups[call.group] = None
            ident = call.member or (call.answer or {}).get("MemberId") or ""
            if ident and call.key != LEAVE and len(self.members) < MOST:
                self.members.add(ident)
                self.grouped = _widened(self.grouped, call.asked_at)
            if call.key == LEAVE or (call.key in EPOCH_HEARTBEATS and call.generation in (-1, -2)):
                self.left = call.asked if not call.error else self.left
                return 0
            if call.fine and (call.key == SYNC or call.key in EPOCH_HEARTBEATS):
                given = [f"{topic}-{part}" for topic, parts in given_in(exchange).items() for part in parts]
                if len(self.given) < MOST:
                    self.given.update(given)
                if given and call.key != SYNC:
                    self._step(self.steps[3], exchange, call.key)
            if call.key in EPOCH_HEARTBEATS:
                number = 3 if call.generation == 0 else 5
            if number == 3 and call.fine:
                self.rounds += 1
                self.left = None
        return number if about_group else 0

    def _step(self, step: StepOutcomes, exchange: Exchange, key: int) -> None:
        request, response = exchange.request, exchange.response
        assert request is not None
        asked = Reference.of(request)
        step.tries += 1
        step.first = step.first or asked
        if key in PACED and step.number in (5, 7):
            before = self._before.get(key)
            if before is not None:
                step.paces = step.paces or [Intervals()]
                step.paces[0].add(asked.time - before)
            self._before[key] = asked.time
        step.last = asked
        if response is None:
            if exchange.ending == "the capture ended":
                step.pending, step.pending_api, step.pending_on = asked, exchange.api, exchange.connection
            step.unseen += exchange.ending in UNSEEN
            return
        step.pending = None
        answered = Reference.of(response)
        broken = response.quality not in (Quality.OK, Quality.TRAILING)
        if broken and exchange.error is None and step.number in BY_ELEMENT:
            step.unseen += 1
            self.unread += key in FETCHES
            return
        if not self._judged(step, exchange, answered):
            return
        if key in FETCHES:
            self.fetches += 1
            if self.records is None and self.fetches <= MOST:
                self.records = answered if brings_records(exchange) else None
        if key in BEFORE and step.reached is None:
            return  # the step is done with the first metadata, the first fetch
        step.reached = step.reached or answered
        if step.looked < LOOKED_INTO or step.number in (3, 4):
            step.looked += 1
            said = DETAILS[step.number](exchange)
            if said:
                step.detail, step.said_in = said, answered

    def _judged(self, step: StepOutcomes, exchange: Exchange, answered: Reference) -> bool:
        """Counts failures and ends earlier ones that now succeed; returns whether anything succeeded."""
        failing = exchange.error is not None
        if failing or step.wrong or (step.looked < LOOKED_INTO and step.number == 7):
            outcome = outcome_of(exchange, USUAL)
            if len(step.asked) < MOST_NAMES:
                step.asked |= outcome.asked
            step.errors.update(set(outcome.failed.values()))
            for subject, code in outcome.failed.items():
                known = step.wrong.get(subject)
                if known is not None:
                    known.code, known.last = code, answered
                    known.count += 1
                elif len(step.wrong) < MOST_NAMES:
                    step.wrong[subject] = ElementError(code, subject, answered, answered)
            usual = failing and not outcome.failed
            if not outcome.fine or usual:
                return False
            for subject in [one for one in step.wrong if outcome.went_well(one)]:
                del step.wrong[subject]
        step.good += 1
        step.fine = answered.time
        return True


def _widened(span: tuple[int, int] | None, time: int) -> tuple[int, int]:
    return (time, time) if span is None else (min(span[0], time), max(span[1], time))


def together(number: int, parts: Sequence[StepOutcomes]) -> StepOutcomes:
    """Merges the same step of several connections."""
    out = StepOutcomes(number)
    for part in parts:
        out.tries, out.good, out.unseen = out.tries + part.tries, out.good + part.good, out.unseen + part.unseen
        out.errors.update(part.errors)
        out.first, out.reached = _earlier(out.first, part.first), _earlier(out.reached, part.reached)
        if part.pending is not None and (out.pending is None or part.pending.time > out.pending.time):
            out.pending, out.pending_api, out.pending_on = part.pending, part.pending_api, part.pending_on
        if part.detail and (out.said_in is None or (part.said_in and part.said_in.time > out.said_in.time)):
            out.detail, out.said_in = part.detail, part.said_in
        if part.last is not None and (out.last is None or part.last.time > out.last.time):
            out.last = part.last
        out.fine = max(out.fine, part.fine)
        out.asked |= part.asked
        out.paces += part.paces
        for subject, wrong in part.wrong.items():
            if any(_ends(wrong, other) for other in parts if other is not part):
                continue
            known = out.wrong.get(subject)
            if known is None:
                out.wrong[subject] = ElementError(wrong.code, subject, wrong.first, wrong.last, wrong.count)
            else:
                later = known if known.last.time > wrong.last.time else wrong
                first = known.first if known.first.time < wrong.first.time else wrong.first
                out.wrong[subject] = ElementError(later.code, subject, first, later.last, known.count + wrong.count)
    if out.pending is not None and out.fine > out.pending.time:
        out.pending = None
    return out


def _ends(wrong: ElementError, other: StepOutcomes) -> bool:
    """Whether what failed on one connection later succeeded on another."""
    if other.fine <= wrong.last.time:
        return False
    return wrong.subject == ALL or (wrong.subject in other.asked and wrong.subject not in other.wrong)


def _earlier(one: Reference | None, other: Reference | None) -> Reference | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda ref: ref.time)
