"""What the answers of a consumer's seven steps say, in a few words each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.analyze.payload import assigned
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange

SHOWN = 4  # topics or brokers


def given_in(exchange: Exchange) -> dict[str, list[int]]:
    """The partitions that an answer assigns, by topic, or of streams groups by subtopology; none where it leaves all as
    it was, or gives nothing before others have given it up."""
    body = _answer(exchange)
    if "ActiveTasks" in body:
        return {f"subtopology {one['SubtopologyId']}": one["Partitions"] for one in body["ActiveTasks"] or ()}
    given: Any = body.get("Assignment")
    if isinstance(given, dict):
        names = exchange.connection.topics.name
        return {names(one["TopicId"]): one["Partitions"] for one in given["TopicPartitions"]}
    return assigned(given) if given else {}


def brings_records(exchange: Exchange) -> bool:
    """Whether a Fetch or ShareFetch brought any."""
    body = _answer(exchange)
    return any(part.get("Records") for topic in body.get("Responses") or () for part in topic.get("Partitions") or ())


def _answer(exchange: Exchange) -> dict[str, Any]:
    return (exchange.response.body() if exchange.response else None) or {}


def _metadata(exchange: Exchange) -> str:
    body = _answer(exchange)
    if "Brokers" not in body:
        return ""
    count = len(body["Brokers"])
    names = []
    for topic in body["Topics"]:
        title = topic.get("Name") or exchange.connection.topics.name(topic["TopicId"])
        names.append(f"{title} ({len(topic['Partitions']):,})")
    topics = f"; topics {_some(names)}" if names else ""
    return f"{counted(count, 'broker')}{topics}"


def _coordinator(exchange: Exchange) -> str:
    body = _answer(exchange)
    found = (body.get("Coordinators") or [body])[0]
    return f"node {found['NodeId']}, {found['Host']}:{found['Port']}" if "NodeId" in found else ""


def _join(exchange: Exchange) -> str:
    body, request = _answer(exchange), (exchange.request.body() if exchange.request else None) or {}
    if "GenerationId" not in body:
        return f"epoch {body['MemberEpoch']}" if "MemberEpoch" in body else ""
    role = f"leader of {len(body['Members']):,}" if body["Leader"] == body["MemberId"] else "follower"
    return f"generation {body['GenerationId']}, {role}, session timeout {request.get('SessionTimeoutMs', 0):,} ms"


def _assignment(exchange: Exchange) -> str:
    given = given_in(exchange)
    if "ActiveTasks" in _answer(exchange):
        return counted(sum(map(len, given.values())), "active task")
    return _partitions(given)


def _heartbeat(exchange: Exchange) -> str:
    interval = _answer(exchange).get("HeartbeatIntervalMs")
    return f"every {interval:,} ms asked for" if interval else ""


def _offsets(exchange: Exchange) -> str:
    body = _answer(exchange)
    topics = body.get("Topics") or [topic for group in body.get("Groups") or () for topic in group["Topics"]]
    offsets = [part["CommittedOffset"] for topic in topics for part in topic["Partitions"]]
    known = sum(offset >= 0 for offset in offsets)
    return f"{known:,} of {counted(len(offsets), 'partition')} with a committed offset"


def _fetch(exchange: Exchange) -> str:
    topics = exchange.about.topics
    return _partitions(topics) if any(topics.values()) else ""


def _partitions(topics: dict[str, list[int]]) -> str:
    """As "3 partitions: orders-0,1,2"."""
    count = sum(map(len, topics.values()))
    names = [
        f"{topic}-{_some([str(part) for part in sorted(parts)], ',', 8)}" for topic, parts in topics.items() if parts
    ]
    return counted(count, "partition") + (f": {_some(names)}" if names else "")


def _some(names: list[str], between: str = ", ", most: int = SHOWN) -> str:
    more = f" +{len(names) - most:,}" if len(names) > most else ""
    return between.join(names[:most]) + more


DETAILS: dict[int, Callable[[Exchange], str]] = {
    1: _metadata, 2: _coordinator, 3: _join, 4: _assignment, 5: _heartbeat, 6: _offsets, 7: _fetch,
}  # fmt: skip
