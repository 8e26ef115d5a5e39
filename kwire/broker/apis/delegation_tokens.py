"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

Only who has logged in, and not with a token, may ask.
"""

from __future__ import annotations

from kwire.broker import acls
from kwire.broker.apis import Api
from kwire.broker.context import MS, Body, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.broker.tokens import Token
from kwire.schema import codes
from kwire.schema.model import Versions

USER = "User"


def _user(request: Request) -> str:
    """Raises Refused."""
    login = request.peer.login
    if login is None or login.user is None or login.by_token:
        why = (
            "Delegation Token requests are not allowed on PLAINTEXT channels and with delegation token authentication."
        )
        raise Refused(codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, why)
    return login.user


def create(request: Request, state: BrokerState) -> Body:
    body, user = request.body, _user(request)
    owner = body.get("OwnerPrincipalName") or user
    if owner != user:
        allowed = state.acls.may(user, request.peer.host, acls.CREATE_TOKENS, acls.USER, f"{USER}:{owner}")
        if not allowed:
            raise Refused(codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED, f"no CREATE_TOKENS right on {owner}")
    if any(each["PrincipalType"] != USER for each in body["Renewers"]):
        raise Refused(codes.INVALID_PRINCIPAL_TYPE, "renewers are of type User")
    renewers = tuple(each["PrincipalName"] for each in body["Renewers"])
    token = state.users.tokens.create(owner, user, renewers, body["MaxLifetimeMs"], request.time // MS)
    return {
        "ErrorCode": codes.NONE, **_names(token), "IssueTimestampMs": token.issued, "ExpiryTimestampMs": token.expires,
        "MaxTimestampMs": token.ends, "TokenId": token.id, "Hmac": token.hmac,
    }  # fmt: skip


def _names(token: Token) -> Body:
    return {
        "PrincipalType": USER, "PrincipalName": token.owner,
        "TokenRequesterPrincipalType": USER, "TokenRequesterPrincipalName": token.requester,
    }  # fmt: skip


def renew(request: Request, state: BrokerState) -> Body:
    body = request.body
    expires = state.users.tokens.renew(body["Hmac"], _user(request), body["RenewPeriodMs"], request.time // MS)
    return {"ErrorCode": codes.NONE, "ExpiryTimestampMs": expires}


def expire(request: Request, state: BrokerState) -> Body:
    body = request.body
    expires = state.users.tokens.expire(body["Hmac"], _user(request), body["ExpiryTimePeriodMs"], request.time // MS)
    return {"ErrorCode": codes.NONE, "ExpiryTimestampMs": expires}


def describe(request: Request, state: BrokerState) -> Body:
    user, asked = _user(request), request.body["Owners"]
    owners = None if asked is None else {each["PrincipalName"] for each in asked}
    state.users.tokens.sweep(request.time // MS)
    tokens = [
        {
            **_names(token), "IssueTimestamp": token.issued, "ExpiryTimestamp": token.expires,
            "MaxTimestamp": token.ends, "TokenId": token.id, "Hmac": token.hmac,
            "Renewers": [{"PrincipalType": USER, "PrincipalName": name} for name in token.renewers],
        }
        for token in state.users.tokens.all.values()
        if (owners is None or token.owner in owners) and _shown(token, user, request.peer.host, state)
    ]  # fmt: skip
    return {"ErrorCode": codes.NONE, "Tokens": tokens}


def _shown(token: Token, user: str, host: str, state: BrokerState) -> bool:
    if token.concerns(user) or user == token.requester:
        return True
    of_token = state.acls.may(user, host, acls.DESCRIBE, acls.DELEGATION_TOKEN, token.id)
    return of_token or state.acls.may(user, host, acls.DESCRIBE_TOKENS, acls.USER, f"{USER}:{token.owner}")


APIS = (
    Api("CreateDelegationToken", Versions(0, 3), create),
    Api("RenewDelegationToken", Versions(0, 2), renew),
    Api("ExpireDelegationToken", Versions(0, 2), expire),
    Api("DescribeDelegationToken", Versions(0, 3), describe),
)
