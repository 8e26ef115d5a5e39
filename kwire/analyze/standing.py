"""Where a traced consumer stands at the end of the capture, in one line: what it waits for, what it repeats, since when
it is silent. Nothing is called missing that the capture may merely not show, or whose time is unknown because the clock
was set back."""

from __future__ import annotations

from kwire.analyze.coverage import Coverage
from kwire.analyze.elements import ALL
from kwire.analyze.findings import Finding, TimeFormat, error_label, lasted
from kwire.analyze.steps import ElementError, StepOutcomes
from kwire.analyze.trace import Consumer
from kwire.counted import counted
from kwire.session.connection_info import BOTH

LONG = 5_000_000_000  # ns from which waiting is worth a word
SLOW_POLL = 30_000_000_000  # ns without a fetch from which a consumer does not consume
AGAIN = 3  # times from which an error repeats


def verdict(consumer: Consumer, end: int, clock: TimeFormat, coverage: Coverage | None = None) -> Finding:
    """Where a consumer stands at the end of the capture, ns. coverage: of the capture, as far as it is known."""
    coverage = coverage or Coverage()
    found = _standing(consumer, end, clock, coverage)
    if found.severity == "note":
        return found
    step = coverage.stepped(max((ref.time for ref in found.evidence), default=consumer.last), end)
    if step is None:
        return found
    jump, packet = step
    reached = next((one for one in reversed(consumer.steps) if one.reached), None)
    what = f"came as far as step {reached.number}, {reached.name}; " if reached else ""
    what += f"{jump}: what it waits for or repeats at the end, and how long, is not judged"
    return Finding("note", what, (packet,), "", found.subject, found.time)


def _standing(consumer: Consumer, end: int, clock: TimeFormat, coverage: Coverage) -> Finding:
    """As verdict, by the times that the capture has."""
    subject = f"client {consumer.name}"
    for step in reversed(consumer.steps[1:5]):
        if step.pending is not None and end - step.pending.time > LONG // 5 and not _went_on(consumer, step):
            return _waits(step, end, clock, subject)
    for step in consumer.steps:
        wrong = max(step.wrong.values(), key=lambda one: (one.subject == ALL, one.count), default=None)
        if wrong is not None and _stuck(consumer, step, wrong):
            return _repeats(step, wrong, clock, subject)
    if consumer.left is not None:
        what = f"left its group at {clock(consumer.left.time)} (frame {consumer.left})"
        return Finding("note", what, (consumer.left,), "", subject, consumer.left.time)
    fetch = consumer.steps[6]
    if consumer.fetches and fetch.last is not None:
        final = max((step.last for step in consumer.steps if step.last), key=lambda ref: ref.time)
        if consumer.groups and end - final.time > LONG:
            what = f"says nothing since {clock(final.time)} (frame {final})"
            if _lacks(consumer, coverage):
                what += " in the capture, which does not hold all that it said"
                return Finding("note", what, (final,), "", subject, final.time)
            what += f", for {lasted(end - final.time)}"
            advice = "It is stopped, paused or cut off, or ended without leaving: kwire groups says what became of it."
            return Finding("warning", what, (final,), advice, subject, final.time)
        quiet = end - fetch.last.time
        if quiet > SLOW_POLL:
            what = f"has not fetched for {lasted(quiet)}, since {clock(fetch.last.time)} (frame {fetch.last})"
            advice = "It does not poll, has nothing assigned, or is paused."
            return Finding("warning", what, (fetch.last,), advice, subject, fetch.last.time)
        since = ", no records so far"
        if consumer.records is not None:
            since = f", records since {clock(consumer.records.time)}"
        elif consumer.unread or fetch.unseen:
            since = ", of which the capture does not show whether they brought records"
        what = f"consumes: {consumer.fetches:,} fetches{since}"
        return Finding("note", what, (fetch.last,), "", subject, fetch.last.time)
    return _stopped(consumer, end, clock, subject)


def _lacks(consumer: Consumer, coverage: Coverage) -> bool:
    """Whether the capture lacks something of what a consumer said on the connections of its last requests."""
    last = {(ref.capture, ref.connection) for step in consumer.steps if (ref := step.last) is not None}
    known = [coverage.of(*connection) for connection in last]
    return any(one is not None and (one.missing[0] > 0 or one.skipped > 0) for one in known)


def _went_on(consumer: Consumer, step: StepOutcomes) -> bool:
    """Whether the client asked for what only an answer lets it ask for."""
    assert step.pending is not None
    later = (other.last for other in consumer.steps[step.number :] if other.last and other.number != 5)
    return any(ref.time > step.pending.time for ref in later)


def _stuck(consumer: Consumer, step: StepOutcomes, wrong: ElementError) -> bool:
    """Whether nothing that comes after the step has gone well since it failed."""
    later = [other.last for other in consumer.steps if other.number != step.number and other.good and other.last]
    return wrong.count >= AGAIN or (wrong.subject == ALL and not any(ref.time > wrong.last.time for ref in later))


def _waits(step: StepOutcomes, end: int, clock: TimeFormat, subject: str) -> Finding:
    assert step.pending is not None
    whom = {3: " for the other members", 4: " for the leader's assignment"}.get(step.number, "")
    coverage = step.pending_on.coverage if step.pending_on is not None else None
    what = f"waits in step {step.number}, {step.name}: {step.pending_api} of {clock(step.pending.time)} (frame "
    what += f"{step.pending}) has no answer"
    if coverage is not None and (coverage.direction != BOTH or coverage.missing[1]):
        what += " in the capture, which does not hold all that the broker said"
        return Finding("note", what, (step.pending,), "", subject, step.pending.time)
    what += f" after {lasted(end - step.pending.time)}"
    advice = f"It waits{whom}: kwire groups says who is missing." if whom else "The broker does not answer: look there."
    return Finding("warning", what, (step.pending,), advice, subject, step.pending.time)


def _repeats(step: StepOutcomes, wrong: ElementError, clock: TimeFormat, subject: str) -> Finding:
    again = wrong.count > 1
    what = f"{'repeats' if again else 'failed in'} step {step.number}, {step.name}"
    what += f", for {wrong.subject}: " if wrong.subject != ALL else ": "
    what += error_label(wrong.code)
    if again:
        what += f" {counted(wrong.count, 'time')} from {clock(wrong.first.time)} to {clock(wrong.last.time)}"
    else:
        what += f" at {clock(wrong.last.time)}"
    what += f" (frame {wrong.last})"
    evidence = (wrong.first,) if wrong.first == wrong.last else (wrong.first, wrong.last)
    advice = f"kwire explain {error_label(wrong.code)} says what it means."
    if wrong.subject != ALL:
        advice += " All else that it asks for in this step goes well."
    return Finding("error", what, evidence, advice, subject, wrong.first.time)


def _stopped(consumer: Consumer, end: int, clock: TimeFormat, subject: str) -> Finding:
    """Nothing failed and nothing was fetched, as far as the capture shows."""
    reached = [step for step in consumer.steps if step.reached]
    if not reached:
        refused = any(step.errors for step in consumer.steps)  # else no answer was seen at all
        first = next((step.first for step in consumer.steps if step.first), None)
        evidence = (first,) if first else ()
        what = "reached no step" if refused else "the capture does not show how its requests were answered"
        return Finding("warning" if refused else "note", what, evidence, "", subject, first.time if first else 0)
    last = reached[-1]
    assert last.reached is not None
    later = [step for step in consumer.steps[last.number :] if not step.reached]
    usual = [step for step in later if consumer.groups or step.number == 7]  # who takes part in no group only fetches
    missing = next((step for step in later if step.tries), next(iter(usual), None))
    what = f"came as far as step {last.number}, {last.name}, at {clock(last.reached.time)}"
    if missing and missing.unseen:
        what += f"; whether {missing.name} was reached the capture does not show"
        return Finding("note", what, (last.reached,), "", subject, last.reached.time)
    what += f"; {missing.name} was not reached" if missing else ""
    quiet = end - consumer.last
    severity = "warning" if quiet > LONG else "note"
    what += f", and nothing was asked for {lasted(quiet)}" if quiet > LONG else ""
    return Finding(severity, what, (last.reached,), "", subject, last.reached.time)
