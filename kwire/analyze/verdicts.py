"""Histories of groups to findings: what went wrong, by which rule, proved by which frames, and what to do about it.

A finding says what its reader can check: times as the capture has them, the values compared, the frames. Errors that
every start-up and every rebalance shows are none, unless nothing better followed. What rests on how long something
took, or on what did not come, is left out where the capture's clock was set back meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kwire.analyze.activity import Activity
from kwire.analyze.coverage import Coverage
from kwire.analyze.departures import Departures, frame, session_of, words_of
from kwire.analyze.findings import (
    SECOND,
    SEVERITIES,
    Finding,
    Reference,
    TimeFormat,
    about,
    error_label,
    lasted,
    worst_first,
)
from kwire.analyze.groups import GroupHistories
from kwire.analyze.history import Cause, Generation, History
from kwire.analyze.refusals import Refusals

LONG = 10_000_000_000  # ns from which what is not over at the end is worth a word
AT_ONCE = 1_000_000_000  # ns within which a member joins that was told to, and is not waited for
RESTLESS = {"back", "evicted", "expelled", "replaced", "rejoined", "leader", "unseen"}
STATUSES = {  # StreamsGroupHeartbeatResponse.Status (KIP-1071)
    0: "STALE_TOPOLOGY", 1: "MISSING_SOURCE_TOPICS", 2: "INCORRECTLY_PARTITIONED_TOPICS", 3: "MISSING_INTERNAL_TOPICS",
    4: "SHUTDOWN_APPLICATION", 5: "ASSIGNMENT_DELAYED", 6: "MISSING_CLIENT_TAGS",
}  # fmt: skip
ROUNDS = "Each member that joins or leaves stops the whole group: restart members one after the other, use"


@dataclass(slots=True)
class VerdictLimits:
    """From when on something is worth a word. slow: seconds for which a rebalance waits for a member; open: seconds for
    which one is not over at the end; storm: rebalances within storm_seconds; near: the part of the session timeout that
    passed between two heartbeats."""

    slow: float = 2.5
    open: float = 10
    storm: float = 4
    storm_seconds: float = 60
    near: float = 0.7


@dataclass(frozen=True, slots=True)
class Judgement:
    """Groups with their findings, the most troubled first; and the clock of all times in them."""

    groups: list[tuple[History, Departures, list[Finding]]]
    clock: TimeFormat

    @property
    def grave(self) -> bool:
        """Whether a finding is an error."""
        return any(found and found[0].severity == SEVERITIES[0] for _, _, found in self.groups)


def judge(
    groups: GroupHistories, clock: TimeFormat, limits: VerdictLimits | None = None, coverage: Coverage | None = None
) -> Judgement:
    """What there is to say about groups that were read to the end. coverage: of their capture, as far as it is
    known."""
    judged = []
    limits, coverage = limits or VerdictLimits(), coverage or Coverage()
    for history in groups.histories.values():
        departures = Departures(history, groups.activity, clock)
        judged.append((history, departures, verdicts(departures, limits, coverage)))
    judged.sort(key=lambda item: (_troubles(item[2]), -item[0].calls, item[0].name))
    return Judgement(judged, clock)


def _troubles(found: list[Finding]) -> tuple[int, ...]:
    """What groups are sorted by: how many findings of each severity, the most first."""
    severities = [one.severity for one in found]
    return tuple(-severities.count(severity) for severity in SEVERITIES)


def verdicts(departures: Departures, limits: VerdictLimits, coverage: Coverage) -> list[Finding]:
    """The findings about a group, worst first."""
    history, activity, clock = departures.history, departures.activity, departures.clock
    refused = list(Refusals(departures).findings())  # first: it marks the departures that it tells
    lasting = [
        *_departures(history, departures),
        *((one, activity.last_time) for one in _unfinished(history, activity, clock, limits)),
        *((one, activity.last_time) for one in _unused(history, activity, clock)),
        *((one, one.last or one.time) for one in _slow(history, clock, limits)),
        *((one, one.last or one.time) for one in _storm(history, clock, limits)),
        *((one, one.time) for one in _close(history, clock, limits)),
    ]
    found = [
        *refused,
        *(one for one, until in lasting if coverage.stepped(_since(one), until) is None),
        *_statuses(history, clock),
        *_deleted(history, clock),
        *_missing(history, clock, coverage),
        *_clock(history, coverage),
        *_disagreements(history, clock),
    ]
    return worst_first(found)


def _since(finding: Finding) -> int:
    """The first time, ns, that a finding rests on."""
    return min([finding.time, *(ref.time for ref in finding.evidence)])


def _departures(history: History, departures: Departures) -> Iterator[tuple[Finding, int]]:
    """Members that were thrown out and never heard so, and those that left because they did not poll; and until when,
    ns, nothing of them may have come for that."""
    for generation in history.generations:
        for cause in generation.endings:
            departure, member = cause.departure, cause.member
            if departure is None or member is None or id(departure) in departures.told:
                continue
            finding = departures.finding(member, departure)
            if finding is not None:
                yield finding, departure.time if departure.certain else departures.activity.last_time


def _unfinished(history: History, activity: Activity, clock: TimeFormat, limits: VerdictLimits) -> Iterator[Finding]:
    """A rebalance that is still going on when the capture ends."""
    forming, current, end = history.forming, history.current, activity.last_time
    long = limits.open * SECOND
    if forming is not None and forming.joins and end - forming.began > long and history.answers:
        waiting = [join.member.label for join in forming.joins.values()]
        absent = [
            member.label for ident, member in (current.members.items() if current else ())
            if ident not in forming.joins and member.gone is None
        ]  # fmt: skip
        first = min(forming.joins.values(), key=lambda join: join.asked_at)
        what = (
            f"a rebalance that began at {clock(first.asked_at)} is not over at the end, {lasted(end - first.asked_at)} "
        )
        what += f"later: {some(waiting)} {'wait' if len(waiting) > 1 else 'waits'} in JoinGroup"
        what += f" for {some(absent)}" if absent else ""
        advice = "Whoever is waited for must poll; after its rebalance timeout the group goes on without it."
        yield Finding("warning", what, (first.asked,), advice, f"group {history.name}", first.asked_at,
                      detector="slow-joiner", about=about(group=history.name), last=end)  # fmt: skip
    if current is not None and current.assigned is None and not current.adopted and current.formed is not None:
        parked = [member for member in current.members.values() if member.parked and member.id not in current.synced]
        leader = current.members.get(current.leader)
        if parked and history.forming is None and end - current.formed > long and leader is not None:
            what = f"generation {current.number} waits since {clock(current.formed)} for its leader {leader.label}, "
            what += "which has not sent SyncGroup"
            yield Finding("warning", what, tuple(refs(current.formed_by)), "", f"group {history.name}", current.formed,
                          detector="slow-joiner", about=about(group=history.name), last=end)  # fmt: skip


def _slow(history: History, clock: TimeFormat, limits: VerdictLimits) -> Iterator[Finding]:
    """Rebalances that took long, and who was waited for. What passes until a member's next heartbeat tells it of the
    rebalance is the protocol's, and not the member's."""
    least = limits.slow * SECOND
    slow = [one for one in history.generations if one.waited and _joining(one) > least and not one.by_epochs]
    for generation in sorted(slow, key=_joining, reverse=True)[:5]:
        took = lasted(_joining(generation))
        what = f"generation {generation.number} took {took} to form from {clock(generation.began)}"
        last = generation.last_join
        evidence = refs(generation.trigger.refs[0] if generation.trigger and generation.trigger.refs else None)
        of = about(group=history.name)
        if generation.unmet:
            what += f": it waited for {some(generation.unmet)} in vain"
        elif last is not None and last.asked_at - generation.began > least / 2:
            if last.told is not None and last.asked_at - last.told.time < AT_ONCE:
                continue
            what += f": {last.member.label} joined {lasted(last.asked_at - generation.began)} after it began"
            what += f", though told to at {clock(last.told.time)} ({frame(last.told)})" if last.told else ""
            evidence += refs(last.told, last.asked)
            seat = last.member.seat
            of = about(client_id=seat.client_id, address=seat.host, group=history.name)
        advice = "Nobody consumes meanwhile. "
        if generation.unmet:
            advice += "Who does not come back is waited for as long as its rebalance timeout (max.poll.interval.ms)."
        else:
            advice += "Poll more often, or lower max.poll.interval.ms: that long is waited at most."
        yield Finding("warning", what, evidence, advice, f"group {history.name}", generation.began,
                      detector="slow-joiner", about=of, last=generation.formed)  # fmt: skip


def _statuses(history: History, clock: TimeFormat) -> Iterator[Finding]:
    """What keeps a streams group from running."""
    for code, one in history.statuses.items():
        detail = one.detail.rstrip(".") or "no detail"
        what = f"{STATUSES.get(code, f'status {code}')} from {clock(one.first.time)}: {detail}"
        what += f"; over at {clock(one.over.time)}" if one.over else f"; still so at {clock(one.last.time)}"
        evidence = tuple(dict.fromkeys(refs(one.first, one.over or one.last)))
        grave = one.over is None and one.last.time - one.first.time > LONG
        advice = (
            "" if one.over else "Heartbeats succeed all the same: the application does not run until this is settled."
        )
        yield Finding("warning" if grave else "note", what, evidence, advice, f"group {history.name}", one.first.time)


def _unused(history: History, activity: Activity, clock: TimeFormat) -> Iterator[Finding]:
    """The finding about member ids that were never used."""
    idle = [ref for ref in history.ids.values() if activity.last_time - ref.time > LONG]
    if idle:
        many = f"{len(idle):,} member ids were" if len(idle) > 1 else "a member id was"
        what = f"{many} handed out (MEMBER_ID_REQUIRED, {clock(idle[0].time)}) and nobody joined with "
        what += "them" if len(idle) > 1 else "it"
        yield Finding("note", what, (idle[0],), "", f"group {history.name}", idle[0].time)


def _deleted(history: History, clock: TimeFormat) -> Iterator[Finding]:
    """The end of the group."""
    if history.deleted is not None:
        what = f"the group was deleted at {clock(history.deleted.time)}"
        yield Finding("note", what, (history.deleted,), "", f"group {history.name}", history.deleted.time)


def _missing(history: History, clock: TimeFormat, coverage: Coverage) -> Iterator[Finding]:
    """The finding about what the capture lacks of the group."""
    lacks = []
    first = history.generations[0] if history.generations else None
    if coverage.stepped(history.first, history.last) is not None:
        first = None  # it may be one of the last
    if first is not None and (first.adopted or (first.number > 1 and history.kinds["classic"] and _had_members(first))):
        lacks.append(f"the group was at work before (from {clock(first.began)} on it is seen)")
    unseen = [seat.label for seat in history.seats.all.values() if not seat.host]
    if unseen:
        lacks.append(f"nothing of what {some(unseen)} sent is in it")
    if lacks:
        what = f"the capture does not hold all of the group: {'; '.join(lacks)}"
        yield Finding("note", what, (), "", f"group {history.name}", history.first)


def _clock(history: History, coverage: Coverage) -> Iterator[Finding]:
    """Where the capture's clock was set back while the group was at work."""
    step = coverage.stepped(history.first, history.last)
    if step is not None:
        what, packet = step
        what += ": how long something took across it, and what came first, is not judged"
        yield Finding("note", what, (packet,), "", f"group {history.name}", history.first)


def _had_members(generation: Generation) -> bool:
    """Whether others were there before the first generation that is seen."""
    return any(join.told is not None for join in generation.joins.values())


def _joining(generation: Generation) -> int:
    return 0 if generation.formed is None else generation.formed - generation.began


def _storm(history: History, clock: TimeFormat, limits: VerdictLimits) -> Iterator[Finding]:
    """The finding about rebalances in quick succession."""
    within = round(limits.storm_seconds * SECOND)
    formed = list(_unintended(history, within))
    best = start = 0
    for end, generation in enumerate(formed):
        while (generation.formed or 0) - (formed[start].formed or 0) > within:
            start += 1
        if end - start + 1 > best:
            best, first, last = end - start + 1, formed[start], generation
    if best and best >= limits.storm:
        noun = "generations" if history.kinds["classic"] else "epochs"
        what = f"the group does not come to rest: {best} {noun} within {lasted(within)} from {clock(first.began)}, "
        among = "" if best > last.number - first.number else "among "
        what += f"{among}{first.number} to {last.number}, though no new member joined"
        shaken = [one for one in formed if first.began <= one.began <= last.began]
        began = Counter(_started(it) for one in shaken for it in one.causes if it.kind in RESTLESS or it is one.trigger)
        what += "; what began them: " + ", ".join(f"{said} ({count}×)" for said, count in began.most_common(4))
        advice = f"{ROUNDS} group.instance.id for static membership, and look at why they come and go."
        yield Finding("warning", what, tuple(refs(first.formed_by, last.formed_by)), advice, f"group {history.name}",
                      first.began, detector="rebalance-storm", about=about(group=history.name),
                      last=last.formed, count=best)  # fmt: skip


def _unintended(history: History, within: int) -> Iterator[Generation]:
    """The generations that count for a storm. Those do not: of new members, of a member that left and came back no more
    than once in so many ns (a restart), and of cooperative members that join again for what the generation before took
    from them (KIP-429)."""
    back: dict[str, list[int]] = defaultdict(list)  # by label: when it came back
    for one in history.generations:
        for cause in one.causes:
            if cause.kind == "back":
                back[cause.label].append(cause.time)
    for before, one in zip([None, *history.generations], history.generations, strict=False):
        kinds = {it.kind for it in one.causes} & RESTLESS
        if all(_restarted(it, back[it.label], within) for it in one.causes if it.kind == "back"):
            kinds.discard("back")
        if before is not None and kinds <= {"leader", "rejoined"} and any(it.target is None for it in before.moves):
            kinds.clear()
        if one.formed and kinds and not _anew(before, one):
            yield one


def _restarted(cause: Cause, back: list[int], within: int) -> bool:
    """Whether a member came back once only within so many ns. back: all times at which it did, ascending."""
    at = bisect_left(back, cause.time)
    return not any(abs(time - cause.time) <= within for time in back[max(at - 1, 0) : at] + back[at + 1 : at + 2])


def _anew(before: Generation | None, generation: Generation) -> bool:
    """Whether all members had left before, so that nobody was disturbed: as of a consumer alone that is restarted."""
    gone = [member.gone for member in before.members.values()] if before is not None else []
    left = all(one is not None and one.kind == "left" and one.time <= generation.began for one in gone)
    return bool(gone) and left and all(join.fresh for join in generation.joins.values())


def _started(cause: Cause | None) -> str:
    """What made a group rebalance, without the time."""
    if cause is None or cause.kind == "unseen":
        return "nothing that is seen"
    words = {"joined": "joined", "back": "came back", "leader": "joined again", "rejoined": "joined again"}
    return f"{cause.label} {words.get(cause.kind) or words_of(cause)}"


def _close(history: History, clock: TimeFormat, limits: VerdictLimits) -> Iterator[Finding]:
    """Heartbeats that came only just in time."""
    for seat in history.seats.all.values():
        member = history.members.get(seat.ids[-1]) if seat.ids else None
        if member is None or member.session is None or seat.beats.longest_end is None or member.gone is not None:
            continue
        session = member.session * 1_000_000
        if limits.near * session < seat.beats.longest < session:
            at = seat.beats.longest_end
            what = f"{seat.label}: {lasted(seat.beats.longest)} between two heartbeats at {clock(at.time)}; "
            what += f"{session_of(member)}"
            advice = "Near an eviction: raise session.timeout.ms, or keep heartbeat.interval.ms at a third of it."
            yield Finding("warning", what, tuple(refs(at, member.said)), advice, f"group {history.name}", at.time,
                          detector="evicted", about=about(client_id=seat.client_id, address=seat.host,
                                                          group=history.name))  # fmt: skip


def _disagreements(history: History, clock: TimeFormat) -> Iterator[Finding]:
    """Findings about contradictions between the capture and Kafka's rules."""
    for one in history.contradictions:
        call, check = one.call, one.check
        seen = error_label(call.error) if call.error else "without an error"
        what = f"{one.label}: {call.api} at {clock(call.asked_at)} was answered {seen}"
        if check is None:
            what += ", and a member is missing in it that by Kafka's rules was there"
        elif check.error < 0:
            what += f"; by Kafka's rules {check.why}"
        else:
            what += f"; by Kafka's rules {error_label(check.error) if check.error else 'no error'}: {check.why}"
        for ident, member in ((call.member, history.members.get(call.member)),):
            what = what.replace(ident, member.label) if ident and member else what
        advice = (
            "Frames may be missing, the broker's rules or settings differ, or the group was changed from elsewhere."
        )
        yield Finding("note", what, (call.proof,), advice, f"group {history.name}", call.asked_at)


def refs(*found: Reference | None) -> tuple[Reference, ...]:
    """Those that are there."""
    return tuple(ref for ref in found if ref is not None)


def some(names: list[str], most: int = 3) -> str:
    """As "a, b and 4 more"."""
    unique = list(dict.fromkeys(names))
    if len(unique) > most:
        return f"{', '.join(unique[:most])} and {len(unique) - most:,} more"
    return " and ".join(filter(None, [", ".join(unique[:-1]), *unique[-1:]]))
