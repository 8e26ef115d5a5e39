"""ListOffsets (2) and OffsetForLeaderEpoch (23): where a log begins and ends, by time and by leader epoch."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.context import Body, Request
from kwire.broker.log import NOTHING, FoundOffset
from kwire.broker.partition import Partition
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
READ_COMMITTED = 1
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}  # request versions


def list_offsets(request: Request, state: BrokerState) -> Body:
    topics = []
    committed = request.body.get("IsolationLevel", 0) == READ_COMMITTED
    for item in request.body["Topics"]:
        topic = state.cluster.topics.get(item["Name"])
        rows = []
        for part in item["Partitions"]:
            index = part["PartitionIndex"]
            try:
                epoch = part.get("CurrentLeaderEpoch", -1)
                partition = state.cluster.partition(topic, index, request.node, epoch)
                rows.append(_row(partition, part, request.version, committed))
            except Refused as refused:
                rows.append({"PartitionIndex": index, "ErrorCode": refused.code, "OldStyleOffsets": []})
        topics.append({"Name": item["Name"], "Partitions": rows})
    return {"Topics": topics}


def _row(partition: Partition, part: Body, version: int, committed: bool) -> Body:
    index = part["PartitionIndex"]
    found = _found(partition, part["Timestamp"], version)
    if committed and part["Timestamp"] == LATEST:
        found = found._replace(offset=partition.log.stable)
    elif committed and found.offset >= partition.log.stable and part["Timestamp"] not in (EARLIEST, EARLIEST_LOCAL):
        found = NOTHING
    old = [found.offset] if found.offset >= 0 else []
    if part["Timestamp"] == LATEST and partition.log.start < partition.log.end:
        old.append(partition.log.start)  # v0 lists where segments begin; there is one
    return {
        "PartitionIndex": index,
        "ErrorCode": codes.NONE,
        "OldStyleOffsets": old[: max(part.get("MaxNumOffsets", 1), 0)],
        "Timestamp": found.timestamp,
        "Offset": found.offset,
        "LeaderEpoch": found.epoch,
    }


def _found(partition: Partition, timestamp: int, version: int) -> FoundOffset:
    log = partition.log
    if timestamp < EARLIEST and version < SINCE.get(timestamp, 2**15):
        raise Refused(codes.UNSUPPORTED_VERSION, f"timestamp {timestamp} in v{version}")
    if timestamp == LATEST:
        return FoundOffset(log.end, -1, partition.epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(log.start, -1, partition.epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return NOTHING
    if timestamp == MAX_TIMESTAMP:
        return log.latest_time()
    if version == 0:  # the start of the last segment written before; there is one segment
        return FoundOffset(log.start, -1, partition.epoch)
    return log.first_after(timestamp)


def epoch_ends(request: Request, state: BrokerState) -> Body:
    topics = []
    for item in request.body["Topics"]:
        topic = state.cluster.topics.get(item["Topic"])
        rows = []
        for part in item["Partitions"]:
            row: Body = {"Partition": part["Partition"], "ErrorCode": codes.NONE}
            try:
                epoch = part.get("CurrentLeaderEpoch", -1)
                partition = state.cluster.partition(topic, part["Partition"], request.node, epoch)
                if part["LeaderEpoch"] == partition.epoch:
                    row["LeaderEpoch"], row["EndOffset"] = partition.epoch, partition.log.end
                else:
                    row["LeaderEpoch"], row["EndOffset"] = partition.log.epoch_end(part["LeaderEpoch"])
            except Refused as refused:
                row["ErrorCode"] = refused.code
            rows.append(row)
        topics.append({"Topic": item["Topic"], "Partitions": rows})
    return {"Topics": topics}


APIS = (
    Api("ListOffsets", Versions(0, 11), list_offsets),
    Api("OffsetForLeaderEpoch", Versions(0, 4), epoch_ends),
)
