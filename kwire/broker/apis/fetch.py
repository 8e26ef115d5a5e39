"""Fetch (1): batches from the logs; when there are too few of them, the answer waits (Kafka's DelayedFetch).

Fetch sessions are refused: the session id is always 0, so that every fetch is a full one (KIP-227 leaves that to the
broker). A request that names one is answered FETCH_SESSION_ID_NOT_FOUND, and the client goes on without.
"""

from __future__ import annotations

from itertools import count

from kwire.broker import legacy
from kwire.broker.apis import Api
from kwire.broker.apis.produce import endpoints
from kwire.broker.cluster import Partition
from kwire.broker.codes import Code, Refused
from kwire.broker.state import State
from kwire.broker.words import MS, Body, Later, Request, Timer
from kwire.schema.model import Versions

MAX_BYTES = 55 * 1024 * 1024  # fetch.max.bytes of the broker
READ_COMMITTED = 1
numbers = count()


def handle(request: Request, state: State) -> Body | Later:
    body = request.body
    if body.get("SessionId", 0) and body.get("SessionEpoch", -1) > 0:
        return {"ErrorCode": Code.FETCH_SESSION_ID_NOT_FOUND, "SessionId": 0, "Responses": []}
    answer, size, done = _read(request, state)
    wait = body["MaxWaitMs"]
    if done or size >= body["MinBytes"] or wait <= 0:
        return answer
    return Waiting(request, state, wait).later


class Waiting:
    """A fetch that waits until there are MinBytes, something went wrong, or its time is over."""

    def __init__(self, request: Request, state: State, wait: int) -> None:
        self.request, self.state = request, state
        self.later = Later()
        self.number = next(numbers)
        self.logs = [partition.log for partition in _partitions(request, state)]
        for log in self.logs:
            log.waiting[self.number] = self.look
        self.timer: Timer = state.clock.after(wait * MS, self.end)
        request.peer.closing.append(self.forget)

    def look(self) -> None:
        """Something was written."""
        answer, size, done = _read(self.request, self.state)
        if done or size >= self.request.body["MinBytes"]:
            self.forget()
            self.later.give(answer)

    def end(self) -> None:
        """The time is over: whatever there is."""
        self.forget()
        self.later.give(_read(self.request, self.state)[0])

    def forget(self) -> None:
        self.timer.cancel()
        for log in self.logs:
            log.waiting.pop(self.number, None)


def _partitions(request: Request, state: State) -> list[Partition]:
    found = []
    for item in request.body["Topics"]:
        topic = state.cluster.find(item.get("Topic"), item.get("TopicId"))
        for part in item["Partitions"]:
            if topic is not None and 0 <= part["Partition"] < len(topic.partitions):
                found.append(topic.partitions[part["Partition"]])
    return found


def _read(request: Request, state: State) -> tuple[Body, int, bool]:
    """The answer as it would be now, the bytes of records in it, and whether an error must not wait."""
    body, version = request.body, request.version
    room = min(body.get("MaxBytes", MAX_BYTES), MAX_BYTES)
    size, done, leaders = 0, False, set()
    committed = body.get("IsolationLevel", 0) == READ_COMMITTED
    responses = []
    for item in body["Topics"]:
        topic = state.cluster.find(item.get("Topic"), item.get("TopicId"))
        rows = []
        for part in item["Partitions"]:
            index = part["Partition"]
            try:
                if topic is None and version >= 13:
                    raise Refused(Code.UNKNOWN_TOPIC_ID, "no topic has this id")
                partition = state.cluster.partition(topic, index, request.node, part.get("CurrentLeaderEpoch", -1))
                row, records = _rows(partition, part, version, room, not size, committed)
            except Refused as refused:
                row, records, done = _error(index, refused.code), b"", True
                if refused.code == Code.NOT_LEADER_OR_FOLLOWER and topic is not None:
                    led = topic.partitions[index]
                    row["CurrentLeader"] = {"LeaderId": led.leader, "LeaderEpoch": led.epoch}
                    leaders.add(led.leader)
            size += len(records)
            room -= len(records)
            rows.append(row)
        responses.append({"Topic": item.get("Topic"), "TopicId": item.get("TopicId"), "Partitions": rows})
    answer: Body = {"SessionId": 0, "Responses": responses}
    if leaders:
        answer["NodeEndpoints"] = endpoints(state, leaders)
    return answer, size, done


def _rows(
    partition: Partition, part: Body, version: int, room: int, first: bool, committed: bool
) -> tuple[Body, bytes]:
    log, offset = partition.log, part["FetchOffset"]
    if not log.start <= offset <= log.end:
        raise Refused(Code.OFFSET_OUT_OF_RANGE, f"offset {offset}, there are {log.start} to {log.end}")
    limit = min(part["PartitionMaxBytes"], max(room, 0))
    batches = log.read(offset, limit, whole_first=first, until=log.stable if committed else None)
    aborted = log.aborted(offset, batches) if committed else None
    magic = legacy.magic_for_fetch(version)
    if magic < 2:
        batches = legacy.from_batches(batches, magic)
    records = batches[0] if len(batches) == 1 else b"".join(batches)
    row = {
        "PartitionIndex": part["Partition"],
        "ErrorCode": Code.NONE,
        "HighWatermark": log.end,
        "LastStableOffset": log.stable,
        "LogStartOffset": log.start,
        "AbortedTransactions": (
            None if aborted is None else [{"ProducerId": each.producer, "FirstOffset": each.first} for each in aborted]
        ),
        "PreferredReadReplica": -1,
        "Records": records,
    }
    return row, records


def _error(index: int, code: Code) -> Body:
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
