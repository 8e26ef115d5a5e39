"""Tells in words why a group's request was refused and how a member went, with the frames that prove it.

The rules are the coordinator's own: org.apache.kafka.coordinator.group.GroupMetadataManager and, for commits,
OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kwire.analyze.activity import Activity
from kwire.analyze.calls import COMMITS, EPOCH_HEARTBEATS, FIND_COORDINATOR, HEARTBEAT, Call
from kwire.analyze.causes import SLACK
from kwire.analyze.findings import Clock, Finding, Reference, lasted
from kwire.analyze.history import Cause, Generation, History, Problem
from kwire.analyze.members import Departure, Member
from kwire.counted import counted
from kwire.schema.errorcodes import errors

COORDINATOR = {  # while it starts or moves
    14: "the coordinator was still loading", 15: "there was no coordinator yet", 16: "the coordinator was another one",
}  # fmt: skip
REBALANCE, ILLEGAL, UNKNOWN, SESSION, FENCED, PROTOCOL = 27, 22, 25, 26, 82, 23
FENCED_EPOCH, STALE_EPOCH = 110, 113
EPOCH_SESSION = 45_000_000_000  # ns: group.consumer.session.timeout.ms unless configured
NO_REASON = "need to re-join with the given member-id"  # what Java clients say after MEMBER_ID_REQUIRED
SOON = 5_000_000_000  # ns before the end of a capture in which nothing need have followed
LOG = "Look in the coordinator's log for the member id."
AGAIN = "What was processed since the commit before is read again."


class Teller:
    """problems() and departure() give findings; told: ids of departures that were told."""

    def __init__(self, history: History, activity: Activity, clock: Clock) -> None:
        self.history, self.activity, self.clock = history, activity, clock
        self.told: set[int] = set()
        self.subject = f"group {history.name}"

    def problems(self) -> Iterator[Finding]:
        """Of requests that were refused or not answered."""
        for problem in self.history.problems:
            finding = self._problem(problem)
            if finding is not None:
                yield finding if finding.severity == "note" else replace(finding, words=problem.call.words)
        if self.history.unkept:
            what = (
                f"{self.history.unkept:,} more requests were refused; the first {len(self.history.problems):,} are told"
            )
            yield Finding("note", what, (), "", self.subject, self.history.last)

    def departure(self, member: Member, departure: Departure) -> Finding | None:
        """Of a member that was thrown out and met no error, or left because it did not poll; None when all is well."""
        if departure.kind in ("evicted", "expelled"):
            self.told.add(id(departure))
            seen = "" if departure.certain else "; no frame says so, but it was silent until the end"
            if departure.kind == "evicted" and not departure.certain and member.session is None:
                seen = ""
            what = f"{member.label}: {self.how(member, departure)}{seen}"
            severity = "error" if departure.certain else "warning"
            return Finding(severity, what, departure.refs, self._advice(member, departure),
                           self.subject, departure.time)  # fmt: skip
        if departure.kind == "silent" and departure.contact is not None:
            contact = departure.contact
            what = f"{member.label}: gone at {self.clock(departure.time)} or before; {self.how(member, departure)}, "
            what += f"{lasted(departure.time - contact.time)} before{self._asks(member)}"
            return Finding("warning", what, departure.refs, self._quiet(member, contact.time + 1), self.subject,
                           departure.time)  # fmt: skip
        if departure.kind == "left":
            return self._poll(member, departure)
        return None

    def _asks(self, member: Member) -> str:
        """The session timeout that the same client asks for elsewhere, where it is not known for the member."""
        found = [self.history.members.get(ident) for ident in member.seat.ids]
        other = next((one for one in found if one is not None and one.session is not None), None)
        if other is None:
            return ""
        said = f" ({other.said_in})" if other.said_in else ""
        return f"; when it came back it asked for a session timeout of {other.session:,} ms{said}"

    def how(self, member: Member, departure: Departure) -> str:
        """How a member went, as "evicted at 9.200, 6.0 s after its last heartbeat (frame 118); …"."""
        at, refs = self.clock(departure.time), departure.refs
        contact = departure.contact
        if departure.kind == "evicted" and contact is not None:
            after = f"{lasted(departure.time - contact.time)} after its last {contact.what} ({frame(contact.ref)})"
            if member.session is None:
                return f"evicted at {at} or before, {after}, when an epoch came without it ({frame(refs[-1])})"
            return f"evicted at {at}, {after}; {session_of(member)}"
        if departure.kind == "expelled":
            limit = member.rebalance if member.rebalance is not None and member.rebalance >= 0 else member.session
            said = f" ({member.said_in})" if member.said_in else ""
            return f"dropped at {at}: it had not rejoined within its rebalance timeout of {limit:,} ms{said}"
        if departure.kind == "replaced":
            taker = self.history.members.get(departure.by)
            who = f"client {taker.seat.client_id} from {taker.seat.host}" if taker else "another process"
            return f"{who} took over its instance id {member.instance} at {at} ({frame(refs[0])})"
        if departure.kind == "left":
            reason = f": {departure.reason}" if departure.reason else ""
            return f"it had left at {at} ({frame(refs[0])}{reason})"
        if departure.kind == "removed":
            return f"client {departure.by or '(no client id)'} removed it at {at} ({frame(refs[0])})"
        if departure.kind == "silent" and contact is not None:
            return f"last heard of at {self.clock(contact.time)} ({contact.what}, {frame(contact.ref)})"
        proof = f" ({frame(refs[0])})" if refs else ""
        return f"the generation formed at {at}{proof} does not have it; the capture does not show why"

    def cause(self, cause: Cause, at: bool = True) -> str:
        """What made the group rebalance, in a few words. at: with the time."""
        label, when = cause.label, f" at {self.clock(cause.time)}" if at else ""
        words = {
            "joined": f"{label} joined{when}", "back": f"{label} came back{when}",
            "leader": f"{label}, the leader, joined again{when}", "rejoined": f"{label} joined again{when}",
            "unseen": "nothing in the capture says why", "left": f"{label} left{when}",
        }  # fmt: skip
        detail = (cause.detail or (cause.departure.reason if cause.departure else "")).rstrip(".")
        detail = "" if detail.startswith(NO_REASON) else detail
        if cause.kind in words:
            return words[cause.kind] + (f" ({detail})" if detail else "")
        departure = cause.departure
        if cause.kind == "evicted" and departure is not None and departure.contact is not None:
            contact = departure.contact
            silent = lasted(departure.time - contact.time)
            return f"{label} was evicted{when}, {silent} after its last {contact.what} ({frame(contact.ref)})"
        return f"{label} {words_of(cause)}{when}"

    def _problem(self, problem: Problem) -> Finding | None:
        call = problem.call
        if call.answered_at is None:
            return self._silence(problem)
        if call.error in COORDINATOR:
            return self._coordinator(problem)
        if call.error == REBALANCE and call.key not in COMMITS:
            return self._told(problem)
        why, evidence, advice, severity = self._why(problem)
        again = ""
        if problem.repeats:
            again = f" (and {problem.repeats:,} more until {self.clock((problem.last or call.proof).time)})"
        check = call.check
        decided = f", check {check.number}: {check.name}" if check is not None and check.number else ""
        what = f"{problem.label}: {name(call.error)} at {self.clock(problem.time)} ({call.api}{decided}){again}"
        what += f": {why}" if why else ""
        if call.key in COMMITS:
            what += f"; {_offsets(problem)}"
        return Finding(severity, what, _unique(call.proof, *evidence), advice, self.subject, problem.time)

    def _why(self, problem: Problem) -> tuple[str, tuple[Reference, ...], str, str]:
        """Why it was refused, the proof beyond the answer, what to do, and how bad that is."""
        call, member, gone = problem.call, problem.member, problem.gone
        advice = AGAIN if call.key in COMMITS else ""
        if call.error in (UNKNOWN, FENCED_EPOCH) and member is not None:
            return self._out(problem, member, advice)
        if call.error == UNKNOWN:
            first = self.clock(self.history.first)
            why = f"the capture does not show this member before; it knows the group from {first} on"
            if call.key in COMMITS and not call.member:
                why = "a commit without a member id, while the group has members"
            return why, (), advice or LOG, "error"
        if call.error == FENCED:
            taker = problem.taker
            why = f"instance id {call.instance} belongs to another process now"
            if gone is not None and gone.kind == "replaced" and member is not None:
                self.told.add(id(gone))
                why = self.how(member, gone)
            elif taker is not None and taker.said is not None:
                why = f"{taker.seat.host or 'another process'} holds instance id {call.instance} since "
                why += f"{self.clock(taker.said.time)} ({frame(taker.said)})"
            evidence = gone.refs if gone is not None else _unique(taker.said if taker else None)
            return why, evidence, "Two processes run with one group.instance.id: give each its own.", "error"
        if call.error in (ILLEGAL, STALE_EPOCH):
            return self._generation(problem, advice)
        if call.error == REBALANCE:
            return self._while_rebalancing(problem)
        return self._request(call, advice)

    def _out(self, problem: Problem, member: Member, advice: str) -> tuple[str, tuple[Reference, ...], str, str]:
        call, gone, contact = problem.call, problem.gone or member.gone, problem.contact
        if gone is not None and gone.time > problem.time + (0 if gone.kind == "gone" else SLACK):
            self.told.add(id(gone))  # it went since, for it had learned that it was out
            gone = None
        if gone is not None and gone.kind != "silent":
            short = id(gone) in self.told
            self.told.add(id(gone))
            fault = gone.kind in ("evicted", "expelled", "replaced") or call.key in COMMITS
            if short:
                return f"{gone.kind} at {self.clock(gone.time)}", gone.refs, advice, "error" if fault else "warning"
            poll = self._poll(member, gone)
            if poll is not None:
                return f"{self.how(member, gone)}; {self._unpolled(member, gone)}", gone.refs, poll.advice, "error"
            advice = self._advice(member, gone) if gone.kind in ("evicted", "expelled") else advice
            return self.how(member, gone), gone.refs, advice, "error" if fault else "warning"
        if contact is None:
            return "the capture does not show when it was last heard of", (), advice, "error"
        silence = call.asked_at - contact.time
        if call.error == FENCED_EPOCH and member.generation is not None and call.generation != member.generation:
            why = f"it says epoch {call.generation}; the last that it was given is {member.generation}"
            return why, (contact.ref,), advice, "error"
        since = f"its last {contact.what} was {lasted(silence)} before ({frame(contact.ref)})"
        if call.key not in EPOCH_HEARTBEATS:
            if member.session is None:
                if gone is not None:
                    self.told.add(id(gone))
                why = f"{since}; its session timeout is not known, for its JoinGroup is not in the capture"
                why += self._asks(member)
            else:
                why = f"{since}, within its {session_of(member)}: the coordinator lost the group, or it was deleted"
                if silence < member.session * 1_000_000:
                    return why, (contact.ref,), advice or LOG, "error"
            return why, (contact.ref,), self._quiet(member, contact.time + silence // 2) or advice, "error"
        if silence >= EPOCH_SESSION:
            why = f"{since}: longer than the session timeout (45,000 ms unless configured), so it was evicted"
            return why, (contact.ref,), self._quiet(member, contact.time + silence // 2) or advice, "error"
        return since, (contact.ref,), advice, "error"

    def _generation(self, problem: Problem, advice: str) -> tuple[str, tuple[Reference, ...], str, str]:
        call, current = problem.call, problem.current
        noun = "generation" if call.error == ILLEGAL else "epoch"
        severity = "error" if call.key in COMMITS else "warning"
        if current is None:
            return f"it says {noun} {call.generation}", (), advice, severity
        why = f"it says {noun} {call.generation}"
        why += ", as the group does" if call.generation == current.number else f"; the group is at {current.number}"
        if current.formed is not None:
            why += f" since {self.clock(current.formed)}"
        why += f" ({frame(current.formed_by)})" if current.formed_by else ""
        return why, _unique(current.formed_by), advice, severity

    def _while_rebalancing(self, problem: Problem) -> tuple[str, tuple[Reference, ...], str, str]:
        """A commit while the group rebalances."""
        why = "the group rebalances"
        evidence: tuple[Reference, ...] = ()
        generation = self._around(problem.time)
        trigger = generation.trigger if generation else None
        if trigger is not None:
            why = f"the group rebalances since {self.clock(trigger.time)}: {self.cause(trigger)}"
            evidence = trigger.refs
        if problem.solved_at is not None:
            return f"{why}; a commit succeeded at {self.clock(problem.solved_at)}", evidence, "", "note"
        return why, evidence, AGAIN + " Commit when partitions are revoked.", "warning"

    def _around(self, time: int) -> Generation | None:
        """The generation that was being formed then."""
        for generation in self.history.generations:
            if generation.began <= time <= (generation.done or generation.formed or time):
                return generation
        return None

    def _request(self, call: Call, advice: str) -> tuple[str, tuple[Reference, ...], str, str]:
        """Errors that the request itself explains."""
        known = errors.get(call.error)
        if call.error == SESSION and "SessionTimeoutMs" in call.body:
            why = f"it asks for a session timeout of {call.body['SessionTimeoutMs']:,} ms"
            limits = "group.min.session.timeout.ms (6,000 by default) to group.max.session.timeout.ms (1,800,000)"
            return f"{why}; the broker allows {limits}", (), "Change session.timeout.ms.", "error"
        if call.error == PROTOCOL and "Protocols" in call.body:
            offered = ", ".join(one["Name"] for one in call.body["Protocols"])
            current = self.history.current
            group = current.protocol if current else ""
            why = f"it offers {call.body['ProtocolType']} {offered}" + (f"; the group uses {group}" if group else "")
            advice = "Members must share an assignor: change partition.assignment.strategy in two rolling restarts."
            return why, _unique(current.formed_by if current else None), advice, "error"
        return known.short if known and not call.words else "", (), advice, "error"

    def _told(self, problem: Problem) -> Finding | None:
        """A member that learned that the group rebalances: fine, if it joins then."""
        if problem.solved is not None or self.activity.last_time - problem.time < SOON:
            return None
        forming = self.history.forming
        if problem.member is not None and forming is not None and problem.member.id in forming.joins:
            return None
        if problem.member is not None and problem.member.gone is not None:
            return None
        verb = "heartbeats" if problem.call.key == HEARTBEAT else problem.call.api
        what = f"{problem.label}: told at {self.clock(problem.time)} that the group rebalances (frame "
        what += f"{problem.call.proof}), and has not joined since"
        what += f" ({problem.repeats:,} more {verb} were told the same)" if problem.repeats else ""
        advice = "It joins at its next poll: the application is busy. All others wait for it."
        return Finding("warning", what, (problem.call.proof,), advice, self.subject, problem.time)

    def _coordinator(self, problem: Problem) -> Finding:
        call = problem.call
        what = f"{problem.label}: {name(call.error)} at {self.clock(problem.time)} ({call.api})"
        if problem.repeats:
            times = "once" if problem.repeats == 1 else counted(problem.repeats, "time")
            what += f" and {times} more until {self.clock((problem.last or call.proof).time)}"
        if problem.solved_at is not None:
            what += f": {COORDINATOR[call.error]}; {call.api} went well at {self.clock(problem.solved_at)}"
            return Finding("note", what, _unique(call.proof, problem.solved), "", self.subject, problem.time)
        what += f": {COORDINATOR[call.error]}, and no {call.api} went well after it"
        if self.activity.last_time - problem.time < SOON:
            what += f"; the capture ends {lasted(self.activity.last_time - problem.time)} later"
            return Finding("note", what, _unique(call.proof, problem.last), "", self.subject, problem.time)
        advice = "See that __consumer_offsets has leaders and replicas enough (offsets.topic.replication.factor)."
        last = problem.last or call.proof
        grave = last.time - problem.time > SOON
        return Finding("error" if grave else "warning", what, _unique(call.proof, problem.last), advice, self.subject,
                       problem.time)  # fmt: skip

    def _silence(self, problem: Problem) -> Finding | None:
        call = problem.call
        if call.key == FIND_COORDINATOR or problem.solved is not None or call.ending is None:
            return None
        if not call.ending.startswith(("the broker answered", "the connection was reset")):
            return None
        what = f"{problem.label}: {call.api} at {self.clock(call.asked_at)} got no answer: {call.ending}"
        return Finding("warning", what, (call.asked,), "", self.subject, call.asked_at)

    def _poll(self, member: Member, departure: Departure) -> Finding | None:
        """A member that left because its application did not poll, as clients do by themselves (KIP-62)."""
        if departure.kind != "left" or not self._unpolled(member, departure):
            return None
        self.told.add(id(departure))
        what = f"{member.label}: left by itself at {self.clock(departure.time)} ({frame(departure.refs[0])}): "
        what += self._unpolled(member, departure)
        advice = "Process less in one poll (max.poll.records), or raise max.poll.interval.ms."
        return Finding("error", what, _unique(*departure.refs, member.said), advice, self.subject, departure.time)

    def _unpolled(self, member: Member, departure: Departure) -> str:
        limit, since = member.rebalance, member.polled
        known = limit is not None and limit >= 0
        if "poll" in departure.reason.lower():
            said = f", {member.said_in}" if member.said_in else ""
            return f"it said: {departure.reason.rstrip('.')}" + (
                f" (max.poll.interval.ms {limit:,} ms{said})" if known else ""
            )
        if limit is None or limit < 0 or since is None:
            return ""
        passed = departure.time - since
        if not limit * 1_000_000 * 0.95 <= passed <= limit * 1_000_000 * 1.5 + SOON or not self._goes_on(
            member, departure
        ):
            return ""
        said = f" ({member.said_in})" if member.said_in else ""
        why = f"its application had not polled for max.poll.interval.ms, {limit:,} ms{said}"
        return f"{why}: {lasted(passed)} passed since its last join or commit"

    def _goes_on(self, member: Member, departure: Departure) -> bool:
        """Whether the client is not just closing."""
        last = self.activity.last.get((member.seat.client_id, member.seat.host), 0)
        return last > departure.time + 1_000_000_000

    def _advice(self, member: Member, departure: Departure) -> str:
        if departure.kind == "expelled":
            return "Its application did not poll in time: process less in one poll, or raise max.poll.interval.ms."
        return (
            self._quiet(member, departure.time) or "See what held up its heartbeats then: a pause, load, the network."
        )

    def _quiet(self, member: Member, at: int) -> str:
        """What the client's other requests say about its silence."""
        seat = member.seat
        if not seat.host:
            return ""
        silence = self.activity.silence(seat.client_id, seat.host, at)
        if silence is None:
            return "Its other requests went on meanwhile: only its heartbeats stopped (a blocked thread, or no poll)."
        start, end = silence
        until = f"{self.clock(end)} ({lasted(end - start)})" if end is not None else "the end"
        return (
            f"Nothing at all came from it from {self.clock(start)} to {until}: the process was stopped or paused "
            "(GC, swap, SIGSTOP, a frozen container), or cut off."
        )


def frame(ref: Reference) -> str:
    """As "JoinGroup, frame 9"; of a heartbeat only its frame."""
    what = ref.message.partition(" ")[0]
    for ending, said in (("Request", ""), ("Response", " answer")):
        if what.endswith(ending):
            what = what.removesuffix(ending) + said
    return f"frame {ref}" if "Heartbeat" in what or what == "OffsetCommit" else f"{what}, frame {ref}"


def session_of(member: Member) -> str:
    """As "session timeout 6,000 ms (JoinGroup, frame 9)"."""
    return f"session timeout {member.session:,} ms" + (f" ({member.said_in})" if member.said_in else "")


def name(code: int) -> str:
    """An error's name."""
    known = errors.get(code)
    return known.name if known else f"error {code}"


def _offsets(problem: Problem) -> str:
    count, names = problem.unstored
    more = " and others" if len(names) > 2 else ""
    return f"offsets of {counted(count, 'partition')} of {', '.join(names[:2])}{more} were not stored"


def _unique(*refs: Reference | None) -> tuple[Reference, ...]:
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))


def words_of(cause: Cause) -> str:
    """What became of a member, in a word or two."""
    words = {"left": "left", "removed": "was removed", "evicted": "was evicted", "expelled": "was dropped",
             "replaced": "was replaced", "silent": "was last heard of"}  # fmt: skip
    return words.get(cause.kind, "was gone")
