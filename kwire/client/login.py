"""Logging in: SaslHandshake v1 names the mechanism, then tokens travel in SaslAuthenticate (KIP-43, KIP-152)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.client.failure import Failure
from kwire.client.scram import Scram
from kwire.client.security import Security
from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.client.connection import Connection

UNSUPPORTED_MECHANISM, ILLEGAL_STATE = 33, 34


def log_in(connection: Connection, security: Security) -> None:
    """Raises Failure (sasl): no such mechanism, no SASL here, or credentials that are wrong."""
    mechanism = security.mechanism or ""
    answer = connection.request("SaslHandshake", 1, {"Mechanism": mechanism}).body()
    if answer["ErrorCode"] == ILLEGAL_STATE:
        raise Failure("sasl", connection.address, "this listener wants no SASL", "leave out --sasl")
    if answer["ErrorCode"]:
        offered = ", ".join(answer["Mechanisms"]) or "none"
        raise Failure("sasl", connection.address, f"no {mechanism} here; the broker offers {offered}")
    if mechanism == "PLAIN":
        _token(connection, f"\0{security.username}\0{security.password}".encode())
        return
    try:
        scram = Scram(mechanism, security.username, security.password)
        challenge = _token(connection, scram.first())
        scram.check(_token(connection, scram.final(challenge)))
    except Failure:
        raise
    except KwireError as error:
        raise Failure("sasl", connection.address, str(error)) from error


def _token(connection: Connection, token: bytes) -> bytes:
    """Sends a token, gives the broker's."""
    version = 2 if connection.offered is None else connection.version("SaslAuthenticate")
    answer: dict[str, Any] = connection.request("SaslAuthenticate", version, {"AuthBytes": token}).body()
    if answer["ErrorCode"]:
        said = answer["ErrorMessage"] or f"error {answer['ErrorCode']}"
        raise Failure("sasl", connection.address, f"login refused: {said}")
    back: bytes = answer["AuthBytes"]
    return back
