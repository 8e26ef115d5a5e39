"""A client's software, SASL mechanism and principal (never a password); and whether a login is under way, when frames
may be bare passwords."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kwire.codec.quality import Quality
from kwire.codec.span import Span
from kwire.payloads import sasl
from kwire.schema.keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE

# all APIs that a broker accepts before the login is done
IDENTIFYING = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
UNREAD = "not to be read, in the middle of a login"
PRINCIPALS = ("username", "authorization_id")


class Identity:
    """Filled in from the requests of a connection; None: not seen."""

    __slots__ = ("mechanism", "principal", "software", "software_version")

    def __init__(self) -> None:
        self.software: str | None = None
        self.software_version: str | None = None
        self.mechanism: str | None = None
        self.principal: str | None = None

    @property
    def said(self) -> tuple[str | None, ...]:
        """All fields as a tuple, for take."""
        return self.software, self.software_version, self.mechanism, self.principal

    def take(self, said: tuple[str | None, ...]) -> None:
        self.software, self.software_version, self.mechanism, self.principal = said

    @property
    def of_mechanism(self) -> str:
        return f" of {self.mechanism}" if self.mechanism else ""

    def request(self, body: dict[str, Any] | None) -> None:
        """ApiVersions, SaslHandshake or SaslAuthenticate, when it could be decoded."""
        if body is None:
            return
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


@dataclass(slots=True)
class Login:
    """The state of a connection's login, followed through its requests.

    active: SaslHandshake or SaslAuthenticate began a login; the first complete request of another API ends it. In
    between, an unreadable frame is taken for a damaged token. fresh: no request of another API was seen yet; then a
    frame with a different client id may be a bare token. guarded: unreadable bytes may be a password; stays true after
    a login, since clients may log in again (KIP-368). token_after: the client id of a SaslHandshake v0, while frames
    are bare tokens.
    """

    active: bool = False
    fresh: bool = True
    guarded: bool = True
    token_after: bytes | None = None
    _client: bytes | None = None  # raw, with its length

    def reads(self, key: int, data: bytes, quality: str, headed: bool) -> bool:
        """Whether a request's frame may be read as its header says; updates the state. key: as in follow; headed:
        whether the header could be read."""
        length = int.from_bytes(data[12:14], "big", signed=True)
        named = data[12 : 14 + max(length, 0)]
        whole = quality == Quality.OK and headed
        self.follow(key, whole)
        if whole:
            self.names(named)
            return True
        cut = quality in (Quality.TRUNCATED, Quality.GAP)
        if cut and self._client is None:
            self._client = named
        if self.active:
            return named == self._client and (cut or quality == Quality.UNSUPPORTED)
        return not self.fresh or self._client in (None, named)

    def follow(self, key: int, whole: bool = True) -> bool:
        """Takes a request's API key (-1: unknown) and returns guarded. whole: nothing of it is missing or wrong."""
        if key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            self.active = self.guarded = True
        elif whole and key not in IDENTIFYING:
            self.passed()
        return self.guarded

    def names(self, client: bytes) -> None:
        """Takes the client id of a complete request, raw, with its length."""
        self._client = client

    def passed(self) -> None:
        """Takes a complete request of an API that is not in IDENTIFYING."""
        if self.fresh and not self.active:
            self.guarded = False
        self.active = self.fresh = False


def _subject(claims: object) -> str | None:
    import json

    try:
        subject = json.loads(str(claims)).get("sub")
    except (ValueError, AttributeError, RecursionError):
        return None
    return subject if isinstance(subject, str) else None
