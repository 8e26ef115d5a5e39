"""What an exchange is about: topics with partitions, group, transactional id, read from the request by its schema.

The schema marks which fields are names of topics, groups and transactions; only requests that put them in fields of
other kinds (FindCoordinator, configs) have a line of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kwire.codec.plan import Slot, StructPlan
from kwire.schema.keys import (
    ALTER_CONFIGS,
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
)
from kwire.session.quorum import METADATA_TOPIC, RAFT, words_of
from kwire.session.topics import Partitions
from kwire.wire.columns import Ints, repeat

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.sasl import Identity
    from kwire.session.topics import Topics

PARTITION = ("PartitionIndex", "Partition", "Index", "PartitionId")
# in these requests the member epochs -1 and -2 are valid: the member leaves
HEARTBEATS = (CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT)
CONFIGS = (DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS)
ANSWERED = frozenset({SASL_AUTHENTICATE, *RAFT})  # APIs whose About also needs the connection or the response
# APIs that _words handles
WORDED = ANSWERED | {METADATA, FIND_COORDINATOR, SASL_HANDSHAKE, API_VERSIONS, *CONFIGS}
COORDINATORS = {0: "group", 1: "transaction", 2: "share"}
RESOURCES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}


@dataclass(slots=True)
class About:
    """topics: partition numbers by topic name, empty where the request lists none. words: other texts to show."""

    topics: Partitions = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    generation: int | None = None
    epoch: int | None = None
    member: str | None = None
    words: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Abouts:
    """values: the distinct Abouts; which: for each exchange, its index in values."""

    values: list[About]
    which: Ints

    def take(self, rows: Ints | NDArray[np.bool_]) -> Abouts:
        """The Abouts of these exchanges: a boolean mask or row numbers."""
        return Abouts(self.values, self.which[rows])

    def topics(self) -> tuple[list[str], Ints, Ints]:
        """All topic names, and a pair of equally long arrays: the topic's index and the row of each exchange that names
        it."""
        names: dict[str, int] = {}
        of = [[names.setdefault(name, len(names)) for name in value.topics] for value in self.values]
        counts = np.array([len(each) for each in of], np.int64)
        flat = np.array([number for each in of for number in each], np.int64)
        starts = np.cumsum(counts) - counts
        many = counts[self.which]
        rows = repeat(np.arange(len(self.which)), many)
        within = np.arange(len(rows)) - repeat(np.cumsum(many) - many, many)
        return list(names), flat[repeat(starts[self.which], many) + within], rows


def about(
    kind: Kind, side: str, body: dict[str, Any], connection: ConnectionInfo, answer: Callable[[], dict[str, Any] | None]
) -> About:
    """What an exchange is about. body: the request's, or the response's where the request is missing; side: "request"
    or "response"; answer: returns the response's body."""
    out = About()
    _struct(out, kind.plan(side).root, body, connection.topics, kind.key)
    if side == "response":
        return out
    _words(out, kind, body, connection.identity)
    if kind.key == FETCH:
        session = connection.topics.fetched(connection.ends[1], body, out.topics, answer)
        if session is not None:
            out.topics = session
            out.words.append(f"session {body['SessionId']}")
    if kind.key in RAFT or (kind.key == FETCH and METADATA_TOPIC in out.topics):
        out.words.append(words_of(kind, body, answer()))
    return out


def _struct(out: About, plan: StructPlan, body: dict[str, Any], topics: Topics, key: int) -> None:
    """Collects topics, groups and transactions from a struct and the structs nested in it."""
    topic: str | None = None
    partitions: list[int] = []
    for slot in (*plan.slots, *plan.tagged.values()):
        value: Any = body.get(slot.name)
        if value is None:
            continue
        entity = slot.field.entity
        if entity == "topicName":
            if slot.array:
                for name in value:
                    out.topics.setdefault(name, [])
            else:
                topic = value
        elif entity == "topicId" and isinstance(value, UUID) and value.int:
            topic = topic or topics.name(value)
        elif entity == "groupId":
            _add(out.groups, value)
        elif entity == "transactionalId":
            _add(out.transactions, value)
        elif slot.name == "GenerationId":
            out.generation = value
        elif slot.name in ("MemberEpoch", "GenerationIdOrMemberEpoch"):
            out.epoch = value if value >= 0 or key in HEARTBEATS else None
        elif entity == "memberId" and out.member is None and isinstance(value, str):
            out.member = value
        if slot.array:
            partitions += _partitions(slot, value)
        if slot.struct:
            for element in value if slot.array else [value]:
                _struct(out, slot.struct, element, topics, key)
    if topic:
        out.topics.setdefault(topic, []).extend(partitions)


def _partitions(slot: Slot, value: list[Any]) -> list[int]:
    """The partition numbers that an array holds."""
    if not slot.name.startswith("Partition"):
        return []
    if slot.struct is None:
        return list(value) if slot.type == "int32" else []
    name = next((inner.name for inner in slot.struct.slots if inner.name in PARTITION), None)
    return [element[name] for element in value] if name else []


def _add(into: list[str], value: object) -> None:
    for name in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and name and name not in into:
            into.append(name)


def _words(out: About, api: Kind, body: dict[str, Any], identity: Identity) -> None:
    """Adds what fields of some requests say that the schema gives no entityType."""
    key = api.key
    if key == FIND_COORDINATOR:
        names = body.get("CoordinatorKeys") or [body.get("Key")]
        kind = COORDINATORS.get(body.get("KeyType", 0), "group")
        if kind == "group":
            _add(out.groups, names)
        elif kind == "transaction":
            _add(out.transactions, names)
        else:
            out.words.append(" ".join(["share", *map(str, names)]))
    elif key == METADATA and not out.topics:
        everything = body.get("Topics") is None or api.version == 0
        out.words.append("all topics" if everything else "no topics")
    elif key == API_VERSIONS and "ClientSoftwareName" in body:
        out.words.append(f"{body['ClientSoftwareName']} {body['ClientSoftwareVersion']}")
    elif key == SASL_HANDSHAKE:
        out.words.append(body["Mechanism"])
    elif key == SASL_AUTHENTICATE:
        out.words.append(" ".join(filter(None, (identity.mechanism, identity.principal))))
    elif key in CONFIGS:
        for resource in body.get("Resources") or ():
            kind, name = RESOURCES.get(resource["ResourceType"], "resource"), resource["ResourceName"]
            if kind == "topic":
                out.topics.setdefault(name, [])
            else:
                out.words.append(f"{kind} {name}".strip())
