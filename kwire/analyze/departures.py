"""How members went, in words with the frames that prove it: evicted, dropped, replaced, removed, or gone by themselves.

The rules are the coordinator's own: org.apache.kafka.coordinator.group.GroupMetadataManager.
"""

from __future__ import annotations

from kwire.analyze.activity import Activity
from kwire.analyze.findings import Finding, Reference, TimeFormat, about, lasted
from kwire.analyze.history import Cause, History
from kwire.analyze.members import Departure, TrackedMember

NO_REASON = "need to re-join with the given member-id"  # what Java clients say after MEMBER_ID_REQUIRED
SOON = 5_000_000_000  # ns before the end of a capture in which nothing need have followed


class Departures:
    """finding() gives a finding about a departure; told: ids of departures that have one."""

    def __init__(self, history: History, activity: Activity, clock: TimeFormat) -> None:
        self.history, self.activity, self.clock = history, activity, clock
        self.told: set[int] = set()
        self.subject = f"group {history.name}"

    def finding(self, member: TrackedMember, departure: Departure) -> Finding | None:
        """Of a member that was thrown out and met no error, or left because it did not poll; None when all is well."""
        if not departure.certain and not self.activity.is_whole(member.seat.connections):
            return None
        if departure.kind in ("evicted", "expelled"):
            self.told.add(id(departure))
            seen = "" if departure.certain else "; no frame says so, but it was silent until the end"
            if departure.kind == "evicted" and not departure.certain and member.session is None:
                seen = ""
            what = f"{member.label}: {self.how(member, departure)}{seen}"
            severity = "error" if departure.certain else "warning"
            return Finding(severity, what, departure.refs, self.advice(member, departure), self.subject,
                           departure.time, detector="evicted", about=self.about(member))  # fmt: skip
        if departure.kind == "silent" and departure.contact is not None:
            contact = departure.contact
            what = f"{member.label}: gone at {self.clock(departure.time)} or before; {self.how(member, departure)}, "
            what += f"{lasted(departure.time - contact.time)} before{self.asks(member)}"
            return Finding("warning", what, departure.refs, self.quiet(member, contact.time + 1), self.subject,
                           departure.time, detector="evicted", about=self.about(member))  # fmt: skip
        if departure.kind == "left":
            return self.poll(member, departure)
        return None

    def about(self, member: TrackedMember) -> dict[str, str | int]:
        """What a finding about a member is about."""
        seat = member.seat
        return about(client_id=seat.client_id, address=seat.host, group=self.history.name)

    def asks(self, member: TrackedMember) -> str:
        """The session timeout that the client asks for elsewhere, if the member's own is unknown."""
        found = [self.history.members.get(ident) for ident in member.seat.ids]
        other = next((one for one in found if one is not None and one.session is not None), None)
        if other is None:
            return ""
        said = f" ({other.said_in})" if other.said_in else ""
        return f"; when it came back it asked for a session timeout of {other.session:,} ms{said}"

    def how(self, member: TrackedMember, departure: Departure) -> str:
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

    def poll(self, member: TrackedMember, departure: Departure) -> Finding | None:
        """A member that left because its application did not poll, as clients do by themselves (KIP-62)."""
        if departure.kind != "left" or not self.unpolled(member, departure):
            return None
        self.told.add(id(departure))
        what = f"{member.label}: left by itself at {self.clock(departure.time)} ({frame(departure.refs[0])}): "
        what += self.unpolled(member, departure)
        advice = "Process less in one poll (max.poll.records), or raise max.poll.interval.ms."
        return Finding("error", what, unique(*departure.refs, member.said), advice, self.subject, departure.time,
                       detector="poll-timeout", about=self.about(member))  # fmt: skip

    def unpolled(self, member: TrackedMember, departure: Departure) -> str:
        limit, since = member.rebalance, member.polled
        known = limit is not None and limit >= 0
        if "poll" in departure.reason.lower():
            said = f", {member.said_in}" if member.said_in else ""
            return f"it said: {departure.reason.rstrip('.')}" + (
                f" (max.poll.interval.ms {limit:,} ms{said})" if known else ""
            )
        if limit is None or limit < 0 or since is None:
            return ""
        if not self.activity.went_on([member.connection], departure.time):
            return ""
        fetched = self.activity.fetchless(member.seat.client_id, member.seat.host, departure.time)
        said = f" ({member.said_in})" if member.said_in else ""
        why = f"its application had not polled for max.poll.interval.ms, {limit:,} ms{said}"
        for done, last in (("join or commit", since), ("Fetch", fetched)):  # some clients fetch though nobody polls
            passed = 0 if last is None else departure.time - last
            if limit * 1_000_000 * 0.95 <= passed <= limit * 1_000_000 * 1.5 + SOON:
                return f"{why}: {lasted(passed)} passed since its last {done}"
        return ""

    def advice(self, member: TrackedMember, departure: Departure) -> str:
        if departure.kind == "expelled":
            return "Its application did not poll in time: process less in one poll, or raise max.poll.interval.ms."
        return self.quiet(member, departure.time) or "See what held up its heartbeats then: a pause, load, the network."

    def quiet(self, member: TrackedMember, at: int) -> str:
        """What the client's other requests tell about its silence, as text."""
        seat = member.seat
        if not seat.host:
            return ""
        silence = self.activity.silence(seat.client_id, seat.host, at)
        if silence is None and self._shares(member, at):
            return ""  # which of them went on nobody knows
        if silence is None:
            return "Its other requests went on meanwhile: only its heartbeats stopped (a blocked thread, or no poll)."
        start, end = silence
        until = f"{self.clock(end)} ({lasted(end - start)})" if end is not None else "the end"
        return (
            f"Nothing at all came from it from {self.clock(start)} to {until}: the process was stopped or paused "
            "(GC, swap, SIGSTOP, a frozen container), or cut off."
        )

    def _shares(self, member: TrackedMember, at: int) -> bool:
        """Whether another member was at work under the same client id and address then."""
        seat = member.seat
        return any(
            other is not seat and (other.client_id, other.host) == (seat.client_id, seat.host)
            and any((start or 0) <= at and (end is None or at <= end) for start, end in other.spells)
            for other in self.history.seats.all.values()
        )  # fmt: skip


def frame(ref: Reference) -> str:
    """As "JoinGroup, frame 9"; of a heartbeat only its frame."""
    what = ref.message.partition(" ")[0]
    for ending, said in (("Request", ""), ("Response", " answer")):
        if what.endswith(ending):
            what = what.removesuffix(ending) + said
    return f"frame {ref}" if "Heartbeat" in what or what == "OffsetCommit" else f"{what}, frame {ref}"


def session_of(member: TrackedMember) -> str:
    """As "session timeout 6,000 ms (JoinGroup, frame 9)"."""
    return f"session timeout {member.session:,} ms" + (f" ({member.said_in})" if member.said_in else "")


def unique(*refs: Reference | None) -> tuple[Reference, ...]:
    """The references that are not None, each once."""
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))


def words_of(cause: Cause) -> str:
    """How a member left, in a word or two."""
    words = {"left": "left", "removed": "was removed", "evicted": "was evicted", "expelled": "was dropped",
             "replaced": "was replaced", "silent": "was last heard of"}  # fmt: skip
    return words.get(cause.kind, "was gone")
