"""FindCoordinator (10): which node looks after a group, a transactional id or what is stored of a share partition; v4
and up ask for several at once."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.context import Body, Request
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions
from kwire.wire.uuids import from_text

GROUP, TRANSACTION, SHARE = 0, 1, 2
TOPICS = {GROUP: "__consumer_offsets", TRANSACTION: "__transaction_state", SHARE: "__share_group_state"}


def handle(request: Request, state: BrokerState) -> Body:
    body = request.body
    kind = body.get("KeyType", GROUP)
    if request.version < 4:
        found = _found(body["Key"], kind, state, request.peer.listener)
        return found if found["ErrorCode"] else {**found, "ErrorMessage": "NONE"}  # as old versions have it
    return {"Coordinators": [_found(key, kind, state, request.peer.listener) for key in body["CoordinatorKeys"]]}


def _found(key: str, kind: int, state: BrokerState, listener: str) -> Body:
    if kind not in TOPICS or (kind == SHARE and not _is_share_key(key)):
        why = f"no coordinator for keys of type {kind}" if kind not in TOPICS else ""
        row = {"ErrorCode": codes.INVALID_REQUEST, "ErrorMessage": why, "NodeId": -1, "Host": "", "Port": -1}
        return {"Key": key, **row}
    state.internal(TOPICS[kind])
    owner = state.cluster.coordinator(key)
    if owner < 0:
        why = "The coordinator is not available."
        row = {"ErrorCode": codes.COORDINATOR_NOT_AVAILABLE, "ErrorMessage": why, "NodeId": -1, "Host": "", "Port": -1}
        return {"Key": key, **row}
    node = state.cluster.address(owner, "FindCoordinator", listener)
    row = {"ErrorCode": codes.NONE, "ErrorMessage": "", "NodeId": node.id, "Host": node.host, "Port": node.port}
    return {"Key": key, **row}


def _is_share_key(key: str) -> bool:
    """Group, topic id and partition, with colons between (SharePartitionKey.validate)."""
    group, _, rest = key.rpartition(":")[0].rpartition(":")
    try:
        from_text(rest)
        int(key.rpartition(":")[2])
    except ValueError:
        return False
    return bool(group)


APIS = (Api("FindCoordinator", Versions(0, 6), handle),)
