"""What a group's leader computes: who reads which partitions, and the bytes in which members and leader say so.

range and roundrobin as Kafka's RangeAssignor and RoundRobinAssignor do it, without racks: members in the order of their
ids, static members in front, in the order of their instance ids. The bytes are ConsumerProtocolSubscription and
ConsumerProtocolAssignment behind an int16 version (AbstractPartitionAssignor, ConsumerProtocol).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from kwire.client.bodies import Partition
from kwire.client.exchange import Body
from kwire.codec.library import builtin_library
from kwire.errors import DecodeError, UnknownName


class Subscriber(NamedTuple):
    """A member as the leader sees it."""

    member: str
    topics: tuple[str, ...]
    instance: str | None = None

    @property
    def order(self) -> tuple[bool, str]:
        return (self.instance is None, self.instance or self.member)


Assignment = dict[str, list[Partition]]
Assignor = Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def by_range(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """Each topic's partitions in equal runs; the first members get one more where they do not divide."""
    out: Assignment = {member.member: [] for member in members}
    for topic in sorted({topic for member in members for topic in member.topics}):
        readers = sorted((member for member in members if topic in member.topics), key=lambda member: member.order)
        each, more = divmod(partitions.get(topic, 0), len(readers))
        start = 0
        for at, reader in enumerate(readers):
            end = start + each + (at < more)
            out[reader.member] += [(topic, index) for index in range(start, end)]
            start = end
    return out


def by_turns(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """All partitions of all topics dealt out one by one."""
    out: Assignment = {member.member: [] for member in members}
    turns = cycle(sorted(members, key=lambda member: member.order))
    for topic in sorted({topic for member in members for topic in member.topics}):
        for index in range(partitions.get(topic, 0)):
            reader = next(turn for turn in turns if topic in turn.topics)
            out[reader.member].append((topic, index))
    return out


ASSIGNORS: dict[str, Assignor] = {"range": by_range, "roundrobin": by_turns}


def subscription(topics: Sequence[str]) -> bytes:
    """Version 0, which every broker and every leader reads."""
    return _written("ConsumerProtocolSubscription", {"Topics": list(topics), "UserData": None})


def topics_of(data: bytes) -> tuple[str, ...]:
    """What a member subscribed to. Raises DecodeError."""
    body = _read("ConsumerProtocolSubscription", data)
    return tuple(body["Topics"])


def assignment(partitions: Sequence[Partition]) -> bytes:
    rows: dict[str, list[int]] = {}
    for topic, index in partitions:
        rows.setdefault(topic, []).append(index)
    listed = [{"Topic": topic, "Partitions": indexes} for topic, indexes in rows.items()]
    return _written("ConsumerProtocolAssignment", {"AssignedPartitions": listed, "UserData": None})


def assigned(data: bytes) -> list[Partition]:
    """What a member was given; of no bytes, nothing. Raises DecodeError."""
    if not data:
        return []
    body = _read("ConsumerProtocolAssignment", data)
    return [(row["Topic"], index) for row in body["AssignedPartitions"] for index in row["Partitions"]]


def _written(name: str, body: dict[str, object]) -> bytes:
    return b"\0\0" + builtin_library().codec(name, 0).encode(body)


def _read(name: str, data: bytes) -> Body:
    version = int.from_bytes(data[:2], "big", signed=True)
    known = builtin_library().message(name).versions
    if len(data) < 2 or version < 0:
        raise DecodeError(name, "", 0, f"needs a version of two bytes, has {data[:2].hex(' ') or 'nothing'}")
    try:
        return builtin_library().codec(name, min(version, known.high)).decode_at(data, 2)[0]
    except UnknownName as error:
        raise DecodeError(name, "", 0, str(error)) from error
