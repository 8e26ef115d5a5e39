"""DescribeAcls (29), CreateAcls (30), DeleteAcls (31): the rules that authorizer.py goes by."""

from __future__ import annotations

from itertools import groupby

from kwire.broker.acls import LITERAL, Acl, AclFilter
from kwire.broker.apis import Api
from kwire.broker.context import Body, Hangup, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions

NO_AUTHORIZER = "No Authorizer is configured on the broker"


def describe(request: Request, state: BrokerState) -> Body:
    if not state.acls.on:
        return {"ErrorCode": codes.SECURITY_DISABLED, "ErrorMessage": NO_AUTHORIZER, "Resources": []}
    found = sorted(state.acls.find(_filter(request.body)))
    resources = [
        {
            "ResourceType": kind, "ResourceName": name, "PatternType": pattern,
            "Acls": [
                {"Principal": a.principal, "Host": a.host, "Operation": a.operation, "PermissionType": a.permission}
                for a in acls
            ],
        }
        for (kind, name, pattern), acls in groupby(found, lambda acl: acl[:3])
    ]  # fmt: skip
    return {"ErrorCode": codes.NONE, "ErrorMessage": None, "Resources": resources}


def _filter(given: Body) -> AclFilter:
    """Raises Hangup for what Kafka cannot read either."""
    made = AclFilter(
        given["ResourceTypeFilter"], given["ResourceNameFilter"], given.get("PatternTypeFilter", LITERAL),
        given["PrincipalFilter"], given["HostFilter"], given["Operation"], given["PermissionType"],
    )  # fmt: skip
    if min(made.type, made.pattern, made.operation, made.permission) < 1:
        raise Hangup("a filter of ACLs with an element that is UNKNOWN")
    return made


def create(request: Request, state: BrokerState) -> Body:
    rows = []
    for given in request.body["Creations"]:
        acl = Acl(
            given["ResourceType"], given["ResourceName"], given.get("ResourcePatternType", LITERAL),
            given["Principal"], given["Host"], given["Operation"], given["PermissionType"],
        )  # fmt: skip
        row: Body = {"ErrorCode": codes.NONE, "ErrorMessage": None}
        try:
            if not state.acls.on:
                raise Refused(codes.SECURITY_DISABLED, NO_AUTHORIZER)
            state.acls.add(acl)
        except Refused as refused:
            row = {"ErrorCode": refused.code, "ErrorMessage": refused.why}
        rows.append(row)
    return {"Results": rows}


def delete(request: Request, state: BrokerState) -> Body:
    results = []
    for given in request.body["Filters"]:
        if not state.acls.on:
            row = {"ErrorCode": codes.SECURITY_DISABLED, "ErrorMessage": NO_AUTHORIZER, "MatchingAcls": []}
            results.append(row)
            continue
        found = state.acls.find(_filter(given))
        state.acls.delete(found)
        matching = [
            {
                "ErrorCode": codes.NONE, "ErrorMessage": None, "ResourceType": acl.type, "ResourceName": acl.name,
                "PatternType": acl.pattern, "Principal": acl.principal, "Host": acl.host, "Operation": acl.operation,
                "PermissionType": acl.permission,
            }
            for acl in found
        ]  # fmt: skip
        results.append({"ErrorCode": codes.NONE, "ErrorMessage": None, "MatchingAcls": matching})
    return {"FilterResults": results}


APIS = (
    Api("DescribeAcls", Versions(0, 3), describe),
    Api("CreateAcls", Versions(0, 3), create),
    Api("DeleteAcls", Versions(0, 3), delete),
)
