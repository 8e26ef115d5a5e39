"""Consumers on their way to their records: which of the seven steps each reached, which it repeats, what it waits for.

Clients are known by what they ask: brokers, followers, admin clients and producers are no consumers. What several
connections of a client say is put together as one consumer, or as several where two members of one client id and
address speak at the same time: by member id, and fetches by the partitions that each was given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.findings import Finding, Reference
from kwire.analyze.participants import CONSUMER, role_of
from kwire.analyze.steps import ClientTalk, StepOutcomes, together

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange

MOST = 10_000  # connections that are told apart


@dataclass(slots=True)
class Consumer:
    """A client as it is traced; steps by number, from 1. name: its client id, with a number where several are at work
    under it; sharing: how many those are; unread: fetches of which the capture does not show whether they brought
    records."""

    name: str
    client_id: str
    host: str
    talks: list[ClientTalk]
    sharing: int = 1
    software: str = ""
    groups: dict[str, None] = field(default_factory=dict)
    steps: list[StepOutcomes] = field(default_factory=list)
    rounds: int = 0  # how often it joined
    left: Reference | None = None
    last: int = 0
    records: Reference | None = None  # the first fetch with records
    fetches: int = 0
    unread: int = 0

    def __post_init__(self) -> None:
        talks = self.talks
        self.steps = [together(number, [talk.steps[number - 1] for talk in talks]) for number in range(1, 8)]
        self.software = next((talk.software for talk in talks if talk.software), "")
        self.groups = {group: None for talk in talks for group in talk.groups}
        self.rounds = sum(talk.rounds for talk in talks)
        self.last = max(talk.last for talk in talks)
        self.fetches, self.unread = sum(talk.fetches for talk in talks), sum(talk.unread for talk in talks)
        self.records = min((talk.records for talk in talks if talk.records), key=lambda ref: ref.time, default=None)
        left = max((talk.left for talk in talks if talk.left), key=lambda ref: ref.time, default=None)
        joined = max((ref.time for ref in (self.steps[2].last,) if ref), default=0)
        self.left = left if left is not None and joined < left.time else None

    @property
    def members(self) -> list[str]:
        """Its member ids."""
        return sorted({member for talk in self.talks for member in talk.members})

    def row(self, verdict: Finding) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "name": self.name, "client_id": self.client_id, "host": self.host, "software": self.software or None,
            "groups": list(self.groups), "member_ids": self.members, "joins": self.rounds, "verdict": verdict.row(),
            "steps": [step.row() for step in self.steps],
        }  # fmt: skip


class Trace:
    """add(exchange) collects; consumers gives those that were met, by client id and address."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, ClientTalk]] = {}
        self._count = 0
        self._full = False  # of consumers alone
        self.end = 0
        self.unkept = 0

    def add(self, exchange: Exchange) -> None:
        """An exchange of any API."""
        request, response = exchange.request, exchange.response
        self.end = max(self.end, (response or exchange.first).time)
        kind = None if request is None else request.api
        if request is None or kind is None or request.token:
            return
        talk = self._of(exchange)
        if talk is None:
            self.unkept += 1
            return
        talk.keys.add(kind.key)
        talk.add(exchange, kind.key)

    def _of(self, exchange: Exchange) -> ClientTalk | None:
        connection, client_id = exchange.connection, exchange.client_id or ""
        host = connection.host
        talks = self._known.get((client_id, host))
        name = f"{connection.capture} {connection.name}"
        talk = None if talks is None else talks.get(name)
        if talk is None:
            if self._count >= MOST and not self._spare():
                return None
            self._count += 1
            talk = ClientTalk(client_id, host, exchange.first.time)
            self._known.setdefault((client_id, host), {})[name] = talk
        identity = connection.identity
        if identity.software and not talk.software:
            talk.software = " ".join(filter(None, (identity.software, identity.software_version)))
        return talk

    def _spare(self) -> bool:
        """Forgets clients that asked for nothing yet that a consumer asks for. Whether there is room now."""
        if not self._full:
            for who, known in list(self._known.items()):
                if role_of(who[0], {key for talk in known.values() for key in talk.keys}) != CONSUMER:
                    self._count -= len(self._known.pop(who))
            self._full = self._count > MOST // 2
        return self._count < MOST

    def consumers(self) -> list[Consumer]:
        """Those that read, or take part in a group: no producers, tools, brokers."""
        found = []
        for (client_id, host), known in self._known.items():
            talks = list(known.values())
            asked = {key for talk in talks for key in talk.keys}
            if role_of(client_id, asked) != CONSUMER or any(talk.follower for talk in talks):
                continue
            several = _by_member(talks)
            for number, one in enumerate(several, 1):
                name = client_id if number == 1 else f"{client_id or '(no client id)'}/{number}"
                found.append(Consumer(name, client_id, host, one, len(several)))
        return sorted(found, key=lambda one: (one.client_id, one.host, one.name))


def _by_member(talks: list[ClientTalk]) -> list[list[ClientTalk]]:
    """Connections of one client id and address, those of each consumer together."""
    speakers: list[tuple[set[str], list[ClientTalk]]] = []
    for talk in sorted(talks, key=lambda one: one.first):
        if not talk.members:
            continue
        same = [one for one in speakers if one[0] & talk.members]
        merged = talk.members.union(*(ids for ids, _ in same)), [one for _, ours in same for one in ours] + [talk]
        speakers = [one for one in speakers if one not in same] + [merged]
    seats: list[list[ClientTalk]] = []
    for _, ours in sorted(speakers, key=lambda one: _span(one[1])[0]):
        began = _span(ours)[0]
        free = next((seat for seat in seats if _span(seat)[1] <= began), None)
        if free is None:
            seats.append(list(ours))
        else:
            free += ours
    if len(seats) < 2:
        return [talks]
    members = [list(seat) for seat in seats]
    for talk in talks:
        if not talk.members:
            members[_whose(talk, seats)].append(talk)
    return members


def _whose(talk: ClientTalk, seats: list[list[ClientTalk]]) -> int:
    """Which of several consumers a connection is that names no member: the one that was given what it fetches; else the
    one that joined next."""
    overlap = [len(talk.fetched & {part for one in seat for part in one.given}) for seat in seats]
    if overlap.count(max(overlap)) == 1:
        return overlap.index(max(overlap))
    waits = [_span(seat)[0] - talk.first for seat in seats]
    return min(range(len(seats)), key=lambda at: (waits[at] < 0, abs(waits[at])))


def _span(talks: list[ClientTalk]) -> tuple[int, int]:
    """From when to when a consumer spoke for a member, ns."""
    spans = [talk.grouped for talk in talks if talk.grouped is not None]
    return min(first for first, _ in spans), max(last for _, last in spans)
