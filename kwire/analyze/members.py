"""Members of a group as a capture shows them: seats, member ids that sit in them, their heartbeats and departures.

A client that is evicted comes back under another member id. To a person it is the same consumer, so ids share a seat:
the same client id, address and instance id, on the same connection or after the id before it was gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from kwire.analyze.findings import Reference
from kwire.analyze.intervals import Intervals

MOST_TICKS = 600  # buckets of a seat's heartbeats; when they do not suffice, each becomes twice as long
MOST_SPELLS = 64
MOST_CONNECTIONS = 64
MOST_SEATS = 20_000
OTHERS = "(others)"  # the seat of all beyond those
UUID = re.compile(r"[-_][0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$")
Assignment = dict[str, list[int]]  # partitions by topic


class Ticks:
    """Moments counted in buckets of equal length, ns."""

    __slots__ = ("counts", "length")

    def __init__(self) -> None:
        self.length = 20_000_000
        self.counts: dict[int, int] = {}

    def add(self, time: int) -> None:
        bucket = time // self.length
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        if len(self.counts) > MOST_TICKS:
            self.length *= 2
            halved: dict[int, int] = {}
            for old, count in self.counts.items():
                halved[old // 2] = halved.get(old // 2, 0) + count
            self.counts = halved

    def moments(self) -> list[tuple[int, int]]:
        """The buckets' middles, ns, with their counts."""
        return [(bucket * self.length + self.length // 2, count) for bucket, count in sorted(self.counts.items())]


@dataclass(slots=True)
class Heartbeats:
    """How many, and how far apart, ns. longest: the widest interval, with the heartbeat that ended it."""

    count: int = 0
    intervals: Intervals = field(default_factory=Intervals)
    longest: int = 0
    longest_end: Reference | None = None

    def add(self, interval: int | None, ref: Reference) -> None:
        """A heartbeat; interval: since the one before it."""
        self.count += 1
        if interval is not None:
            self.intervals.add(interval)
            if interval > self.longest:
                self.longest, self.longest_end = interval, ref

    @property
    def usual(self) -> int | None:
        """The median interval, ns."""
        return self.intervals.usual


@dataclass(slots=True)
class Contact:
    """What renewed a member's session: when the broker had it, what it was ("heartbeat"), and its frame."""

    time: int
    what: str
    ref: Reference


@dataclass(slots=True)
class Departure:
    """How a member went. kind: left, removed (by somebody else), evicted, expelled (a rebalance did not wait longer),
    replaced (its instance id was taken over), silent (when is not known) or gone (nothing says why). certain: whether a
    frame says so. by: the client that removed it, or the member id that replaced it. contact: the last of it before."""

    kind: str
    time: int
    refs: tuple[Reference, ...] = ()
    reason: str = ""
    certain: bool = True
    by: str = ""
    contact: Contact | None = None


@dataclass(slots=True)
class TrackedMember:
    """A member id. session and rebalance: its timeouts, ms, as the request said says; parked: when it asked the
    JoinGroup or SyncGroup that is not answered yet, during which no session ends."""

    id: str
    seat: Seat
    instance: str | None = None
    session: int | None = None
    rebalance: int | None = None
    said: Reference | None = None
    joined_at: int | None = None
    generation: int | None = None
    contact: Contact | None = None
    beat_at: int | None = None
    parked: int | None = None
    topics: tuple[str, ...] = ()
    assignment: Assignment | None = None
    gone: Departure | None = None
    connection: str = ""  # on which it spoke last
    polled: int | None = None  # when it last did what a client does only when its application polls, ns

    @property
    def label(self) -> str:
        return self.seat.label

    @property
    def said_in(self) -> str:
        """As "JoinGroup, frame 9": where its timeouts stand."""
        if self.said is None:
            return ""
        return f"{self.said.message.partition('Request')[0]}, frame {self.said}"

    @property
    def deadline(self) -> int | None:
        """When its session ends unless it is heard of, ns."""
        if self.contact is None or self.session is None:
            return None
        return self.contact.time + self.session * 1_000_000


@dataclass(slots=True)
class Seat:
    """A consumer as a person sees it. spells: its times in the group, as [from, until or None]."""

    label: str
    client_id: str
    host: str
    instance: str | None
    connections: set[str] = field(default_factory=set)
    taken: bool = False  # whether its last member is in the group
    ids: list[str] = field(default_factory=list)
    beats: Heartbeats = field(default_factory=Heartbeats)
    ticks: Ticks = field(default_factory=Ticks)
    spells: list[list[int | None]] = field(default_factory=list)
    errors: list[tuple[int, int]] = field(default_factory=list)  # time and code

    def enter(self, time: int) -> None:
        """The client is in the group from then on."""
        if (not self.spells or self.spells[-1][1] is not None) and len(self.spells) < MOST_SPELLS:
            self.spells.append([time, None])

    def leave(self, time: int) -> None:
        """It is not from then on."""
        if self.spells and self.spells[-1][1] is None:
            self.spells[-1][1] = max(time, self.spells[-1][0] or 0)

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        beats = self.beats
        return {
            "name": self.label, "client_id": self.client_id, "host": self.host, "instance_id": self.instance,
            "member_ids": self.ids, "heartbeats": beats.count, "heartbeat_interval_ns": beats.usual,
            "longest_interval_ns": beats.longest or None,
            "in_group": [{"from": start, "until": end} for start, end in self.spells],
        }  # fmt: skip


class Seats:
    """The seats of a group: of(...) finds the one of a member id not seen before, or makes one."""

    def __init__(self) -> None:
        self.all: dict[str, Seat] = {}  # by label
        self._on: dict[tuple[str, str | None, str], Seat] = {}  # by client id, instance and connection
        self._vacant: dict[tuple[str, str, str | None], list[Seat]] = {}
        self._named: dict[str, int] = {}

    def of(self, client_id: str, host: str, instance: str | None, connection: str) -> Seat:
        """The seat for a client: the one on its connection, one that is vacant, or a new one."""
        seat = self._on.get((client_id, instance, connection)) if connection else None
        if seat is None:
            vacant = self._vacant.get((client_id, host, instance), [])
            while vacant and seat is None:
                last = vacant.pop()
                seat = None if last.taken else last
            seat = seat or self._new(client_id, host, instance)
        self.meet(seat, connection)
        return seat

    def on(self, client_id: str, instance: str | None, connection: str) -> Seat | None:
        """The seat whose client spoke on a connection."""
        return self._on.get((client_id, instance, connection))

    def meet(self, seat: Seat, connection: str) -> None:
        """The seat's client speaks on a connection."""
        if connection and connection not in seat.connections and len(seat.connections) < MOST_CONNECTIONS:
            seat.connections.add(connection)
            self._on[seat.client_id, seat.instance, connection] = seat

    def vacate(self, seat: Seat) -> None:
        """Its member is gone: the client may come back under another id."""
        if seat.taken:
            seat.taken = False
            self._vacant.setdefault((seat.client_id, seat.host, seat.instance), []).append(seat)

    def _new(self, client_id: str, host: str, instance: str | None) -> Seat:
        name = instance or client_id or "(no client id)"
        if len(self.all) >= MOST_SEATS:
            name, client_id, host, instance = OTHERS, "", "", None
            if OTHERS in self.all:
                return self.all[OTHERS]
        number = self._named[name] = self._named.get(name, 0) + 1
        label = name if number == 1 else f"{name}/{number}"
        seat = self.all[label] = Seat(label, client_id, host, instance)
        return seat


def client_of(member: str) -> str:
    """The client id in a member id that a broker made: what stands before the uuid."""
    return UUID.sub("", member) or member
