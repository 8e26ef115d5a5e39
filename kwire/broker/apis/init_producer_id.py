"""InitProducerId (22): an id for an idempotent producer, or the next epoch of the one it has (KIP-360)."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.codes import Code, Refused
from kwire.broker.state import State
from kwire.broker.words import Body, Request
from kwire.schema.model import Versions

MAX_EPOCH = 2**15 - 1


def handle(request: Request, state: State) -> Body:
    body = request.body
    if body["TransactionalId"] is not None:
        raise Refused(Code.UNSUPPORTED_VERSION, "this broker has no transactions")
    producer, epoch = body.get("ProducerId", -1), body.get("ProducerEpoch", -1)
    if producer >= 0 and 0 <= epoch < MAX_EPOCH - 1:
        return {"ErrorCode": Code.NONE, "ProducerId": producer, "ProducerEpoch": epoch + 1}
    return {"ErrorCode": Code.NONE, "ProducerId": state.cluster.new_producer(), "ProducerEpoch": 0}


APIS = (Api("InitProducerId", Versions(0, 6), handle),)
