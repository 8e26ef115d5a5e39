"""Why requests of a group's members were refused: the coordinator's rule that decided, and the frames that prove it.

The rules are org.apache.kafka.coordinator.group.GroupMetadataManager's and, for commits, OffsetMetadataManager's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kwire.analyze.calls import COMMITS, EPOCH_HEARTBEATS, FIND_COORDINATOR, HEARTBEAT, Call
from kwire.analyze.causes import SLACK
from kwire.analyze.departures import SOON, Departures, frame, session_of, unique
from kwire.analyze.findings import Finding, Reference, about, error_label, lasted
from kwire.analyze.history import Generation, Problem
from kwire.analyze.members import TrackedMember
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.errorcodes import errors

COORDINATOR = {  # while it starts or moves
    codes.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator was still loading",
    codes.COORDINATOR_NOT_AVAILABLE: "there was no coordinator yet",
    codes.NOT_COORDINATOR: "that broker did not coordinate it then",
}
EPOCH_SESSION = 45_000_000_000  # ns: group.consumer.session.timeout.ms unless configured
LOG = "Look in the coordinator's log for the member id."
AGAIN = "What was processed since the commit before is read again."


class Refusals:
    """findings() tells of a group's requests that were refused or not answered."""

    def __init__(self, departures: Departures) -> None:
        self.departures = departures
        self.history, self.activity, self.clock = departures.history, departures.activity, departures.clock
        self.subject, self.told = departures.subject, departures.told

    def findings(self) -> Iterator[Finding]:
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

    def _problem(self, problem: Problem) -> Finding | None:
        call = problem.call
        if call.answered_at is None:
            return self._silence(problem)
        if call.error in COORDINATOR:
            return self._coordinator(problem)
        if call.error == codes.REBALANCE_IN_PROGRESS and call.key not in COMMITS:
            return self._told(problem)
        why, evidence, advice, severity = self._why(problem)
        again = ""
        if problem.repeats:
            again = f" (and {problem.repeats:,} more until {self.clock((problem.last or call.proof).time)})"
        check = call.check
        decided = f", check {check.number}: {check.name}" if check is not None and check.number else ""
        what = f"{problem.label}: {error_label(call.error)} at {self.clock(problem.time)} ({call.api}{decided}){again}"
        what += f": {why}" if why else ""
        if call.key in COMMITS:
            what += f"; {_offsets(problem)}"
        detector = self._detector(problem)
        time = problem.gone.time if detector == "evicted" and problem.gone is not None else problem.time
        return Finding(
            severity, what, unique(call.proof, *evidence), advice, self.subject, min(time, problem.time),
            detector=detector, about=self._about(problem), last=(problem.last or call.proof).time,
            count=1 + problem.repeats,
        )  # fmt: skip

    def _detector(self, problem: Problem) -> str:
        """Whose finding it is in kwire doctor; empty where it is nobody's."""
        call, gone = problem.call, problem.gone
        if call.error in (codes.FENCED_INSTANCE_ID, codes.UNRELEASED_INSTANCE_ID) or (
            gone is not None and gone.kind == "replaced"
        ):
            return "static-clash"
        if call.error in (codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH):
            left = gone is not None and gone.kind in ("left", "removed")
            if left and problem.member is not None and gone is not None:
                unpolled = self.departures.unpolled(problem.member, gone)
                return "poll-timeout" if unpolled else "commit-refused" if call.key in COMMITS else ""
            return "evicted"
        if call.error == codes.INCONSISTENT_GROUP_PROTOCOL:
            return "assignor-clash"
        return "commit-refused" if call.key in COMMITS else ""

    def _about(self, problem: Problem) -> dict[str, str | int]:
        call = problem.call
        return about(client_id=call.client_id, address=call.host, group=self.history.name)

    def _why(self, problem: Problem) -> tuple[str, tuple[Reference, ...], str, str]:
        """Why it was refused, the proof beyond the answer, what to do, and how bad that is."""
        call, member, gone = problem.call, problem.member, problem.gone
        advice = AGAIN if call.key in COMMITS else ""
        if call.error in (codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH) and member is not None:
            return self._out(problem, member, advice)
        if call.error == codes.UNKNOWN_MEMBER_ID:
            first = self.clock(self.history.first)
            why = f"the capture does not show this member before; it knows the group from {first} on"
            if call.key in COMMITS and not call.member:
                why = "a commit without a member id, while the group has members"
            return why, (), advice or LOG, "error"
        if call.error == codes.FENCED_INSTANCE_ID:
            taker = problem.taker
            why = f"instance id {call.instance} belongs to another process now"
            if gone is not None and gone.kind == "replaced" and member is not None:
                self.told.add(id(gone))
                why = self.departures.how(member, gone)
            elif taker is not None and taker.said is not None:
                why = f"{taker.seat.host or 'another process'} holds instance id {call.instance} since "
                why += f"{self.clock(taker.said.time)} ({frame(taker.said)})"
            evidence = gone.refs if gone is not None else unique(taker.said if taker else None)
            return why, evidence, "Two processes run with one group.instance.id: give each its own.", "error"
        if call.error == codes.UNRELEASED_INSTANCE_ID:
            return self._held(problem)
        if call.error in (codes.ILLEGAL_GENERATION, codes.STALE_MEMBER_EPOCH):
            return self._generation(problem, advice)
        if call.error == codes.REBALANCE_IN_PROGRESS:
            return self._while_rebalancing(problem)
        return self._request(call, advice)

    def _held(self, problem: Problem) -> tuple[str, tuple[Reference, ...], str, str]:
        """A static member of a group with epochs that joins while another one holds its instance id."""
        call, holder = problem.call, problem.taker
        why, evidence = f"instance id {call.instance} is another member's", unique(holder.said if holder else None)
        if holder is not None and holder.said is not None:
            who = f"client {holder.seat.client_id} from {holder.seat.host}" if holder.seat.host else "another process"
            why = f"{who} holds instance id {call.instance} since {self.clock(holder.said.time)} ({frame(holder.said)})"
        if problem.solved_at is not None:
            why += f"; {call.api} went well at {self.clock(problem.solved_at)}"
            return why, unique(*evidence, problem.solved), "", "note"
        return why, evidence, "Two processes run with one group.instance.id: give each its own.", "error"

    def _out(self, problem: Problem, member: TrackedMember, advice: str) -> tuple[str, tuple[Reference, ...], str, str]:
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
            poll = self.departures.poll(member, gone)
            if poll is not None:
                why = f"{self.departures.how(member, gone)}; {self.departures.unpolled(member, gone)}"
                return why, gone.refs, poll.advice, "error"
            advice = self.departures.advice(member, gone) if gone.kind in ("evicted", "expelled") else advice
            return self.departures.how(member, gone), gone.refs, advice, "error" if fault else "warning"
        if contact is None:
            return "the capture does not show when it was last heard of", (), advice, "error"
        silence = call.asked_at - contact.time
        if (
            call.error == codes.FENCED_MEMBER_EPOCH
            and member.generation is not None
            and call.generation != member.generation
        ):
            why = f"it says epoch {call.generation}; the last that it was given is {member.generation}"
            return why, (contact.ref,), advice, "error"
        since = f"its last {contact.what} was {lasted(silence)} before ({frame(contact.ref)})"
        if call.key not in EPOCH_HEARTBEATS:
            if member.session is None:
                if gone is not None:
                    self.told.add(id(gone))
                why = f"{since}; its session timeout is not known, for its JoinGroup is not in the capture"
                why += self.departures.asks(member)
            else:
                if silence < member.session * 1_000_000:
                    why = f"{since}, within its {session_of(member)}: the coordinator lost the group, or it was deleted"
                    return why, (contact.ref,), advice or LOG, "error"
                why = f"{since}, longer than its {session_of(member)}: it was evicted"
            return why, (contact.ref,), self.departures.quiet(member, contact.time + silence // 2) or advice, "error"
        if silence >= EPOCH_SESSION:
            why = f"{since}: longer than the session timeout (45,000 ms unless configured), so it was evicted"
            return why, (contact.ref,), self.departures.quiet(member, contact.time + silence // 2) or advice, "error"
        return since, (contact.ref,), advice, "error"

    def _generation(self, problem: Problem, advice: str) -> tuple[str, tuple[Reference, ...], str, str]:
        call, current = problem.call, problem.current
        noun = "generation" if call.error == codes.ILLEGAL_GENERATION else "epoch"
        severity = "error" if call.key in COMMITS else "warning"
        if current is None:
            return f"it says {noun} {call.generation}", (), advice, severity
        why = f"it says {noun} {call.generation}"
        why += ", as the group does" if call.generation == current.number else f"; the group is at {current.number}"
        if current.formed is not None:
            why += f" since {self.clock(current.formed)}"
        why += f" ({frame(current.formed_by)})" if current.formed_by else ""
        return why, unique(current.formed_by), advice, severity

    def _while_rebalancing(self, problem: Problem) -> tuple[str, tuple[Reference, ...], str, str]:
        """A commit while the group rebalances."""
        why = "the group rebalances"
        evidence: tuple[Reference, ...] = ()
        generation = self._around(problem.time)
        trigger = generation.trigger if generation else None
        if trigger is not None:
            why = f"the group rebalances since {self.clock(trigger.time)}: {self.departures.cause(trigger)}"
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
        if call.error == codes.INVALID_SESSION_TIMEOUT and "SessionTimeoutMs" in call.body:
            why = f"it asks for a session timeout of {call.body['SessionTimeoutMs']:,} ms"
            limits = "group.min.session.timeout.ms (6,000 by default) to group.max.session.timeout.ms (1,800,000)"
            return f"{why}; the broker allows {limits}", (), "Change session.timeout.ms.", "error"
        if call.error == codes.INCONSISTENT_GROUP_PROTOCOL and "Protocols" in call.body:
            offered = ", ".join(one["Name"] for one in call.body["Protocols"])
            current = self.history.current
            group = current.protocol if current else ""
            why = f"it offers {call.body['ProtocolType']} {offered}" + (f"; the group uses {group}" if group else "")
            advice = "Members must share an assignor: change partition.assignment.strategy in two rolling restarts."
            return why, unique(current.formed_by if current else None), advice, "error"
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
        return Finding("warning", what, (problem.call.proof,), advice, self.subject, problem.time,
                       detector="slow-joiner", about=self._about(problem), count=1 + problem.repeats)  # fmt: skip

    def _coordinator(self, problem: Problem) -> Finding:
        call = problem.call
        what = f"{problem.label}: {error_label(call.error)} at {self.clock(problem.time)} ({call.api})"
        if problem.repeats:
            times = "once" if problem.repeats == 1 else counted(problem.repeats, "time")
            what += f" and {times} more until {self.clock((problem.last or call.proof).time)}"
        if problem.solved_at is not None:
            what += f": {COORDINATOR[call.error]}; {call.api} went well at {self.clock(problem.solved_at)}"
            return Finding("note", what, unique(call.proof, problem.solved), "", self.subject, problem.time)
        what += f": {COORDINATOR[call.error]}, and no {call.api} went well after it"
        if self.activity.last_time - problem.time < SOON:
            what += f"; the capture ends {lasted(self.activity.last_time - problem.time)} later"
            return Finding("note", what, unique(call.proof, problem.last), "", self.subject, problem.time)
        advice = "See that __consumer_offsets has leaders and replicas enough (offsets.topic.replication.factor)."
        last = problem.last or call.proof
        grave = last.time - problem.time > SOON
        return Finding("error" if grave else "warning", what, unique(call.proof, problem.last), advice, self.subject,
                       problem.time)  # fmt: skip

    def _silence(self, problem: Problem) -> Finding | None:
        call = problem.call
        if call.key == FIND_COORDINATOR or problem.solved is not None or call.ending is None:
            return None
        if not call.ending.startswith(("the broker answered", "the connection was reset")):
            return None
        what = f"{problem.label}: {call.api} at {self.clock(call.asked_at)} got no answer: {call.ending}"
        return Finding("warning", what, (call.asked,), "", self.subject, call.asked_at)


def _offsets(problem: Problem) -> str:
    count, names = problem.unstored
    more = " and others" if len(names) > 2 else ""
    return f"offsets of {counted(count, 'partition')} of {', '.join(names[:2])}{more} were not stored"
