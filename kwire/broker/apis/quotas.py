"""DescribeClientQuotas (48) and AlterClientQuotas (49)."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.context import Body, Request
from kwire.broker.quotas import QuotaFilter
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions


def describe(request: Request, state: BrokerState) -> Body:
    wanted = [QuotaFilter(each["EntityType"], each["MatchType"], each["Match"]) for each in request.body["Components"]]
    try:
        found = state.quotas.find(wanted, request.body["Strict"])
    except Refused as refused:
        return {"ErrorCode": refused.code, "ErrorMessage": refused.why, "Entries": None}
    entries = [
        {
            "Entity": [{"EntityType": kind, "EntityName": name} for kind, name in entity],
            "Values": [{"Key": key, "Value": float(value)} for key, value in values.items()],
        }
        for entity, values in found
    ]
    return {"ErrorCode": codes.NONE, "ErrorMessage": None, "Entries": entries}


def alter(request: Request, state: BrokerState) -> Body:
    entries = []
    for given in request.body["Entries"]:
        row: Body = {"ErrorCode": codes.NONE, "ErrorMessage": None, "Entity": given["Entity"]}
        try:
            entity = [(part["EntityType"], part["EntityName"]) for part in given["Entity"]]
            ops = [(op["Key"], op["Value"], op["Remove"]) for op in given["Ops"]]
            state.quotas.change(entity, ops, request.body["ValidateOnly"])
        except Refused as refused:
            row["ErrorCode"], row["ErrorMessage"] = refused.code, refused.why
        entries.append(row)
    return {"Entries": entries}


APIS = (
    Api("DescribeClientQuotas", Versions(0, 1), describe),
    Api("AlterClientQuotas", Versions(0, 1), alter),
)
