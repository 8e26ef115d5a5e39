"""Logging in: SaslHandshake v1 names the mechanism, then tokens travel in SaslAuthenticate (KIP-43, KIP-152)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kwire.client.scram import ScramClient
from kwire.client.security import Security
from kwire.errors import Failure, KwireError
from kwire.schema import codes

if TYPE_CHECKING:
    from kwire.client.address import Address
    from kwire.client.exchange import ClientExchange
    from kwire.schema.model import Versions


class Asking(Protocol):
    """A connection on which requests are asked, one after the other."""

    address: Address
    offered: dict[int, Versions] | None

    def version(self, api: str) -> int: ...

    def request(self, api: str, version: int, body: dict[str, Any]) -> ClientExchange: ...


def log_in(connection: Asking, security: Security) -> None:
    """Raises Failure (sasl): no such mechanism, no SASL here, or credentials that are wrong."""
    mechanism = security.mechanism or ""
    answer = connection.request("SaslHandshake", 1, {"Mechanism": mechanism}).body()
    if answer["ErrorCode"] == codes.ILLEGAL_SASL_STATE:
        raise Failure("sasl", connection.address, "this listener wants no SASL", "leave out --sasl")
    if answer["ErrorCode"]:
        offered = ", ".join(answer["Mechanisms"]) or "none"
        raise Failure("sasl", connection.address, f"no {mechanism} here; the broker offers {offered}")
    if mechanism == "PLAIN":
        _token(connection, f"\0{security.username}\0{security.password}".encode())
        return
    try:
        scram = ScramClient(mechanism, security.username, security.password)
        challenge = _token(connection, scram.first())
        scram.check(_token(connection, scram.final(challenge)))
    except Failure:
        raise
    except KwireError as error:
        raise Failure("sasl", connection.address, str(error)) from error


def _token(connection: Asking, token: bytes) -> bytes:
    """Sends a token, gives the broker's."""
    version = 2 if connection.offered is None else connection.version("SaslAuthenticate")
    answer: dict[str, Any] = connection.request("SaslAuthenticate", version, {"AuthBytes": token}).body()
    if answer["ErrorCode"]:
        said = answer["ErrorMessage"] or f"error {answer['ErrorCode']}"
        raise Failure("sasl", connection.address, f"login refused: {said}")
    back: bytes = answer["AuthBytes"]
    return back
