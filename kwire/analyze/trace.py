"""A consumer's way to its records in seven steps: which it reached, which it repeats, what it waits for now.

(1) metadata, (2) find the coordinator, (3) join, (4) get its assignment, (5) heartbeats, (6) committed offsets, (7)
list offsets where there are none, and fetch. In groups without JoinGroup and SyncGroup the heartbeat with epoch 0 is
the join, and the first assignment that comes with a heartbeat is the fourth step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.calls import EPOCH_HEARTBEATS, HEARTBEAT, JOIN, SYNC, calls_of
from kwire.analyze.details import DETAILS, has_records
from kwire.analyze.findings import Clock, Finding, Reference, error_label, lasted
from kwire.analyze.intervals import Intervals
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange

NAMES = ("metadata", "coordinator", "join", "assignment", "heartbeat", "offsets", "fetch")
LEAVE = 13
STEPS = {18: 1, 3: 1, 17: 1, 36: 1, 10: 2, JOIN: 3, SYNC: 4, HEARTBEAT: 5, 9: 6, 2: 7, 1: 7, 78: 7}
FETCHES = (1, 78)
BEFORE = (17, 18, 36, 2)  # SaslHandshake, ApiVersions, SaslAuthenticate, ListOffsets
USUAL = {79}  # MEMBER_ID_REQUIRED
MOST = 10_000
LOOKED_INTO = 64  # answers of a step that are read for what they say
LONG = 5_000_000_000  # ns from which waiting is worth a word
SLOW_POLL = 30_000_000_000  # ns without a fetch from which a consumer does not consume


@dataclass(slots=True)
class Step:
    """tries: requests; good: those that went well; since: those that did not since the last one that did."""

    number: int
    tries: int = 0
    good: int = 0
    since: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    first: Reference | None = None
    reached: Reference | None = None
    last: Reference | None = None
    last_error: int = 0
    last_wrong: Reference | None = None
    first_wrong: Reference | None = None  # since the last that went well
    pending: Reference | None = None  # a request without an answer at the end
    pending_api: str = ""
    detail: str = ""
    looked: int = 0
    intervals: Intervals = field(default_factory=Intervals)  # from one request to the next

    @property
    def name(self) -> str:
        return NAMES[self.number - 1]


@dataclass(slots=True)
class Consumer:
    """A client as it is traced; steps by number, from 1."""

    client_id: str
    host: str
    software: str = ""
    groups: dict[str, None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=lambda: [Step(number) for number in range(1, 8)])
    rounds: int = 0  # how often it joined
    left: Reference | None = None
    last: int = 0
    records: Reference | None = None  # the first fetch with records
    fetches: int = 0

    def row(self, verdict: Finding) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "client_id": self.client_id, "host": self.host, "software": self.software or None,
            "groups": list(self.groups), "joins": self.rounds, "verdict": verdict.row(),
            "steps": [
                {"step": step.number, "name": step.name, "tries": step.tries, "went_well": step.good,
                 "errors": {error_label(code): count for code, count in step.errors.most_common()},
                 "detail": step.detail,
                 "first": step.first.row() if step.first else None,
                 "reached": step.reached.row() if step.reached else None,
                 "last": step.last.row() if step.last else None,
                 "usual_interval_ns": step.intervals.usual, "longest_interval_ns": step.intervals.longest or None,
                 "waits": step.pending.row() if step.pending else None}
                for step in self.steps
            ],
        }  # fmt: skip


class Trace:
    """add(exchange) collects; consumers gives those that were met, by client id and address."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Consumer] = {}
        self.end = 0
        self.unkept = 0

    def consumers(self) -> list[Consumer]:
        """Those that read, or take part in a group: no producers, no tools."""
        found = [one for one in self._known.values() if one.steps[6].tries or one.steps[2].tries]
        return sorted(found, key=lambda one: (one.client_id, one.host))

    def add(self, exchange: Exchange) -> None:
        """An exchange of any API."""
        request, response = exchange.request, exchange.response
        self.end = max(self.end, (response or exchange.first).time)
        kind = None if request is None else request.api
        if request is None or kind is None or (kind.key not in STEPS and kind.key not in (LEAVE, *EPOCH_HEARTBEATS)):
            return
        consumer = self._of(exchange)
        if consumer is None:
            self.unkept += 1
            return
        consumer.last = max(consumer.last, request.time)
        number = STEPS.get(kind.key, 0)
        if number not in (1, 7):
            number = self._grouped(consumer, exchange, number)
        if number:
            self._step(consumer, consumer.steps[number - 1], exchange)

    def _of(self, exchange: Exchange) -> Consumer | None:
        connection, client_id = exchange.connection, exchange.client_id or ""
        host = connection.ends[0].rpartition(":")[0].strip("[]")
        known = self._known.get((client_id, host))
        if known is None:
            if len(self._known) >= MOST:
                return None
            known = self._known[client_id, host] = Consumer(client_id, host)
        identity = connection.identity
        if identity.software and not known.software:
            known.software = " ".join(filter(None, (identity.software, identity.software_version)))
        return known

    def _grouped(self, consumer: Consumer, exchange: Exchange, number: int) -> int:
        """The step of a request about a group; 0 for none."""
        for call in calls_of(exchange):
            if len(consumer.groups) < MOST:
                consumer.groups[call.group] = None
            if call.key == LEAVE or (call.key in EPOCH_HEARTBEATS and call.generation in (-1, -2)):
                consumer.left = call.asked if not call.error else consumer.left
                return 0
            if call.key in EPOCH_HEARTBEATS:
                answer = call.answer or {}
                given = answer.get("Assignment") is not None or answer.get("ActiveTasks") is not None
                if given and call.fine:
                    self._step(consumer, consumer.steps[3], exchange)
                number = 3 if call.generation == 0 else 5
            if number == 3 and call.fine:
                consumer.rounds += 1
                consumer.left = None
        return number

    def _step(self, consumer: Consumer, step: Step, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        assert request is not None
        key = request.api.key if request.api else -1
        asked = Reference.of(request)
        step.tries += 1
        step.first = step.first or asked
        if step.last is not None:
            step.intervals.add(asked.time - step.last.time)
        step.last = asked
        if response is None:
            if exchange.ending == "the capture ended":
                step.pending, step.pending_api = asked, exchange.api
            return
        step.pending = None
        answered = Reference.of(response)
        error = exchange.error
        if error is not None and error not in USUAL:
            step.errors[error] += 1
            step.since += 1
            step.last_error, step.last_wrong = error, answered
            step.first_wrong = step.first_wrong or answered
            return
        if error is not None:
            return
        if key in FETCHES:
            consumer.fetches += 1
            if consumer.records is None and consumer.fetches <= MOST and has_records(exchange):
                consumer.records = answered
        step.good += 1
        step.since, step.first_wrong = 0, None
        if key in BEFORE and step.reached is None:
            return  # the step is done with the first metadata, the first fetch
        step.reached = step.reached or answered
        if step.looked < LOOKED_INTO or step.number in (3, 4):
            step.looked += 1
            step.detail = DETAILS[step.number](exchange) or step.detail


def verdict(consumer: Consumer, end: int, clock: Clock) -> Finding:
    """Where a consumer stands at the end of the capture, ns."""
    subject = f"client {consumer.client_id}"
    for step in reversed(consumer.steps[1:5]):
        if step.pending is not None and end - step.pending.time > LONG // 5:
            return _waits(step, end, clock, subject)
    for step in consumer.steps:
        if step.since and step.last_wrong is not None and _stuck(consumer, step):
            return _repeats(step, clock, subject)
    if consumer.left is not None:
        what = f"left its group at {clock(consumer.left.time)} (frame {consumer.left})"
        return Finding("note", what, (consumer.left,), "", subject, consumer.left.time)
    fetch = consumer.steps[6]
    if consumer.fetches and fetch.last is not None:
        final = max((step.last for step in consumer.steps if step.last), key=lambda ref: ref.time)
        if consumer.groups and end - final.time > LONG:
            what = f"says nothing since {clock(final.time)} (frame {final}), for {lasted(end - final.time)}"
            advice = "It is stopped, paused or cut off, or ended without leaving: kwire groups says what became of it."
            return Finding("warning", what, (final,), advice, subject, final.time)
        quiet = end - fetch.last.time
        if quiet > SLOW_POLL:
            what = f"has not fetched for {lasted(quiet)}, since {clock(fetch.last.time)} (frame {fetch.last})"
            advice = "It does not poll, has nothing assigned, or is paused."
            return Finding("warning", what, (fetch.last,), advice, subject, fetch.last.time)
        since = f", records since {clock(consumer.records.time)}" if consumer.records else ", no records so far"
        return Finding(
            "note", f"consumes: {consumer.fetches:,} fetches{since}", (fetch.last,), "", subject, fetch.last.time
        )
    return _stopped(consumer, end, clock, subject)


def _stuck(consumer: Consumer, step: Step) -> bool:
    """Whether nothing that comes after the step has gone well since it failed."""
    assert step.last_wrong is not None
    later = [other.last for other in consumer.steps if other.number != step.number and other.good and other.last]
    return step.since >= 3 or not any(ref.time > step.last_wrong.time for ref in later)


def _waits(step: Step, end: int, clock: Clock, subject: str) -> Finding:
    assert step.pending is not None
    whom = {3: " for the other members", 4: " for the leader's assignment"}.get(step.number, "")
    what = f"waits in step {step.number}, {step.name}: {step.pending_api} of {clock(step.pending.time)} (frame "
    what += f"{step.pending}) has no answer after {lasted(end - step.pending.time)}"
    advice = f"It waits{whom}: kwire groups says who is missing." if whom else "The broker does not answer: look there."
    return Finding("warning", what, (step.pending,), advice, subject, step.pending.time)


def _repeats(step: Step, clock: Clock, subject: str) -> Finding:
    assert step.last_wrong is not None
    first = step.first_wrong or step.last_wrong
    what = (
        f"repeats step {step.number}, {step.name}: "
        if step.since > 1
        else f"failed in step {step.number}, {step.name}: "
    )
    what += error_label(step.last_error)
    if step.since > 1:
        what += f" {counted(step.since, 'time')} from {clock(first.time)} to {clock(step.last_wrong.time)}"
    else:
        what += f" at {clock(step.last_wrong.time)}"
    what += f" (frame {step.last_wrong})"
    evidence = (first,) if first == step.last_wrong else (first, step.last_wrong)
    advice = f"kwire explain {error_label(step.last_error)} says what it means."
    return Finding("error", what, evidence, advice, subject, first.time)


def _stopped(consumer: Consumer, end: int, clock: Clock, subject: str) -> Finding:
    """Nothing failed and nothing was fetched."""
    reached = [step for step in consumer.steps if step.reached]
    if not reached:
        first = next((step.first for step in consumer.steps if step.first), None)
        evidence = (first,) if first else ()
        return Finding("warning", "reached no step", evidence, "", subject, first.time if first else 0)
    last = reached[-1]
    assert last.reached is not None
    missing = next((step for step in consumer.steps[last.number :] if not step.reached), None)
    what = f"came as far as step {last.number}, {last.name}, at {clock(last.reached.time)}"
    what += f"; {missing.name} was not reached" if missing else ""
    quiet = end - consumer.last
    severity = "warning" if quiet > LONG else "note"
    what += f", and nothing was asked for {lasted(quiet)}" if quiet > LONG else ""
    return Finding(severity, what, (last.reached,), "", subject, last.reached.time)
