"""What a client says of itself: its software, how it logs in and as whom. Never a password. And when a login is under
way, so that nothing is taken for what it is not while passwords travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kwire.codec.quality import Quality
from kwire.codec.span import Span
from kwire.payloads import sasl
from kwire.schema.keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE

# ApiVersions too: all that a broker takes before a login is done
IDENTIFYING = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
UNREAD = "not to be read, in the middle of a login"
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
    def said(self) -> tuple[str | None, ...]:
        """All that it knows; take takes it."""
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
    """Whether a connection logs in, as its requests tell.

    SaslHandshake and SaslAuthenticate begin a login (active), a whole request that is none of a login's ends it. In
    between, a frame that cannot be read is a token that was damaged, and nothing of it holds. Before the first request
    that is none of a login's (fresh), what names another client than before may be a bare token. guarded: what cannot
    be read may be a password, which holds ever after a login too: a broker lets clients log in anew (KIP-368).
    token_after: the client id of a SaslHandshake v0, while bare tokens travel.
    """

    active: bool = False
    fresh: bool = True
    guarded: bool = True
    token_after: bytes | None = None
    _client: bytes | None = None  # as it is in the header, with its length

    def reads(self, key: int, data: bytes, quality: str, headed: bool) -> bool:
        """Whether a request's frame may be taken for what it says, from which follows where the login stands. key: as
        follow takes it; headed: whether its header could be read."""
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
        """A request of this API, -1 of one that nobody knows; whole: nothing of it is missing or wrong. Whether what
        cannot be read may be a password now."""
        if key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            self.active = self.guarded = True
        elif whole and key not in IDENTIFYING:
            self.passed()
        return self.guarded

    def names(self, client: bytes) -> None:
        """A whole request names this client, as it is in the header, with its length."""
        self._client = client

    def passed(self) -> None:
        """There was a request that is none of a login's."""
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
