"""The errors in answers, one by one: which, on what, and the broker's own words.

An error belongs to the element that carries it: its topic-partition, group or resource is what the structs around the
error code name. ErrorMessage beside it, and of Produce the messages for single records (KIP-467), are the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from kwire.analyze.findings import Reference
from kwire.analyze.measures import PENDING
from kwire.session.about import PARTITION, RESOURCES
from kwire.session.record import error_name

if TYPE_CHECKING:
    from kwire.codec.plan import StructPlan
    from kwire.session.exchange import Exchange
    from kwire.session.topics import Topics

MOST = 10_000  # different ones that are counted; the rest is only a number
MOST_OF_ONE = 1000  # of one answer
PARTITIONS = 4  # of a topic, with the same error of the same client, from which on they are one row
OTHERS = {  # which no entity marks: what they name
    "Key": "", "ResourceName": "", "User": "principal", "MemberId": "member", "Feature": "",
    "PrincipalName": "principal", "BrokerId": "broker",
}  # fmt: skip
NAMES = {"topicName": "topic", "groupId": "group", "transactionalId": "transactional_id", "userName": "principal"}
RESOURCE_NAMES = {2: "topic", 4: "broker", 8: "broker", 32: "group"}
CODE, WORDS = "ErrorCode", "ErrorMessage"
About = dict[str, str | int]
FailureKey = tuple[str, str, str, str]  # error, API, client id, subject


class AnsweredError(NamedTuple):
    """An error in an answer: its code; on what, as "orders-0", empty where only the request says it; the broker's
    words, empty without any; those for single records, with their numbers in the batch; and on what by the names of a
    finding's about."""

    code: int
    subject: str
    words: str = ""
    records: tuple[tuple[int, str], ...] = ()
    about: tuple[tuple[str, str | int], ...] = ()


def failures_of(exchange: Exchange) -> Iterator[AnsweredError]:
    """The errors in an answer, in field order; none of an answer without, or that cannot be read."""
    response = exchange.response
    kind = response.api if response is not None else None
    if response is None or kind is None or not response.errors:
        return
    body, definition = response.body(), kind.response
    if body is None or definition is None:
        return
    version = kind.version if response.body_version is None else response.body_version
    root = kind.library.plan_of(definition, version).root
    for count, found in enumerate(_of_struct(root, body, None, exchange.connection.topics, {})):
        if count == MOST_OF_ONE:
            return
        yield found


def _of_struct(
    plan: StructPlan, value: dict[str, Any], around: str | None, topics: Topics, about: About
) -> Iterator[AnsweredError]:
    """around and about: what the structs around it are about; None of the body itself, which tells of the answer."""
    subject = ""
    if around is not None:
        subject, about = _subject(plan, value, around, topics, about)
    slots = (*plan.slots, *plan.tagged.values())
    for slot in slots:
        code = value.get(slot.name)
        if slot.field.error and isinstance(code, int) and code:
            said = value.get(slot.name.removesuffix(CODE) + WORDS)
            words = said if isinstance(said, str) else ""
            yield AnsweredError(code, subject, words, _records(value), tuple(about.items()))
    for slot in slots:
        inner = value.get(slot.name)
        if slot.struct is not None and inner:
            for element in inner if slot.array else [inner]:
                yield from _of_struct(slot.struct, element, subject, topics, about)


def _subject(plan: StructPlan, value: dict[str, Any], around: str, topics: Topics, about: About) -> tuple[str, About]:
    """What a struct is about: its own name, or its partition of the topic around it."""
    kind = value.get("ResourceType", 0)
    resource = RESOURCES.get(kind, "")
    for slot in plan.slots:
        own = value.get(slot.name)
        if slot.array or own is None or own == "":
            continue
        if slot.field.entity == "topicId" and isinstance(own, UUID) and own.int:
            named = any(isinstance(value.get(name), str) and value[name] for name in ("Name", "Topic", "TopicName"))
            if not named:
                name = topics.name(own)
                return name, about | {"topic": name}
        elif (slot.field.entity in NAMES or slot.name in OTHERS) and isinstance(own, str | int):
            text = own if isinstance(own, str) else f"broker {own}"
            which = NAMES.get(slot.field.entity or "") or OTHERS.get(slot.name) or RESOURCE_NAMES.get(kind, "")
            titled = f"{resource} {text}" if resource and resource != "topic" else text
            return titled, about | ({which: own} if which else {})
    part = next((value[slot.name] for slot in plan.slots if slot.name in PARTITION and slot.type == "int32"), None)
    if isinstance(part, int) and around:
        return f"{around}-{part}", about | {"partition": part}
    return around, about


def _records(value: dict[str, Any]) -> tuple[tuple[int, str], ...]:
    """The errors of single records in an answer to Produce."""
    found = value.get("RecordErrors") or ()
    return tuple((one["BatchIndex"], one.get("BatchIndexErrorMessage") or "") for one in found[:MOST_OF_ONE])


@dataclass(slots=True)
class FailureKind:
    """Failures of one kind: their number, the first and the last, the broker's words of the first, and how many had
    other words; topic: of which the subject is a partition, empty for other subjects."""

    count: int
    first: Reference
    last: Reference
    words: str
    others: int = 0
    topic: str = ""


class Failures:
    """add(exchange) counts which error met whom on what. kinds: by error (a name, or how it ended without an answer),
    API, client id and subject."""

    def __init__(self) -> None:
        self.kinds: dict[FailureKey, FailureKind] = {}
        self.unkept = 0

    def add(self, exchange: Exchange) -> None:
        """An exchange."""
        if exchange.response is None:
            if not exchange.silent and exchange.ending not in PENDING:
                self._count(exchange, f"no answer: {exchange.ending}" if exchange.ending else "no answer", "", "")
            return
        for one in failures_of(exchange):
            words = "; ".join(
                filter(None, (one.words, *(f"record {at}: {said}" for at, said in one.records[:3] if said)))
            )
            topic = one.subject.rpartition("-")[0] if any(name == "partition" for name, _ in one.about) else ""
            self._count(exchange, error_name(one.code) or "", one.subject, words, topic)

    def _count(self, exchange: Exchange, error: str, subject: str, words: str, topic: str = "") -> None:
        about = exchange.about
        if not subject:
            subject = ", ".join([*about.groups[:2], *about.transactions[:2], *list(about.topics)[:2]])
        key = error, exchange.api, exchange.client_id or "", subject
        where = Reference.of(exchange.response or exchange.first)
        known = self.kinds.get(key)
        if known is None:
            if len(self.kinds) >= MOST:
                self.unkept += 1
            else:
                self.kinds[key] = FailureKind(1, where, where, words, topic=topic)
            return
        known.count += 1
        known.others += bool(words) and words != known.words
        known.words = known.words or words
        if where.time < known.first.time:
            known.first = where
        if where.time >= known.last.time:
            known.last = where

    def rows(self) -> list[dict[str, Any]]:
        """As JSON shows them, the most frequent first."""
        return [
            {"error": error, "api": api, "client_id": client or None, "subject": subject or None, "count": one.count,
             "words": one.words or None, "first": one.first.row(), "last": one.last.row()}
            for (error, api, client, subject), one in self.most()
        ]  # fmt: skip

    def most(self) -> list[tuple[FailureKey, FailureKind]]:
        """The most frequent first, then the earliest."""
        return in_order(self.kinds)

    def most_by_topic(self) -> list[tuple[FailureKey, FailureKind]]:
        """The same, many partitions of a topic as one."""
        parts: dict[FailureKey, list[FailureKey]] = {}
        for (error, api, client, subject), one in self.kinds.items():
            if one.topic:
                parts.setdefault((error, api, client, one.topic), []).append((error, api, client, subject))
        out = dict(self.kinds)
        for (*whom, topic), keys in parts.items():
            if len(keys) >= PARTITIONS:
                error, api, client = whom
                out[error, api, client, f"{topic}, {len(keys):,} partitions"] = _sum(out.pop(key) for key in keys)
        return in_order(out)


def in_order(kinds: Mapping[FailureKey, FailureKind]) -> list[tuple[FailureKey, FailureKind]]:
    """The most frequent first, then the earliest."""
    return sorted(kinds.items(), key=lambda item: (-item[1].count, item[1].first.time, item[0]))


def _sum(kinds: Iterable[FailureKind]) -> FailureKind:
    found = sorted(kinds, key=lambda one: one.first.time)
    words = next((one.words for one in found if one.words), "")
    others = sum(one.others if one.words == words else one.count for one in found if one.words)
    return FailureKind(
        sum(one.count for one in found), found[0].first, max((one.last for one in found), key=lambda last: last.time),
        words, others,
    )  # fmt: skip
