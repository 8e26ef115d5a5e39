"""What a client says of itself: its software, how it logs in and as whom. Never a password."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.codec.span import Span
from kwire.payloads import sasl

if TYPE_CHECKING:
    from kwire.session.exchange import Message

PRINCIPALS = ("username", "authorization_id")


class Identity:
    """Filled by the requests of a connection; None is what was not said."""

    __slots__ = ("mechanism", "principal", "software", "software_version")

    def __init__(self) -> None:
        self.software: str | None = None
        self.software_version: str | None = None
        self.mechanism: str | None = None
        self.principal: str | None = None

    @property
    def of_mechanism(self) -> str:
        return f" of {self.mechanism}" if self.mechanism else ""

    def request(self, message: Message) -> None:
        """ApiVersions, SaslHandshake or SaslAuthenticate."""
        body = message.body() or {}
        if "ClientSoftwareName" in body:
            self.software, self.software_version = body["ClientSoftwareName"], body["ClientSoftwareVersion"]
        elif "Mechanism" in body:
            self.mechanism = body["Mechanism"]
        elif "AuthBytes" in body:
            self.token(body["AuthBytes"])

    def token(self, token: bytes) -> None:
        """A SASL token of the client."""
        opened = sasl.client(Span("token", "bytes", 0, len(token), token), token, ())
        for child in opened.children:
            if child.name in PRINCIPALS and isinstance(child.value, str) and child.value:
                self.principal = child.value
        if self.principal is None and self.mechanism == "OAUTHBEARER":
            claims = [child.value for child in opened.children if child.name == "jwt_claims"]
            self.principal = _subject(claims[0]) if claims else None


def _subject(claims: object) -> str | None:
    import json

    try:
        subject = json.loads(str(claims)).get("sub")
    except (ValueError, AttributeError, RecursionError):
        return None
    return subject if isinstance(subject, str) else None
