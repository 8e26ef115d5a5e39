"""SaslHandshake (17) and SaslAuthenticate (36); the mechanisms are in security.py."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.context import Body, Request
from kwire.broker.security import MECHANISMS, LoginFailed
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions


def handshake(request: Request, state: BrokerState) -> Body:
    login = request.peer.login
    if login is None or login.user is not None:
        return {"ErrorCode": codes.ILLEGAL_SASL_STATE, "Mechanisms": []}
    mechanism = request.body["Mechanism"]
    known = login.handshake(mechanism, request.version)
    if not known:
        state.tell("login", str(request.peer), f"asked for {mechanism}, which is not offered")
    code = codes.NONE if known else codes.UNSUPPORTED_SASL_MECHANISM
    return {"ErrorCode": code, "Mechanisms": list(MECHANISMS)}


def authenticate(request: Request, state: BrokerState) -> Body:
    """service.py closes the connection after a failure, once the answer is out."""
    login = request.peer.login
    if login is None or login.user is not None:
        why = "SaslAuthenticate request received after successful authentication"
        return {"ErrorCode": codes.ILLEGAL_SASL_STATE, "ErrorMessage": why, "AuthBytes": b""}
    try:
        answer = login.token(request.body["AuthBytes"])
    except LoginFailed as wrong:
        state.tell("login", str(request.peer), f"failed: {wrong}")
        return {"ErrorCode": codes.SASL_AUTHENTICATION_FAILED, "ErrorMessage": str(wrong), "AuthBytes": b""}
    if login.user is not None:
        state.tell("login", str(request.peer), f"{login.user} with {login.mechanism}")
    return {"ErrorCode": codes.NONE, "ErrorMessage": None, "AuthBytes": answer, "SessionLifetimeMs": 0}


APIS = (
    Api("SaslHandshake", Versions(0, 1), handshake),
    Api("SaslAuthenticate", Versions(0, 2), authenticate),
)
