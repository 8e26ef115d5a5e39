"""The settings of a client that its requests show, by the Java client's names: which field tells which, and what
batches of records tell of how they were put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import error as StructError
from typing import TYPE_CHECKING, Any

from kwire.analyze.payload import subscribed
from kwire.codec.quality import Quality
from kwire.records.batch import MAGIC_AT, read_header
from kwire.records.compression import name_of
from kwire.schema import keys

if TYPE_CHECKING:
    from kwire.analyze.profile import Profile
    from kwire.session.exchange import Exchange

Body = dict[str, Any]
ISOLATION = {0: "read_uncommitted", 1: "read_committed"}
RESET = {-1: "latest", -2: "earliest"}


PLAIN: dict[int, tuple[tuple[str, str, Callable[[Any], str]], ...]] = {  # by API key: setting, field, value as text
    keys.PRODUCE: (("acks", "Acks", lambda acks: "all" if acks == -1 else str(acks)),
                   ("request.timeout.ms", "TimeoutMs", str)),
    keys.FETCH: (("fetch.max.wait.ms", "MaxWaitMs", str), ("fetch.min.bytes", "MinBytes", str),
                 ("fetch.max.bytes", "MaxBytes", str), ("client.rack", "RackId", lambda rack: rack or "none"),
                 ("isolation.level", "IsolationLevel", lambda level: ISOLATION.get(level, str(level)))),
    keys.JOIN_GROUP: (("session.timeout.ms", "SessionTimeoutMs", str), ("group.id", "GroupId", str),
                      ("max.poll.interval.ms", "RebalanceTimeoutMs", str),
                      ("group.instance.id", "GroupInstanceId", lambda instance: instance or "none")),
    keys.CONSUMER_GROUP_HEARTBEAT: (("group.id", "GroupId", str),
                                    ("group.instance.id", "InstanceId", lambda instance: instance or "none")),
    keys.LIST_OFFSETS: (("isolation.level", "IsolationLevel", lambda level: ISOLATION.get(level, str(level))),),
    keys.METADATA: (("allow.auto.create.topics", "AllowAutoTopicCreation", lambda wanted: str(wanted).lower()),),
}  # fmt: skip
ROLES = {
    keys.PRODUCE: "producer", keys.FETCH: "consumer", keys.JOIN_GROUP: "consumer", keys.SHARE_FETCH: "share consumer",
    keys.CONSUMER_GROUP_HEARTBEAT: "consumer", keys.CREATE_TOPICS: "admin client",
}  # fmt: skip


def read_settings(profile: Profile, exchange: Exchange) -> None:
    """Adds what a request tells to its client's profile."""
    request = exchange.request
    if request is None or request.api is None or request.quality != Quality.OK:
        return
    key = request.api.key
    if key not in PLAIN and key not in MORE:
        return
    body = request.body()
    if body is None:
        return
    for setting, name, text in PLAIN.get(key, ()):
        if name in body:
            profile.note(setting, text(body[name]))
    for setting, value in MORE[key](body) if key in MORE else ():
        profile.note(setting, value)
    if key in ROLES:
        profile.roles.add(ROLES[key])
    if key == keys.PRODUCE:
        for _, partition in _partitions(body, "TopicData", "PartitionData"):
            if partition["Records"]:
                profile.batches.add(partition["Records"])


def _produce(body: Body) -> Iterable[tuple[str, str]]:
    transactional = body.get("TransactionalId") is not None
    yield "transactional.id", "set" if transactional else "none"
    for topic, partition in _partitions(body, "TopicData", "PartitionData"):
        records = partition["Records"]
        if not records or len(records) <= MAGIC_AT + 6:
            continue
        try:
            modern = records[MAGIC_AT] >= 2
            yield "compression.type", name_of(records[22 if modern else MAGIC_AT + 1])
            if modern:
                yield "enable.idempotence", str(read_header(records, 0).producer_id >= 0).lower()
            else:
                yield "message format", f"magic {records[MAGIC_AT]}"
        except StructError:  # cut short
            continue
        if topic:
            yield "topics written", topic


def _fetch(body: Body) -> Iterable[tuple[str, str]]:
    for _, partition in _partitions(body, "Topics", "Partitions"):
        yield "max.partition.fetch.bytes", str(partition["PartitionMaxBytes"])


def _join(body: Body) -> Iterable[tuple[str, str]]:
    yield "group.protocol", "classic"
    assignors = [one["Name"] for one in body["Protocols"]]
    yield "partition.assignment.strategy", ",".join(assignors)
    if body["ProtocolType"] == "consumer" and body["Protocols"]:
        yield "subscription", ",".join(subscribed(body["Protocols"][0]["Metadata"]))


def _modern(body: Body) -> Iterable[tuple[str, str]]:
    """A first ConsumerGroupHeartbeat tells all, the later ones only what is new."""
    yield "group.protocol", "consumer"
    if body.get("RebalanceTimeoutMs", -1) >= 0:
        yield "max.poll.interval.ms", str(body["RebalanceTimeoutMs"])
        yield "group.remote.assignor", body.get("ServerAssignor") or "the broker's"
    if body.get("SubscribedTopicNames"):
        yield "subscription", ",".join(sorted(body["SubscribedTopicNames"]))


def _offsets(body: Body) -> Iterable[tuple[str, str]]:
    for _, partition in _partitions(body, "Topics", "Partitions"):
        if partition["Timestamp"] in RESET:
            yield "auto.offset.reset", RESET[partition["Timestamp"]]


def _producer_id(body: Body) -> Iterable[tuple[str, str]]:
    if body.get("TransactionalId") is not None:
        yield "transaction.timeout.ms", str(body["TransactionTimeoutMs"])


MORE: dict[int, Callable[[Body], Iterable[tuple[str, str]]]] = {
    keys.PRODUCE: _produce, keys.FETCH: _fetch, keys.JOIN_GROUP: _join, keys.CONSUMER_GROUP_HEARTBEAT: _modern,
    keys.LIST_OFFSETS: _offsets, keys.INIT_PRODUCER_ID: _producer_id,
}  # fmt: skip


def _partitions(body: Body, topics: str, partitions: str) -> Iterable[tuple[str, Body]]:
    for topic in body.get(topics) or ():
        for partition in topic[partitions]:
            yield str(topic.get("Name") or topic.get("Topic") or ""), partition
