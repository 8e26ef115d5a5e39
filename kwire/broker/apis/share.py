"""Share groups: what their coordinator answers, and ShareFetch (78) and ShareAcknowledge (79) at partitions' leaders.

After KafkaApis.handleShareFetchRequest and handleShareAcknowledgeRequest: first the session, then the acknowledgements,
then the fetch; a session that ends gives back what its member holds after all of that.
"""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.apis.groups import ask, join
from kwire.broker.apis.produce import endpoints
from kwire.broker.context import MS, Body, Later, Request
from kwire.broker.refused import Refused
from kwire.broker.sharing import WaitingShareFetch, refused_row
from kwire.broker.state import BrokerState
from kwire.coordinator.share.checks import ack_fault, id_fault
from kwire.coordinator.share.partition import Ack
from kwire.coordinator.share.sessions import FINAL, FIRST, ShareSession, Spot
from kwire.schema import codes
from kwire.schema.model import Versions

MUST_BE_ZERO = ("MaxBytes", "MinBytes", "MaxRecords", "MaxWaitMs")


def _refusal(code: int, why: str) -> Body:
    return {"ErrorCode": code, "ErrorMessage": why}


def _wrong(body: Body) -> str | None:
    if body["GroupId"] is None:
        return "GroupId is null"
    return id_fault(body["MemberId"])


def fetch(request: Request, state: BrokerState) -> Body | Later:
    body, node = request.body, request.node
    renews = body.get("IsRenewAck", False)
    why = _wrong(body)
    if why is None and renews and any(body[name] for name in MUST_BE_ZERO):
        why = f"{', '.join(name for name in MUST_BE_ZERO if body[name])} must be 0 where IsRenewAck is true"
    if why is not None:
        return _refusal(codes.INVALID_REQUEST, why)
    group, member, epoch = body["GroupId"], body["MemberId"], body["ShareSessionEpoch"]
    spots = [(topic["TopicId"], part["PartitionIndex"]) for topic in body["Topics"] for part in topic["Partitions"]]
    forgotten = [(topic["TopicId"], index) for topic in body["ForgottenTopicsData"] for index in topic["Partitions"]]
    acks = any(part["AcknowledgementBatches"] for topic in body["Topics"] for part in topic["Partitions"])
    leader = state.sharing.leader(node)
    session, check = leader.sessions.fetch(group, member, epoch, spots, forgotten, acks)
    if session is None:
        refusal = _refusal(check.error, check.why)
        return _idle(refusal, request, state) if check.error == codes.SHARE_SESSION_LIMIT_REACHED else refusal
    if epoch == FIRST:
        state.sharing.opened(session, request.peer, node)
    done = acknowledged(request, state) if acks else {}
    wanted = [] if epoch == FINAL or renews else session.rotated(epoch)
    rows: dict[Spot, Body] = {}
    known = []
    for spot in wanted:
        topic = state.cluster.by_id.get(spot[0])
        if topic is None:
            rows[spot] = _unknown(state, spot, codes.UNKNOWN_TOPIC_ID, "no topic has this id")
        elif not 0 <= spot[1] < len(topic.partitions):
            rows[spot] = _unknown(state, spot, codes.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
        else:
            known.append(spot)

    def answer(rows: dict[Spot, Body]) -> Body:
        told = _told(session, rows, epoch)
        for spot, row in done.items():
            place = told.setdefault(spot, {"PartitionIndex": spot[1], "Records": b"", "AcquiredRecords": []})
            place["AcknowledgeErrorCode"], place["AcknowledgeErrorMessage"] = row["ErrorCode"], row["ErrorMessage"]
            if "CurrentLeader" in row:
                place.setdefault("CurrentLeader", row["CurrentLeader"])
        if epoch == FINAL:
            leader.finish()
            leader.close(session)
        return _whole(request, state, told)

    outcome = WaitingShareFetch(state.sharing, request, known, rows, answer).start()
    leader.finish()
    state.sharing.settle()
    return outcome


def _idle(refusal: Body, request: Request, state: BrokerState) -> Later:
    """A client that can have no session is not to come back at once."""
    later = Later()
    timer = state.clock.after(max(request.body["MaxWaitMs"], 0) * MS, lambda: later.give(refusal))
    request.peer.closing.append(timer.cancel)
    return later


def _unknown(state: BrokerState, spot: Spot, code: int, why: str) -> Body:
    return refused_row(state, spot, Refused(code, why))


def _told(session: ShareSession, rows: dict[Spot, Body], epoch: int) -> dict[Spot, Body]:
    """The rows that the client hears: all of them at first, later those with news."""
    told: dict[Spot, Body] = {}
    for spot, row in rows.items():
        if epoch in (FIRST, FINAL) or row["Records"] or spot in session.new or row["ErrorCode"]:
            told[spot] = row
        if epoch not in (FIRST, FINAL):
            session.new.discard(spot)
            if row["ErrorCode"]:
                session.new.add(spot)
            if row["Records"]:
                session.served(spot)
    return told


def acknowledge(request: Request, state: BrokerState) -> Body:
    body = request.body
    why = _wrong(body)
    if why is not None:
        return _refusal(codes.INVALID_REQUEST, why)
    group, member, epoch = body["GroupId"], body["MemberId"], body["ShareSessionEpoch"]
    leader = state.sharing.leader(request.node)
    check = leader.sessions.acknowledge(group, member, epoch)
    if check.error:
        return _refusal(check.error, check.why)
    rows = acknowledged(request, state)
    leader.finish()
    session = leader.sessions.open.get((group, member))
    if epoch == FINAL and session is not None:
        leader.close(session)
    state.sharing.settle()
    return _whole(request, state, rows)


def acknowledged(request: Request, state: BrokerState) -> dict[Spot, Body]:
    """Each partition's row for its acknowledgements."""
    body, rows = request.body, {}
    asked: dict[Spot, list[Body]] = {}
    empty: list[Spot] = []
    for topic in body["Topics"]:
        known = state.cluster.by_id.get(topic["TopicId"])
        for part in topic["Partitions"]:
            spot = (topic["TopicId"], part["PartitionIndex"])
            batches = part["AcknowledgementBatches"]
            fault = ack_fault(batches, request.version, body.get("IsRenewAck", False))
            if known is None:
                rows[spot] = _row(spot, codes.UNKNOWN_TOPIC_ID, "no topic has this id")
            elif fault is not None:
                rows[spot] = _row(spot, codes.INVALID_REQUEST, fault)
            elif not 0 <= spot[1] < len(known.partitions):
                rows[spot] = _row(spot, codes.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
            elif batches:
                asked[spot] = batches
            else:
                empty.append(spot)
    if not asked:
        return rows
    acks = {
        spot: [Ack(each["FirstOffset"], each["LastOffset"], each["AcknowledgeTypes"]) for each in batches]
        for spot, batches in asked.items()
    }
    leader = state.sharing.leader(request.node)
    checks = leader.acknowledge(body["GroupId"], body["MemberId"], acks, state.clock.now())
    for spot, check in checks.items():
        rows[spot] = _row(spot, check.error, check.why if check.error else None)
        topic_found = state.cluster.by_id.get(spot[0])
        if check.error == codes.NOT_LEADER_OR_FOLLOWER and topic_found is not None:
            led = topic_found.partitions[spot[1]]
            rows[spot]["CurrentLeader"] = {"LeaderId": led.leader, "LeaderEpoch": led.epoch}
    return rows | {spot: _row(spot, codes.NONE, None) for spot in empty}


def _row(spot: Spot, code: int, why: str | None) -> Body:
    return {"PartitionIndex": spot[1], "ErrorCode": code, "ErrorMessage": why}


def _whole(request: Request, state: BrokerState, rows: dict[Spot, Body]) -> Body:
    topics: dict[object, list[Body]] = {}
    for spot, row in rows.items():
        row.setdefault("CurrentLeader", {"LeaderId": 0, "LeaderEpoch": 0})
        topics.setdefault(spot[0], []).append({"ErrorCode": codes.NONE, "ErrorMessage": None} | row)
    others = {row["CurrentLeader"]["LeaderId"] for row in rows.values()} & state.cluster.nodes.keys()
    return {
        "ErrorCode": codes.NONE,
        "ErrorMessage": None,
        "AcquisitionLockTimeoutMs": state.sharing.rules(request.body["GroupId"]).record_lock_duration_ms,
        "Responses": [{"TopicId": topic, "Partitions": parts} for topic, parts in topics.items()],
        "NodeEndpoints": endpoints(request, state, others) if others else [],
    }


APIS = (
    Api("ShareGroupHeartbeat", Versions(1, 1), join),
    Api("ShareGroupDescribe", Versions(1, 1), ask),
    Api("ShareFetch", Versions(1, 2), fetch),
    Api("ShareAcknowledge", Versions(1, 2), acknowledge),
    Api("DescribeShareGroupOffsets", Versions(0, 1), ask),
    Api("AlterShareGroupOffsets", Versions(0, 0), join),
    Api("DeleteShareGroupOffsets", Versions(0, 0), ask),
)
