"""Whether a broker speaks Kafka as Kafka does: every version that it advertises answers in its layout, and what Kafka
4.3 refuses is refused in the same way. What 4.3.1 does was seen on the real broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from struct import pack
from typing import Any, NamedTuple

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.defaults import filled
from kwire.client.effects import changes
from kwire.client.exchange import Body, request_frame
from kwire.client.security import Security
from kwire.codec.library import builtin_library
from kwire.codec.plan import StructPlan
from kwire.errors import EncodeError, Failure
from kwire.schema.errorcodes import errors
from kwire.schema.model import Versions

OK, DIFFERS, NOT_ASKED = "ok", "differs", "not asked"
CLOSES, SILENT = "closes the connection", "says nothing"
UNKNOWN_TOPIC = "kwire-check-no-such-topic"
UNKNOWN_GROUP = "kwire-check-no-such-group"
SHORT = 3.0  # seconds that count as saying nothing
BROKERS = {  # what only brokers ask of each other
    ("Envelope", 0): "wraps a request for another broker",
    ("AddPartitionsToTxn", 4): "with no transactions has no answer",
    ("AddPartitionsToTxn", 5): "with no transactions has no answer",
}  # fmt: skip
GONE = {("Produce", 0), ("Produce", 1), ("Produce", 2)}  # Kafka 4 names them for librdkafka's sake (KAFKA-18659)


class Checked(NamedTuple):
    """what was looked at; told: the outcome; expected: Kafka's, where the outcome is another one; verdict: OK, DIFFERS
    or NOT_ASKED, with why in told."""

    what: str
    verdict: str
    told: str
    expected: str = ""

    def row(self) -> tuple[str, str, str]:
        """As a table shows it."""
        return self.what, self.verdict, f"{self.told}; Kafka {self.expected}" if self.expected else self.told


@dataclass(frozen=True, slots=True)
class Probe:
    """How to reach a broker. offered: which versions it takes, once a connection has asked: hundreds of connections
    are opened, and an answer may be long."""

    address: Address
    security: Security
    client_id: str
    timeout: float
    offered: dict[int, Versions] = field(default_factory=dict)

    def open(self, negotiate: bool = True) -> BrokerConnection:
        """A connection of its own. Raises Failure."""
        connection = BrokerConnection.open(
            self.address, self.security, client_id=self.client_id, timeout=self.timeout, negotiate=negotiate,
            offered=(self.offered or None) if negotiate else None,
        )  # fmt: skip
        self.offered.update(connection.offered or {})
        return connection


# ---------------------------------------------------------------- what is advertised


def advertised(probe: Probe, writing: bool) -> Iterator[Checked]:
    """Asks every version of every API that the broker names, with next to nothing in it. writing: also those that may
    change something. Raises Failure when the broker is not there."""
    library = builtin_library()
    connection = probe.open()
    offered = dict(sorted((connection.offered or {}).items()))
    for low, high in _runs(key for key in offered if library.registry.name_of(key) is None):
        what = f"API key {low}" if low == high else f"API keys {low} to {high}"
        yield Checked(what, NOT_ASKED, "kwire does not know it" if low == high else "kwire does not know them")
    for key, theirs in offered.items():
        if library.registry.name_of(key) is None:
            continue
        definition = library.registry.api(key)
        ours = definition.messages[0].versions
        known = [version for version in ours.each() if theirs.low <= version <= theirs.high]
        yield from _unknown(definition.name, theirs.low, theirs.high, known)
        for version in known:
            what = f"{definition.name} v{version}"
            plan = library.plan(definition.messages[0].name, version)
            body = filled(definition.name, plan, {})
            effect = changes(key, version, body)
            reason = BROKERS.get((definition.name, version)) or ("" if writing or not effect else effect)
            if reason:
                yield Checked(what, NOT_ASKED, reason)
                continue
            if connection.closed:
                connection = probe.open()
            yield _asked(connection, definition.name, version, body, what)
    connection.close()


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of ascending numbers that follow each other."""
    for _, run in groupby(enumerate(numbers), lambda item: item[1] - item[0]):
        (_, low), *rest = run
        yield low, rest[-1][1] if rest else low


def _unknown(api: str, low: int, high: int, known: list[int]) -> Iterator[Checked]:
    """A row for all versions between two that kwire knows: a broker may name 65,536 of each API."""
    for before, after in pairwise([low - 1, *known, high + 1]):
        first, last = before + 1, after - 1
        if first == last:
            yield Checked(f"{api} v{first}", NOT_ASKED, "kwire does not know this version")
        elif first < last:
            yield Checked(f"{api} v{first} to v{last}", NOT_ASKED, "kwire does not know these versions")


def _asked(connection: BrokerConnection, api: str, version: int, body: Body, what: str) -> Checked:
    try:
        exchange = connection.request(api, version, body)
    except EncodeError as error:
        return Checked(what, NOT_ASKED, f"has to have something in it: {error}")
    except Failure as failure:
        connection.close()
        if failure.kind == "closed" and (api, version) in GONE:
            return Checked(what, OK, f"{CLOSES}, as Kafka 4 does")
        return Checked(what, DIFFERS, _failed(failure), "an answer")
    frame = exchange.frames()[1][0]
    if frame.quality != "ok":
        return Checked(
            what, DIFFERS, f"answers, but {frame.quality}: {frame.note or 'not in its layout'}", "its layout"
        )
    return Checked(what, OK, _error_of(exchange.body()))


def _failed(failure: Failure) -> str:
    return {"closed": CLOSES, "timeout": SILENT}.get(failure.kind, failure.reason)


def _error_of(body: Any) -> str:
    """The first error in an answer, in words."""
    code = next(_codes(body), 0)
    known = errors.get(code)
    return "answers" if not code else f"answers {known.name if known else code}"


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "ErrorCode" and inner:
                yield inner
            yield from _codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _codes(inner)


# ---------------------------------------------------------------- what is refused


class RefusalCheck(NamedTuple):
    """what is done wrong; expected: what Kafka does; act: does it and says what came of it."""

    what: str
    expected: str
    act: Callable[[Probe], str]


def refused(probe: Probe) -> Iterator[Checked]:
    """Does what Kafka refuses. Raises Failure when the broker is not there."""
    for one in REFUSALS:
        told = one.act(probe)
        fine = told in one.expected.split(" or ")
        yield Checked(one.what, OK if fine else DIFFERS, told, "" if fine else one.expected)


def _bytes(data: bytes, negotiate: bool = True) -> Callable[[Probe], str]:
    """Sends bytes that are no request; an answer to the next request, if it gets one, counts as carrying on."""

    def act(probe: Probe) -> str:
        with probe.open(negotiate) as connection:
            try:
                connection.tell(data, SHORT)
                return "answers"
            except Failure as failure:
                return _failed(failure)

    return act


def _ask(api: str, body: Body, low: int = 0, edit: Callable[[bytes], bytes] | None = None) -> Callable[[Probe], str]:
    """Asks an API at the newest version that both know, if that is low or newer. edit: of the frame."""

    def act(probe: Probe) -> str:
        library = builtin_library()
        with probe.open() as connection:
            try:
                version = connection.version(api)
                plan = library.plan(f"{api}Request", version)
                if version < low:
                    return f"knows only v{version}"
                whole = filled(api, plan, _fitting(plan.root, body))
                if edit is None:
                    return _error_of(connection.request(api, version, whole).body())
                frame = edit(request_frame(library, api, version, whole, 77, probe.client_id))
                answer = connection.tell(frame, SHORT)
            except Failure as failure:
                return "is not served" if failure.kind == "unsupported" else _failed(failure)
            from kwire.codec.frames import decode_response

            found = decode_response(answer, library.registry.find(api).definition.key or 0, version, library)
            return "answers" if found.quality == "ok" else f"answers, but {found.quality}"

    return act


def _fitting(struct: StructPlan, body: Body) -> Body:
    """The body without the fields that the version lacks."""
    known = {slot.name: slot for slot in (*struct.slots, *struct.tagged.values())}
    out: Body = {}
    for name, value in body.items():
        inner = known[name].struct if name in known else None
        if inner is not None and isinstance(value, list):
            out[name] = [_fitting(inner, one) for one in value]
        elif name in known:
            out[name] = value
    return out


def _sized(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def _resized(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda frame: _sized(change(frame[4:]))


def _future(probe: Probe) -> str:
    """ApiVersions of a version that nobody knows: error 35 in the form of version 0 (KIP-511)."""
    with probe.open(negotiate=False) as connection:
        try:
            frame = connection.tell(_sized(pack(">hhih", 18, 99, 5, -1) + b"\x00"), SHORT)
        except Failure as failure:
            return _failed(failure)
    body = frame[8:]
    code = int.from_bytes(body[:2], signed=True)
    known = errors.get(code)
    layout = len(body) >= 6 and len(body) == 6 + 6 * int.from_bytes(body[2:6])
    return f"answers {known.name if known else code} in v0" if layout else "answers in another layout"


def _pipelined(probe: Probe) -> str:
    """Three requests at once: the answers come in their order."""
    library = builtin_library()
    with probe.open() as connection:
        version = connection.version("Metadata")
        plan = library.plan("MetadataRequest", version)
        none = filled("Metadata", plan, {"Topics": []})
        frames = [request_frame(library, "Metadata", version, none, number, probe.client_id) for number in (5, 3, 4)]
        try:
            first = connection.tell(b"".join(frames), probe.timeout)
            found = [first, *(connection.tell(b"", probe.timeout) for _ in range(2))]
        except Failure as failure:
            return _failed(failure)
    ids = [int.from_bytes(frame[4:8]) for frame in found]
    return "answers in order" if ids == [5, 3, 4] else f"answers in the order {ids}"


def _topic(name: str) -> Body:
    return {"Topics": [{"Name": name}]}


def _group(**more: Any) -> Body:
    return {"GroupId": UNKNOWN_GROUP, "MemberId": "nobody", "GenerationId": 1, **more}


JOIN = {"GroupId": UNKNOWN_GROUP, "MemberId": "", "Protocols": [{"Name": "range", "Metadata": b"\0\0\0\0\0\0"}]}
REFUSALS = (
    RefusalCheck("ApiVersions v99", "answers UNSUPPORTED_VERSION in v0", _future),
    RefusalCheck("Metadata v99", CLOSES, _bytes(_sized(pack(">hhih", 3, 99, 5, -1) + b"\x00"))),
    RefusalCheck("an API key that there is not", CLOSES, _bytes(_sized(pack(">hhih", 9999, 0, 5, -1)))),
    RefusalCheck("a size of -1", CLOSES, _bytes(pack(">i", -1) + bytes(8))),
    RefusalCheck("a size of 2 GB", CLOSES, _bytes(pack(">i", 2**31 - 1) + bytes(8))),
    RefusalCheck("a size of 0", CLOSES, _bytes(pack(">i", 0))),
    RefusalCheck("an HTTP request", CLOSES, _bytes(b"GET / HTTP/1.1\r\n\r\n")),
    RefusalCheck("a request that ends too early", CLOSES,
        _ask("Metadata", _topic("t"), edit=_resized(lambda b: b[:-3]))),
    RefusalCheck("a request with a byte too many", "answers",
        _ask("Metadata", {"Topics": []}, edit=_resized(lambda b: b + b"\0"))),
    RefusalCheck("three requests at once", "answers in order", _pipelined),
    RefusalCheck("a client that calls itself \"a b\"", "answers INVALID_REQUEST",
        _ask("ApiVersions", {"ClientSoftwareName": "a b", "ClientSoftwareVersion": "1"}, 3)),
    RefusalCheck("Metadata of a topic that there is not", "answers UNKNOWN_TOPIC_OR_PARTITION",
        _ask("Metadata", _topic(UNKNOWN_TOPIC))),
    RefusalCheck("Metadata of a topic named \"a b\"", "answers INVALID_TOPIC_EXCEPTION",
        _ask("Metadata", _topic("a b"))),
    RefusalCheck("ListOffsets of a topic that there is not", "answers UNKNOWN_TOPIC_OR_PARTITION",
        _ask("ListOffsets", {"Topics": [{"Name": UNKNOWN_TOPIC, "Partitions": [{"PartitionIndex": 0}]}]})),
    RefusalCheck("FindCoordinator of a kind that there is not", "answers INVALID_REQUEST",
        _ask("FindCoordinator", {"KeyType": 9, "CoordinatorKeys": ["x"]}, 4)),
    RefusalCheck("Heartbeat of a group that there is not", "answers UNKNOWN_MEMBER_ID", _ask("Heartbeat", _group())),
    RefusalCheck("Heartbeat of a group without a name", "answers INVALID_GROUP_ID",
        _ask("Heartbeat", _group(GroupId=""))),
    RefusalCheck("SyncGroup of a group that there is not",
        "answers UNKNOWN_MEMBER_ID or answers INCONSISTENT_GROUP_PROTOCOL",
        _ask("SyncGroup", _group())),
    RefusalCheck("LeaveGroup of a group that there is not", "answers UNKNOWN_MEMBER_ID",
        _ask("LeaveGroup", {"GroupId": UNKNOWN_GROUP, "MemberId": "x", "Members": [{"MemberId": "x"}]})),
    RefusalCheck("OffsetCommit of a member that there is not", "answers UNKNOWN_MEMBER_ID or answers UNKNOWN_TOPIC_ID",
        _ask("OffsetCommit", {"GroupId": UNKNOWN_GROUP, "MemberId": "x", "GenerationIdOrMemberEpoch": 4,
            "Topics": [{"Name": UNKNOWN_TOPIC, "Partitions": [{"PartitionIndex": 0}]}]})),
    RefusalCheck("JoinGroup with a session timeout of 1 ms", "answers INVALID_SESSION_TIMEOUT",
        _ask("JoinGroup", {**JOIN, "SessionTimeoutMs": 1})),
    RefusalCheck("a first JoinGroup", "answers MEMBER_ID_REQUIRED", _ask("JoinGroup", JOIN, 4)),
    RefusalCheck("JoinGroup of a member that there is not", "answers UNKNOWN_MEMBER_ID",
        _ask("JoinGroup", {**JOIN, "MemberId": "nobody"})),
    RefusalCheck("CreateTopics with no partitions", "answers INVALID_PARTITIONS",
        _ask("CreateTopics", {"ValidateOnly": True, "Topics": [
            {"Name": UNKNOWN_TOPIC, "NumPartitions": 0, "ReplicationFactor": 1}]}, 1)),
    RefusalCheck("CreateTopics with 30,000 replicas", "answers INVALID_REPLICATION_FACTOR",
        _ask("CreateTopics", {"ValidateOnly": True, "Topics": [
            {"Name": UNKNOWN_TOPIC, "NumPartitions": 1, "ReplicationFactor": 30_000}]}, 1)),
    RefusalCheck("DescribeConfigs of a kind that there is not", "answers INVALID_REQUEST",
        _ask("DescribeConfigs", {"Resources": [{"ResourceType": 77, "ResourceName": "x"}]})),
)  # fmt: skip
