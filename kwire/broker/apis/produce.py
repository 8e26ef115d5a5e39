"""Produce (0): one batch for each partition into its log; message sets of v0 to v2 are turned into batches first.

All replicas are this one process: acks 1 and -1 are answered alike, acks 0 not at all, and when a partition fails with
acks 0 the connection is closed (KafkaApis.handleProduceRequest).
"""

from __future__ import annotations

from kwire.broker import legacy
from kwire.broker.apis import Api
from kwire.broker.cluster import Topic
from kwire.broker.context import MS, Body, Hangup, Request
from kwire.broker.partition import OFFLINE, Partition
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.broker.transactions import ADDS
from kwire.broker.validation import RecordsRefused, validated
from kwire.coordinator.transactions.transaction import Place
from kwire.counted import counted
from kwire.records.batch import MAGIC_AT, Header
from kwire.schema import codes
from kwire.schema.model import Versions

ZSTD, FIRST_WITH_ZSTD = 4, 7


def handle(request: Request, state: BrokerState) -> Body | None:
    body = request.body
    acks = body["Acks"]
    responses: list[Body] = []
    failed = ""
    leaders: set[int] = set()
    for data in body["TopicData"]:
        topic = state.cluster.find(data.get("Name"), data.get("TopicId"))
        answers = []
        for part in data["PartitionData"]:
            row = _append(request, state, topic, part, acks)
            answers.append(row)
            if row["ErrorCode"]:
                failed = f"{topic.name if topic else data.get('Name')}-{part['Index']}: error {int(row['ErrorCode'])}"
            if "CurrentLeader" in row:
                leaders.add(row["CurrentLeader"]["LeaderId"])
        responses.append({"Name": data.get("Name"), "TopicId": data.get("TopicId"), "PartitionResponses": answers})
    if acks == 0:
        if failed:
            raise Hangup(f"Produce with acks=0 failed, and there is no other way to say so: {failed}")
        return None
    answer: Body = {"Responses": responses}
    if leaders:
        answer["NodeEndpoints"] = endpoints(request, state, leaders)
    return answer


def _append(request: Request, state: BrokerState, topic: Topic | None, part: Body, acks: int) -> Body:
    index, start = part["Index"], -1
    try:
        if acks not in (-1, 0, 1):
            raise Refused(codes.INVALID_REQUIRED_ACKS, f"acks {acks}")
        if topic is None and request.version >= 13:
            raise Refused(codes.UNKNOWN_TOPIC_ID, "no topic has this id")
        partition = state.cluster.partition(topic, index, request.node)
        assert topic is not None
        rules, now = state.cluster.configs.rules(topic.name), request.time // MS
        if acks == -1 and len(partition.in_sync) < rules.least_in_sync:  # Partition.appendRecordsToLeader
            why = f"{counted(len(partition.in_sync), 'replica')} in sync, min.insync.replicas is {rules.least_in_sync}"
            raise Refused(codes.NOT_ENOUGH_REPLICAS, why)
        given = _records(request.version, part["Records"])
        records, header = validated(rules, (topic.name, index), given, now)
        bumps = _in_transaction(request, state, partition, (topic.name, index), header)
        start = partition.log.start
        base, time = partition.log.append(records, partition.epoch, now, rules.append_time, header, bumps)
    except Refused as refused:
        row: Body = {"Index": index, "ErrorCode": refused.code, "BaseOffset": -1, "ErrorMessage": refused.why}
        row["LogStartOffset"] = start  # told by who came as far as the log
        if isinstance(refused, RecordsRefused):
            row["RecordErrors"] = [{"BatchIndex": n, "BatchIndexErrorMessage": why} for n, why in refused.errors]
        if refused.code == codes.NOT_LEADER_OR_FOLLOWER and topic is not None:
            led = topic.partitions[index]
            row["CurrentLeader"] = {"LeaderId": led.leader, "LeaderEpoch": led.epoch}
        return row
    if rules.retained >= 0:
        partition.log.keep_bytes(rules.retained)
    return {
        "Index": index,
        "ErrorCode": codes.NONE,
        "BaseOffset": base,
        "LogAppendTimeMs": time,
        "LogStartOffset": partition.log.start,
        "RecordErrors": [],
        "ErrorMessage": None,
    }


def _in_transaction(request: Request, state: BrokerState, partition: Partition, place: Place, header: Header) -> bool:
    """Whether these are records of a transaction whose producer's epoch rises with each. Raises Refused when the
    transaction's coordinator does not know of them."""
    if not header.is_transactional:
        return False
    producers, before_4 = partition.log.producers, state.transactions.coordinator.settings.era < (4, 0)
    if not producers.has_open(header, any_epoch=before_4):
        try:
            state.transactions.claim(request, header, request.body.get("TransactionalId"), place)
        except Refused:
            producers.refused(header)
            raise
    return request.version >= ADDS["Produce"]


def _records(version: int, records: bytes | None) -> bytes:
    """One batch of magic 2, whatever came. Raises Refused."""
    if records is None or len(records) <= MAGIC_AT:
        raise Refused(codes.INVALID_RECORD, "no batch")
    if records[MAGIC_AT] < 2:
        if version >= 3:
            raise Refused(codes.INVALID_RECORD, f"Produce v{version} takes magic 2, not {records[MAGIC_AT]}")
        return legacy.to_batch(records)
    if version < 3:
        raise Refused(codes.INVALID_RECORD, f"Produce v{version} takes magic 0 and 1, not {records[MAGIC_AT]}")
    if len(records) > 22 and records[22] & 7 == ZSTD and version < FIRST_WITH_ZSTD:
        raise Refused(codes.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce v{FIRST_WITH_ZSTD}")
    return records


def endpoints(request: Request, state: BrokerState, nodes: set[int]) -> list[Body]:
    """Where the leaders are that an answer names (KIP-951)."""
    told = [state.cluster.address(node, listener=request.peer.listener) for node in sorted(nodes - {OFFLINE})]
    return [{"NodeId": node.id, "Host": node.host, "Port": node.port, "Rack": node.rack} for node in told]


APIS = (Api("Produce", Versions(0, 13), handle),)
