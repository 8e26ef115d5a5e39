"""Why a group rebalanced: from two generations in a row, who is missing, who is new, and who came first.

A member that is missing left, was evicted when its session ended, was replaced by one with its instance id, or was not
waited for any longer. The earliest of these and of the joins is what made the group rebalance.
"""

from __future__ import annotations

from kwire.analyze.history import MOST_MOVES, Cause, Generation, History, moves
from kwire.analyze.members import Departure, TrackedMember

SLACK = 50_000_000  # ns by which captured times and the broker's may differ
KEPT = 500  # partitions up to which the assignments of past generations are kept


def fate(member: TrackedMember, until: int, without: Generation | None = None) -> Departure | None:
    """How a member left that is known to be out of the group at a time (ns); None if the capture does not show it.
    without: a generation that formed without it."""
    if member.gone is not None:
        return member.gone
    deadline = member.deadline
    if deadline is not None and member.parked is None and deadline <= until + SLACK and member.contact is not None:
        refs = tuple(ref for ref in (member.contact.ref, member.said) if ref is not None)
        return Departure("evicted", min(deadline, until), refs, contact=member.contact)
    formed = None if without is None else without.formed
    if without is not None and formed is not None and formed - without.began > SLACK and _waited(member, without):
        refs = tuple(ref for ref in (without.formed_by, member.said) if ref is not None)
        return Departure("expelled", formed, refs)
    if member.contact is not None and member.session is None:
        heard = formed if without is not None and formed is not None else until
        heard = without.told.time if without is not None and without.told is not None else heard
        return Departure("silent", heard, (member.contact.ref,), certain=False, contact=member.contact)
    if without is not None and formed is not None:
        return Departure("gone", formed, (without.formed_by,) if without.formed_by else (), certain=False)
    return None


def _waited(member: TrackedMember, generation: Generation) -> bool:
    """Whether the join phase lasted as long as the member may take."""
    limit = member.rebalance if member.rebalance is not None and member.rebalance >= 0 else member.session
    formed = generation.formed
    if limit is None or formed is None:
        return False
    begun = [join.asked_at for join in generation.joins.values()]
    return formed - min([generation.began, *begun]) >= limit * 1_000_000 - 10 * SLACK


def settle(history: History, previous: Generation | None, generation: Generation) -> None:
    """Says why a generation came about, once its members are known."""
    if generation.settled:
        return
    generation.settled = True
    formed = generation.formed or generation.began
    arrivals = _arrivals(previous, generation)
    first = min((cause.time for cause in arrivals), default=formed)
    departures: list[Cause] = []
    survivors = 0
    for ident, member in (previous.members if previous else {}).items():
        if ident in generation.members or (ident in generation.joins and not generation.whole):
            survivors += 1
            continue
        if not generation.whole and member.gone is None and (member.deadline or formed + 1) > formed:
            survivors += 1  # nothing shows that it left
            continue
        departure = fate(member, formed, generation)
        if departure is not None:
            history.part(member, departure)
            if departure.kind != "replaced" or member.instance is None:
                departures.append(_departed(member, departure))
    departures.sort(key=lambda cause: cause.time)
    if previous is not None:
        previous.endings = departures
        emptied = previous.whole and not survivors and all(cause.time <= first for cause in departures)
        previous.emptied = departures[-1].time if emptied and departures else None
        if previous.emptied is not None:
            departures = []
    causes = sorted([*departures, *arrivals], key=lambda cause: cause.time)
    told = generation.told
    if previous is not None and (not causes or (told is not None and told.time < causes[0].time - SLACK)):
        causes.insert(0, Cause(told.time if told else generation.began, "unseen", "", (told,) if told else ()))
    generation.causes = causes
    if causes:
        generation.began = min(causes[0].time, formed)
    generation.unmet = [cause.label for cause in departures if cause.kind in ("evicted", "expelled", "gone")
                        and cause.time > generation.began + SLACK]  # fmt: skip
    if previous is not None:
        previous.ended = generation.began
    for member in generation.members.values():
        member.seat.enter(formed)


def _departed(member: TrackedMember, departure: Departure) -> Cause:
    return Cause(departure.time, departure.kind, member.label, departure.refs, departure, member)


def _arrivals(previous: Generation | None, generation: Generation) -> list[Cause]:
    """Members that are new, and those that joined again without being told to."""
    out = []
    for ident, join in generation.joins.items():
        if join.answered_at is None and ident not in generation.members:
            continue
        known = previous is not None and ident in previous.members
        if not known:
            kind = "back" if join.member.seat.ids[0] != ident else "joined"
            out.append(Cause(join.asked_at, kind, join.member.label, (join.asked,), None, join.member, join.reason))
        elif join.told is None and (generation.told is None or join.asked_at < generation.told.time):
            detail = join.reason or (f"subscription {join.changed}" if join.changed else "")
            leader = previous is not None and previous.leader == ident
            kind = "leader" if leader and not detail else "rejoined"
            out.append(Cause(join.asked_at, kind, join.member.label, (join.asked,), None, join.member, detail))
    return out


def tally(previous: Generation | None, generation: Generation) -> None:
    """Counts the partitions that moved between members from one assignment to the next."""
    if generation.tallied:
        return
    generation.tallied = True
    generation.given = {
        generation.members[ident].label: sum(map(len, topics.values()))
        for ident, topics in generation.assignment.items() if ident in generation.members
    }  # fmt: skip
    if previous is None or not generation.assignment:
        return
    labels = {ident: member.label for known in (previous, generation) for ident, member in known.members.items()}
    changed = moves(previous.assignment, generation.assignment, labels) if previous.assignment else []
    if not (generation.whole and previous.whole):  # unseen partitions may still be assigned
        changed = [move for move in changed if move.source is not None and move.target is not None]
    generation.moved = sum(move.source is not None for move in changed)
    generation.moves = changed[:MOST_MOVES]
    if sum(previous.given.values()) > KEPT:
        previous.assignment = {}


def finish(history: History, end: int) -> None:
    """Decides what became of the last generation when the capture ends."""
    current = history.current
    if current is None:
        return
    found = []
    alive = 0
    for member in current.members.values():
        if member.gone is None:
            deadline = member.deadline
            if deadline is not None and member.parked is None and deadline < end - SLACK:
                departure = fate(member, end)
                assert departure is not None
                departure.certain = False
                history.part(member, departure)
            else:
                alive += 1
        if member.gone is not None:
            found.append(_departed(member, member.gone))
    current.endings = sorted(found, key=lambda cause: cause.time)
    if not alive and found and current.whole and history.forming is None:
        current.emptied = current.endings[-1].time
