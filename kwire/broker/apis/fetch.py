"""Fetch (1): batches from the logs; when there are too few of them, the answer waits (Kafka's DelayedFetch).

Fetch sessions are refused: the session id is always 0, so that every fetch is a full one (KIP-227 leaves that to the
broker). A request that names one is answered FETCH_SESSION_ID_NOT_FOUND, and the client goes on without.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from kwire.broker import legacy
from kwire.broker.apis import Api
from kwire.broker.apis.produce import endpoints
from kwire.broker.context import MS, Body, Later, Outcome, Request, Timer, Work, finish
from kwire.broker.log import Log
from kwire.broker.partition import Partition
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions

MAX_BYTES = 16 * 1024 * 1024  # fetch.max.bytes of the broker; 55 MiB in Kafka
MANY, AT_ONCE = 500, 100  # partitions that are read in one go, and of more, so many at a step
READ_COMMITTED = 1
FROM_FOLLOWERS = 11  # from this version on consumers may fetch from any replica
numbers = count()


def handle(request: Request, state: BrokerState) -> Outcome:
    body = request.body
    if body.get("SessionId", 0) and body.get("SessionEpoch", -1) > 0:
        return {"ErrorCode": codes.FETCH_SESSION_ID_NOT_FOUND, "SessionId": 0, "Responses": []}
    request = _once(request)
    work = _first(request, state)
    return work if _is_large(request) else finish(work)


def _once(request: Request) -> Request:
    """A partition that is named twice counts once, as it was named last (FetchRequest.fetchData)."""
    topics = request.body["Topics"]
    if all(len(item["Partitions"]) < 2 for item in topics):
        return request
    once = [{**item, "Partitions": list({p["Partition"]: p for p in item["Partitions"]}.values())} for item in topics]
    return request._replace(body={**request.body, "Topics": once})


def _is_large(request: Request) -> bool:
    return sum(len(item["Partitions"]) for item in request.body["Topics"]) > MANY


def _first(request: Request, state: BrokerState) -> Work[Outcome]:
    """The first look: the answer, or the wait for one."""
    answer, size, now = yield from _read(request, state)
    wait = request.body["MaxWaitMs"]
    if now or size >= request.body["MinBytes"] or wait <= 0:
        return answer
    waiting = WaitingFetch(request, state, wait)
    yield from waiting.wait(size)
    return waiting.later


class WaitingFetch:
    """A fetch that waits until there are MinBytes, something went wrong, or its time is over.

    What is written is only counted, for whoever writes must not wait for those who read; when it may be enough, the
    answer is read in the connection's own turn.
    """

    def __init__(self, request: Request, state: BrokerState, wait: int) -> None:
        self.request, self.state = request, state
        self.later = Later()
        self.number = next(numbers)
        self.missing = 0
        self.called = False  # it is about to look for itself
        self.logs = _logs(request, state)
        self.ends = state.clock.now() + wait * MS
        self.timer: Timer = state.clock.after(wait * MS, self.call)
        request.peer.closing.append(self.forget)

    def wait(self, size: int) -> Work[None]:
        """For more than these bytes."""
        self.missing, self.called = self.request.body["MinBytes"] - size, False
        for number, log in enumerate(self.logs, 1):
            log.waiting[self.number] = self.written
            if number % AT_ONCE == 0:
                yield

    def written(self, size: int) -> None:
        """So many bytes; 0: something else has changed."""
        self.missing -= size
        if self.missing <= 0 or not size:
            self.call()

    def call(self) -> None:
        if not self.called:
            self.called = True
            self.request.peer.soon(self.look)

    def look(self) -> Work[None] | None:
        work = self.looking()
        if _is_large(self.request):
            return work
        finish(work)
        return None

    def looking(self) -> Work[None]:
        answer, size, now = yield from _read(self.request, self.state)
        if now or size >= self.request.body["MinBytes"] or self.state.clock.now() >= self.ends:
            self.forget()
            self.later.give(answer)
        else:  # it was written where this one reads no more, as beyond its limits
            yield from self.wait(size)

    def forget(self) -> None:
        self.timer.cancel()
        for log in self.logs:
            log.waiting.pop(self.number, None)


def _logs(request: Request, state: BrokerState) -> set[Log]:
    found = set()
    for item in request.body["Topics"]:
        topic = state.cluster.find(item.get("Topic"), item.get("TopicId"))
        for part in item["Partitions"]:
            if topic is not None and 0 <= part["Partition"] < len(topic.partitions):
                found.add(topic.partitions[part["Partition"]].log)
    return found


def _read(request: Request, state: BrokerState) -> Work[tuple[Body, int, bool]]:
    """The answer as it would be now, the bytes of records in it, and whether an error must not wait."""
    body, version = request.body, request.version
    room = min(body.get("MaxBytes", MAX_BYTES), MAX_BYTES)
    size, now, leaders = 0, False, set()
    magic = legacy.magic_for_fetch(version)
    old = legacy.Converter(magic) if magic < legacy.NEWEST else None
    committed = body.get("IsolationLevel", 0) == READ_COMMITTED
    responses = []
    for item in body["Topics"]:
        topic = state.cluster.find(item.get("Topic"), item.get("TopicId"))
        rows = []
        for number, part in enumerate(item["Partitions"], 1):
            if number % AT_ONCE == 0:
                yield
            index = part["Partition"]
            try:
                if topic is None and version >= 13:
                    raise Refused(codes.UNKNOWN_TOPIC_ID, "no topic has this id")
                epoch, node = part.get("CurrentLeaderEpoch", -1), request.node
                partition = state.cluster.partition(topic, index, node, epoch, version >= FROM_FOLLOWERS)
                row, records, sure = _elsewhere(partition, part, request, state), b"", True
                if row is None:
                    row, records = _rows(partition, part, old, room, not size, committed, partition.until(node))
                    sure = False
                now = now or sure
            except Refused as refused:
                row, records, now = _error(index, refused.code), b"", True
                if refused.code == codes.NOT_LEADER_OR_FOLLOWER and topic is not None:
                    led = topic.partitions[index]
                    row["CurrentLeader"] = {"LeaderId": led.leader, "LeaderEpoch": led.epoch}
                    leaders.add(led.leader)
            size += len(records)
            room -= len(records)
            rows.append(row)
        responses.append({"Topic": item.get("Topic"), "TopicId": item.get("TopicId"), "Partitions": rows})
        if len(responses) % AT_ONCE == 0:
            yield
    answer: Body = {"SessionId": 0, "Responses": responses}
    if leaders:
        answer["NodeEndpoints"] = endpoints(request, state, leaders)
    return answer, size, now


def _elsewhere(partition: Partition, part: Body, request: Request, state: BrokerState) -> Body | None:
    """An answer without records that sends the client away: its log has gone another way than ours, or a replica in its
    own rack is nearer (KIP-595, KIP-392). None: the records are read here."""
    last = part.get("LastFetchedEpoch", -1)
    if last >= 0:
        epoch, end = partition.log.epoch_end(last)
        if epoch >= 0 and (epoch < last or end < part["FetchOffset"]):
            return _row(partition, part, DivergingEpoch={"Epoch": epoch, "EndOffset": end})
    nearer = state.topology.nearer(partition, request.node, request.body.get("RackId", ""))
    return None if nearer is None else _row(partition, part, PreferredReadReplica=nearer)


def _row(partition: Partition, part: Body, **more: Any) -> Body:
    log = partition.log
    return {
        "PartitionIndex": part["Partition"],
        "ErrorCode": codes.NONE,
        "HighWatermark": log.end,
        "LastStableOffset": log.stable,
        "LogStartOffset": log.start,
        "AbortedTransactions": None,
        "PreferredReadReplica": -1,
        "Records": b"",
        **more,
    }


def _rows(
    partition: Partition, part: Body, old: legacy.Converter | None, room: int, first: bool, committed: bool, end: int
) -> tuple[Body, bytes]:
    """end: how far this replica has come."""
    log, offset = partition.log, part["FetchOffset"]
    if not log.start <= offset <= log.end:
        raise Refused(codes.OFFSET_OUT_OF_RANGE, f"offset {offset}, there are {log.start} to {log.end}")
    limit = min(part["PartitionMaxBytes"], max(room, 0))
    batches = log.read(offset, limit, whole_first=first, until=min(log.stable, end) if committed else end)
    aborted = log.aborted(offset, batches) if committed else None
    if old is not None:
        batches = old.convert(batches)
    records = batches[0] if len(batches) == 1 else b"".join(batches)
    left_out = None if aborted is None else [{"ProducerId": a.producer, "FirstOffset": a.first} for a in aborted]
    row = _row(partition, part, AbortedTransactions=left_out, Records=records)
    return row, records


def _error(index: int, code: int) -> Body:
    return {
        "PartitionIndex": index,
        "ErrorCode": code,
        "HighWatermark": -1,
        "LastStableOffset": -1,
        "LogStartOffset": -1,
        "AbortedTransactions": None,
        "PreferredReadReplica": -1,
        "Records": b"",
    }


APIS = (Api("Fetch", Versions(0, 18), handle),)
