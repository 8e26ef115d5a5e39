"""Exchanges of the group APIs, between members and coordinators, decoded once into one form.

Exchanges of other APIs are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from kwire.analyze.findings import Reference
from kwire.codec.quality import Quality
from kwire.coordinator.bodies import shape
from kwire.coordinator.types import Check
from kwire.schema import keys

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.exchange import Exchange, Message

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = keys.OFFSET_COMMIT, keys.OFFSET_FETCH, keys.FIND_COORDINATOR
JOIN, HEARTBEAT, LEAVE, SYNC = keys.JOIN_GROUP, keys.HEARTBEAT, keys.LEAVE_GROUP, keys.SYNC_GROUP
TXN_OFFSET_COMMIT, DELETE_GROUPS, OFFSET_DELETE = keys.TXN_OFFSET_COMMIT, keys.DELETE_GROUPS, keys.OFFSET_DELETE
CONSUMER_HEARTBEAT, SHARE_HEARTBEAT = keys.CONSUMER_GROUP_HEARTBEAT, keys.SHARE_GROUP_HEARTBEAT
STREAMS_HEARTBEAT = keys.STREAMS_GROUP_HEARTBEAT
EPOCH_HEARTBEATS = {CONSUMER_HEARTBEAT: "consumer", SHARE_HEARTBEAT: "share", STREAMS_HEARTBEAT: "streams"}
CLASSIC = (JOIN, HEARTBEAT, LEAVE, SYNC)
COMMITS = (OFFSET_COMMIT, TXN_OFFSET_COMMIT)
ELEMENTS = (("Results", "GroupId"), ("Groups", "GroupId"), ("Coordinators", "Key"))  # answers with one for each group
CUT = (Quality.TRUNCATED, Quality.GAP)
KEYS = {*CLASSIC, *COMMITS, *EPOCH_HEARTBEATS, OFFSET_FETCH, FIND_COORDINATOR, DELETE_GROUPS, OFFSET_DELETE}
BARE = {HEARTBEAT, *COMMITS, OFFSET_DELETE}  # whose answers hold only errors


@dataclass(slots=True)
class Call:
    """A request about one group, with its answer.

    member is "" where none is named; generation: the one that the request claims, an epoch where groups have those.
    asked_at, ns: when the whole request was there; answered_at: the answer's first byte, None without one. error: the
    first error code, 0 when there is none. body, answer: the values; answer is None when it cannot be read, and empty
    where all that it tells is that there was no error. topic(id) gives a topic's name.
    """

    key: int
    api: str
    version: int
    group: str
    member: str
    instance: str | None
    generation: int | None
    error: int
    asked_at: int
    answered_at: int | None
    asked: Reference
    answered: Reference | None
    client_id: str
    host: str
    broker: str
    connection: str
    body: dict[str, Any]
    answer: dict[str, Any] | None
    ending: str | None
    topic: Callable[[UUID], str]
    cut: bool = False  # a part of it is missing from the capture
    check: Check | None = None  # what the model says decided

    @property
    def fine(self) -> bool:
        """Whether it was answered without an error."""
        return self.answered_at is not None and not self.error

    def slim(self) -> Call:
        """A copy without arrays and bytes, small enough to keep."""
        body = {name: value for name, value in self.body.items() if not isinstance(value, list | bytes)}
        if "Protocols" in self.body:
            body["Protocols"] = [{"Name": one["Name"]} for one in self.body["Protocols"]]
        return replace(self, body=body, answer=None if self.answer is None else {"ErrorMessage": self.words})

    @property
    def words(self) -> str:
        """What the broker said of an error, of the call's own group; empty when nothing."""
        answer = self.answer or {}
        parts = [answer, *(one for one in answer.get("Coordinators") or () if one["Key"] == self.group)]
        return next((one["ErrorMessage"] for one in parts if one.get("ErrorMessage")), "")

    @property
    def proof(self) -> Reference:
        """The answer's frame; the request's without one."""
        return self.answered or self.asked


def calls_of(exchange: Exchange) -> Iterator[Call]:
    """A call for each group that the exchange is about; none when it is about none, or its request cannot be read."""
    request, response = exchange.request, exchange.response
    kind = None if request is None else request.api
    if request is None or kind is None or kind.key not in KEYS:
        return
    body = read_body(request)
    if body is None:
        return
    connection = exchange.connection
    bare = response is not None and kind.key in BARE and response.quality == Quality.OK and not response.errors
    answer = {} if bare else read_body(response) if response is not None else None
    asked, answered = Reference.of(request), None if response is None else Reference.of(response)
    cut = request.quality in CUT or (response is not None and response.quality in CUT)
    for group, member, instance, generation in _subjects(kind, body):
        yield Call(
            kind.key, kind.api, kind.version, group, member, instance, generation, _error_of(exchange, answer, group),
            request.last_time, None if response is None else response.time, asked, answered, request.client_id or "",
            connection.host, connection.ends[1], f"{connection.capture} {connection.name}", body, answer,
            exchange.ending, connection.topics.name, cut,
        )  # fmt: skip


def _error_of(exchange: Exchange, answer: dict[str, Any] | None, group: str) -> int:
    """The error for one group: if the answer has an element for each group, that of its element."""
    found = exchange.error or 0
    if not found or answer is None:
        return found
    for array, name in ELEMENTS:
        for element in answer.get(array) or ():
            if isinstance(element, dict) and element.get(name) == group:
                parts = [part for topic in element.get("Topics") or () for part in topic["Partitions"]]
                codes = [element["ErrorCode"], *(part["ErrorCode"] for part in parts)]
                return next((code for code in codes if code), 0)
    return found


def is_unread(exchange: Exchange) -> bool:
    """Whether it is about a group that cannot be read."""
    request = exchange.request
    about = request is not None and request.api is not None and request.api.key in KEYS
    return about and request is not None and read_body(request) is None


def read_body(message: Message) -> dict[str, Any] | None:
    """A body's values; if the capture cut it off, with defaults for the missing fields."""
    body = message.body()
    kind = message.api
    if body is not None or kind is None or not kind.supported or message.quality not in CUT:
        return body
    definition = kind.message(message.kind)
    span = next((one for one in message.frame().span.children if one.type == "message"), None)
    if definition is None or span is None:
        return None
    there = {
        one.name: one.value
        for one in span.children
        if one.slot is not None and not one.slot.array and not one.slot.struct and isinstance(one.value, str | int)
    }
    first = next(iter(kind.plan(message.kind).root.slots), None)
    if first is None or first.name not in there:
        return None
    return shape(definition.name, kind.version, there)


Subject = tuple[str, str, str | None, int | None]


class SubjectFields(NamedTuple):
    """The fields of a request that tell the member, its instance id, and its generation or epoch; empty where its
    version has none."""

    member: str
    instance: str
    generation: str


@lru_cache(256)
def _fields(kind: Kind) -> SubjectFields:
    there = {slot.name for slot in kind.plan("request").root.slots}
    wanted = (
        ("MemberId",),
        ("GroupInstanceId", "InstanceId"),
        ("GenerationId", "GenerationIdOrMemberEpoch", "MemberEpoch"),
    )
    return SubjectFields(*(next((name for name in names if name in there), "") for names in wanted))


def _subjects(kind: Kind, body: dict[str, Any]) -> Iterable[Subject]:
    """The groups that a request names, with member id, instance id and generation or epoch."""
    if kind.key == FIND_COORDINATOR:
        if body.get("KeyType", 0) != 0:
            return ()
        keys = body.get("CoordinatorKeys") or [body.get("Key")]
        return [(name, "", None, None) for name in keys if isinstance(name, str)]
    if kind.key == DELETE_GROUPS:
        return [(name, "", None, None) for name in body["GroupsNames"]]
    if kind.key == OFFSET_FETCH and "Groups" in body:
        return [
            (group["GroupId"], group.get("MemberId") or "", None, group.get("MemberEpoch")) for group in body["Groups"]
        ]
    member, instance, generation = _fields(kind)
    return [(body["GroupId"], body.get(member) or "", body.get(instance), body.get(generation))]
