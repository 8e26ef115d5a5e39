"""What is stored of share partitions, as group coordinators and partitions' leaders ask the share coordinator for it:
InitializeShareGroupState (83), Read (84), Write (85), Delete (86), ReadShareGroupStateSummary (87).

After ShareCoordinatorShard. kwire's own coordinators and leaders use coordinator/share/states.py without these.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.broker.apis import Api
from kwire.broker.context import Body, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.coordinator.share.inflight import RecordState
from kwire.coordinator.share.states import SharePartitionKey, ShareStates, StateBatch, Stored
from kwire.schema import codes
from kwire.schema.model import Versions
from kwire.wire.uuids import to_text

FENCED_STATE = "The share coordinator rejected the request because the share-group state epoch did not match."
FENCED_LEADER = "The leader epoch in the request is older than the epoch on the broker."
Act = Callable[[BrokerState, SharePartitionKey, Body], Body]


def share_key(place: SharePartitionKey) -> str:
    """By which a share partition's coordinator is found."""
    return f"{place.group}:{to_text(place.topic)}:{place.partition}"


def each(word: str, act: Act) -> Callable[[Request, BrokerState], Body]:
    """A handler that has act give a row for each partition; what it refuses is that row's error."""

    def handle(request: Request, state: BrokerState) -> Body:
        group = request.body["GroupId"]
        results = []
        for topic in request.body["Topics"] if group else ():
            rows = []
            for part in topic["Partitions"]:
                place = SharePartitionKey(group, topic["TopicId"], part["Partition"])
                row: Body = {"Partition": place.partition, "ErrorCode": codes.NONE, "ErrorMessage": None}
                try:
                    _check(state, place, request.node, word)
                    row |= act(state, place, part)
                except Refused as refused:
                    row |= {"ErrorCode": refused.code, "ErrorMessage": refused.why}
                rows.append(row)
            results.append({"TopicId": topic["TopicId"], "Partitions": rows})
        return {"Results": results}

    return handle


def _check(state: BrokerState, place: SharePartitionKey, node: int, word: str) -> None:
    if state.cluster.coordinator(share_key(place)) != node:
        why = f"Unable to {word} share group state: This is not the correct coordinator."
        raise Refused(codes.NOT_COORDINATOR, why)
    if place.partition < 0:
        raise Refused(codes.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _states(state: BrokerState) -> ShareStates:
    return state.groups.coordinator.share_states


def _hosted(state: BrokerState, place: SharePartitionKey) -> None:
    topic = state.cluster.by_id.get(place.topic)
    if topic is None or place.partition >= len(topic.partitions):
        raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def initialise(state: BrokerState, place: SharePartitionKey, part: Body) -> Body:
    stored = _states(state).known.get(place)
    if stored is not None and stored.epoch > part["StateEpoch"]:
        raise Refused(codes.FENCED_STATE_EPOCH, FENCED_STATE)
    _hosted(state, place)
    _states(state).initialise(place, part["StateEpoch"], part["StartOffset"])
    return {}


def _stored(state: BrokerState, place: SharePartitionKey, part: Body, act: str) -> Stored:
    """What is stored of a share partition that was initialized, for the leader of an epoch that is not over."""
    stored = _states(state).known.get(place)
    if stored is None:
        raise Refused(codes.INVALID_REQUEST, f"{act} operation on uninitialized share partition not allowed.")
    if stored.leader_epoch > part["LeaderEpoch"]:
        raise Refused(codes.FENCED_LEADER_EPOCH, FENCED_LEADER)
    return stored


def read(state: BrokerState, place: SharePartitionKey, part: Body) -> Body:
    stored = _stored(state, place, part, "Read")
    _hosted(state, place)
    _states(state).read(place, part["LeaderEpoch"])
    batches = [
        {"FirstOffset": batch.first, "LastOffset": batch.last, "DeliveryState": batch.state.value,
         "DeliveryCount": batch.deliveries} for batch in stored.batches
    ]  # fmt: skip
    return {"StateEpoch": stored.epoch, "StartOffset": stored.start, "StateBatches": batches}


def write(state: BrokerState, place: SharePartitionKey, part: Body) -> Body:
    stored = _stored(state, place, part, "Write")
    if stored.epoch > part["StateEpoch"]:
        raise Refused(codes.FENCED_STATE_EPOCH, FENCED_STATE)
    _hosted(state, place)
    start = part["StartOffset"] if part["StartOffset"] >= 0 else stored.start
    batches = [_batch(row) for row in part["StateBatches"]]
    _states(state).write(place, part["StateEpoch"], start, part.get("DeliveryCompleteCount", -1), batches)
    return {}


def _batch(row: Body) -> StateBatch:
    try:
        kind = RecordState(row["DeliveryState"])
    except ValueError:
        raise Refused(codes.INVALID_REQUEST, f"no delivery state {row['DeliveryState']}") from None
    return StateBatch(row["FirstOffset"], row["LastOffset"], kind, row["DeliveryCount"])


def delete(state: BrokerState, place: SharePartitionKey, part: Body) -> Body:  # noqa: ARG001
    _hosted(state, place)
    _states(state).known.pop(place, None)
    return {}


def summary(state: BrokerState, place: SharePartitionKey, part: Body) -> Body:  # noqa: ARG001
    _hosted(state, place)
    stored = _states(state).known.get(place)
    if stored is None:
        return {"StateEpoch": 0, "LeaderEpoch": 0, "StartOffset": -1, "DeliveryCompleteCount": -1}
    row = {"StateEpoch": stored.epoch, "LeaderEpoch": stored.leader_epoch, "StartOffset": stored.start}
    return {**row, "DeliveryCompleteCount": stored.complete}


APIS = (
    Api("InitializeShareGroupState", Versions(0, 0), each("initialize", initialise)),
    Api("ReadShareGroupState", Versions(0, 0), each("read", read)),
    Api("WriteShareGroupState", Versions(0, 1), each("write", write)),
    Api("DeleteShareGroupState", Versions(0, 0), each("delete", delete)),
    Api("ReadShareGroupStateSummary", Versions(0, 1), each("read", summary)),
)
