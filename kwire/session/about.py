"""What an exchange is about: topics with partitions, group, transactional id, read from the request by its schema.

SAYS names the fields that count, most of them by the schema's entityType; single bodies are read by it here, columns in
about_columns.py. RULES has a line for each API that says more, or says it in other fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.codec.plan import Slot, StructPlan
from kwire.schema import keys
from kwire.session.quorum import METADATA_TOPIC, RAFT, words_of
from kwire.session.topics import Partitions
from kwire.wire.columns import Ints, repeat

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.topics import Topics

PARTITION = ("PartitionIndex", "Partition", "Index", "PartitionId")
Says = IntEnum("Says", "TOPIC TOPIC_ID GROUP TRANSACTION GENERATION EPOCH MEMBER")
# what a field says, by its entityType, or by its name where it has none
SAYS = {
    "topicName": Says.TOPIC, "topicId": Says.TOPIC_ID, "groupId": Says.GROUP, "transactionalId": Says.TRANSACTION,
    "memberId": Says.MEMBER, "GenerationId": Says.GENERATION, "MemberEpoch": Says.EPOCH,
    "GenerationIdOrMemberEpoch": Says.EPOCH,
}  # fmt: skip
# in these requests the member epochs -1 and -2 are valid: the member leaves
HEARTBEATS = (keys.CONSUMER_GROUP_HEARTBEAT, keys.SHARE_GROUP_HEARTBEAT, keys.STREAMS_GROUP_HEARTBEAT)
CONFIGS = (keys.DESCRIBE_CONFIGS, keys.ALTER_CONFIGS, keys.INCREMENTAL_ALTER_CONFIGS)
COORDINATORS = {0: Says.GROUP, 1: Says.TRANSACTION}  # by KeyType
SHARE = 2  # the KeyType whose keys are no names
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

    def add(self, what: int, value: Any, key: int) -> None:
        """Adds what a field of a message of this API key says; names that are empty say nothing."""
        if what == Says.TOPIC and value:
            self.topics.setdefault(value, [])
        elif what in (Says.GROUP, Says.TRANSACTION):
            names = self.groups if what == Says.GROUP else self.transactions
            if value and value not in names:
                names.append(value)
        elif what == Says.GENERATION:
            self.generation = value
        elif what == Says.EPOCH:
            self.epoch = value if value >= 0 or key in HEARTBEATS else None
        elif what == Says.MEMBER and self.member is None:
            self.member = value


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


class AboutSource(NamedTuple):
    """A message and where it was seen; body: the request's, or the response's where the request is missing; answer:
    returns the response's body. about: what its fields say."""

    kind: Kind
    body: dict[str, Any]
    connection: ConnectionInfo
    answer: Callable[[], dict[str, Any] | None]
    about: About


def about(source: AboutSource, side: str) -> About:
    """What an exchange is about. side: whose the body is, "request" or "response"."""
    out, kind = source.about, source.kind
    _struct(out, kind.plan(side).root, source.body, source.connection.topics, kind.key)
    if side == "request" and kind.key in RULES:
        out.words += RULES[kind.key](source)
    return out


def says(slot: Slot) -> Says | None:
    """What a field says: Says.TOPIC, Says.GROUP and so on."""
    return SAYS.get(slot.field.entity or slot.name)


def partitions_in(slot: Slot) -> str | None:
    """Where an array holds partition numbers: in this field of its structs, or, if "", as its own elements."""
    if not slot.array or not slot.name.startswith("Partition"):
        return None
    if slot.struct is None:
        return "" if slot.type == "int32" else None
    return next((inner.name for inner in slot.struct.slots if inner.name in PARTITION), None)


def _struct(out: About, plan: StructPlan, body: dict[str, Any], topics: Topics, key: int) -> None:
    """Adds what the fields of a struct say, and those of the structs in it."""
    topic = ""
    partitions: list[int] = []
    for slot in plan.slots:
        value: Any = body.get(slot.name)
        if value is None:
            continue
        what, numbered = says(slot), partitions_in(slot)
        values = value if slot.array else [value]
        if what == Says.TOPIC and not slot.array:
            topic = value
        elif what == Says.TOPIC_ID:
            topic = topic or (topics.name(value) if value.int else "")
        elif what is not None:
            for each in values:
                out.add(what, each, key)
        if numbered is not None:
            partitions += [element[numbered] for element in value] if numbered else value
        if slot.struct:
            for element in values:
                _struct(out, slot.struct, element, topics, key)
    if topic:
        out.topics.setdefault(topic, []).extend(partitions)


def _fetch(source: AboutSource) -> list[str]:
    body, connection, out = source.body, source.connection, source.about
    held = connection.topics.fetched(connection.ends[1], body, out.topics, source.answer)
    out.topics = out.topics if held is None else held
    words = [] if held is None else [f"session {body['SessionId']}"]
    return words + _quorum(source) if METADATA_TOPIC in out.topics else words


def _quorum(source: AboutSource) -> list[str]:
    return [words_of(source.kind, source.body, source.answer())]


def _coordinator(source: AboutSource) -> list[str]:
    names = source.body.get("CoordinatorKeys") or [source.body.get("Key")]
    kind = source.body.get("KeyType", 0)
    if kind == SHARE:
        return [" ".join(["share", *map(str, names)])]
    for name in names:
        source.about.add(COORDINATORS.get(kind, Says.GROUP), name, source.kind.key)
    return []


def _metadata(source: AboutSource) -> list[str]:
    everything = source.body.get("Topics") is None or source.kind.version == 0
    return [] if source.about.topics else ["all topics" if everything else "no topics"]


def _software(source: AboutSource) -> list[str]:
    name = source.body.get("ClientSoftwareName")
    return [] if name is None else [f"{name} {source.body['ClientSoftwareVersion']}"]


def _login(source: AboutSource) -> list[str]:
    who = source.connection.identity
    return [" ".join(filter(None, (who.mechanism, who.principal)))]


def _resources(source: AboutSource) -> list[str]:
    named = [(RESOURCES.get(one["ResourceType"]), one["ResourceName"]) for one in source.body.get("Resources") or ()]
    for kind, name in named:
        if kind == "topic":
            source.about.add(Says.TOPIC, name, source.kind.key)
    return [f"{kind or 'resource'} {name}".strip() for kind, name in named if kind != "topic"]


BODY_RULES: dict[int, Callable[[AboutSource], list[str]]] = {
    keys.METADATA: _metadata, keys.FIND_COORDINATOR: _coordinator, keys.API_VERSIONS: _software,
    keys.SASL_HANDSHAKE: lambda source: [source.body["Mechanism"]], **dict.fromkeys(CONFIGS, _resources),
}  # fmt: skip
# these also need the connection or the response
EXCHANGE_RULES = {keys.FETCH: _fetch, keys.SASL_AUTHENTICATE: _login, **dict.fromkeys(RAFT, _quorum)}
RULES = BODY_RULES | EXCHANGE_RULES
