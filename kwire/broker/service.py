"""A frame to its answer, without a socket: header, version, login, faults, the API's handler, and the answer's frame.

Kafka answers what it can and closes the connection for all else: an API or version that is not served, a body that does
not decode, a request before the login (SocketServer.processCompletedReceives, KafkaApis). serve() calls done exactly
once, at once or later; whoever calls it sends no further frame of that connection before. Of a large request it gives
the work that is to be done, a little at every step.
"""

from __future__ import annotations

from struct import Struct, pack
from typing import NamedTuple, cast

from kwire.broker import elements
from kwire.broker.answers import Done, ReplyFrame, error_body, written
from kwire.broker.apis import announced, api_versions, served
from kwire.broker.authorizer import Guard
from kwire.broker.context import Hangup, Outcome, Peer, Request, Work
from kwire.broker.refused import Refused
from kwire.broker.security import LoginFailed
from kwire.broker.served_request import ServedRequest
from kwire.broker.state import BrokerState
from kwire.codec.headers import request_header_version
from kwire.codec.library import builtin_library
from kwire.codec.values import Codec
from kwire.errors import DecodeError
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE

LARGE = 64 << 10  # bytes of a request that is taken up on its own, and whose elements are counted first
KEY_VERSION, HEAD = Struct(">hh"), Struct(">hhi")  # how every request begins; the third is its correlation id
BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
GREETINGS = {  # what else comes to a port, read as a size: the first four bytes
    0x47455420: "HTTP (GET)", 0x504F5354: "HTTP (POST)", 0x50524920: "HTTP/2", 0x5353482D: "SSH",
    0x50524F58: "the proxy protocol",
}  # fmt: skip


class ServedVersion(NamedTuple):
    """What reads the requests of an API's version."""

    name: str
    key: int
    version: int
    header: Codec
    body: Codec

    def read(self, peer: Peer, data: bytes, now: int) -> Request:
        """Raises Hangup."""
        try:
            header, pos = self.header.decode_at(data, 0)
            body, _ = self.body.decode_at(data, pos)  # more bytes: as Kafka, fine
        except DecodeError as error:
            raise Hangup(f"{self.name} v{self.version} cannot be read: {error}") from None
        number, client = header["CorrelationId"], header["ClientId"]
        return Request(self.name, self.key, self.version, number, client, body, peer, peer.node, now)


class Service:
    """What all connections of all nodes ask."""

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self._library = builtin_library()
        self._served = served()
        self._versions: dict[tuple[int, int], ServedVersion] = {}  # those that were asked for

    def serve(self, peer: Peer, frame: bytes | bytearray, done: Done) -> Work[None] | None:
        """Answers a frame without its size prefix. What it gives must be gone through for the answer.

        The records of a bytearray are the log's own, and nobody else's: what may be kept or shown is made of bytes.
        """
        if isinstance(frame, bytearray) and (frame[:2] != b"\0\0" or peer.login or self.state.faults.rules):
            frame = bytes(frame)
        data = cast(bytes, frame)
        try:
            if peer.login is not None and peer.login.bare:
                done(self._bare(peer, data))
                return None
            asked = self._asked(peer, data)
            if asked is None:
                done(ReplyFrame(self._unknown(peer, data)))
                return None
            if len(data) > LARGE:
                work = self._at_leisure(asked, peer, data, done)
                return work if is_large(len(data), data) or next(work, self) is not self else None
            request = asked.read(peer, data, self.state.clock.now())
        except Hangup as hangup:
            done(ReplyFrame(None, str(hangup)))
            return None
        self.state.saw(request)
        return ServedRequest(self.state, self.handle, request, done, len(data)).start()

    def _at_leisure(self, asked: ServedVersion, peer: Peer, data: bytes, done: Done) -> Work[None]:
        try:
            yield from self._measure(asked, data)
            request = asked.read(peer, data, self.state.clock.now())
        except Hangup as hangup:
            done(ReplyFrame(None, str(hangup)))
            return
        self.state.saw(request)
        work = ServedRequest(self.state, self.handle, request, done, len(data)).start()
        if work is not None:
            yield
            yield from work

    # ------------------------------------------------------------ in

    def _asked(self, peer: Peer, data: bytes) -> ServedVersion | None:
        """What reads the request; None: a version of ApiVersions that is not served. Raises Hangup."""
        if len(data) < 8:
            raise Hangup(f"a frame of {len(data)} bytes is no request")
        key, version = KEY_VERSION.unpack_from(data)
        known = self._versions.get((key, version))
        if known is None or peer.login is not None or self.state.faults.rules or len(data) > LARGE:
            return self._permitted(peer, key, version, len(data))
        return known

    def _permitted(self, peer: Peer, key: int, version: int, size: int) -> ServedVersion | None:
        """The same, with all that may speak against a request. Raises Hangup."""
        name = self._library.registry.name_of(key) if 0 <= key < 1000 else None
        there = announced(self.state.settings.era, self.state.telemetry)
        if name is None or name not in self._served or key not in there:
            raise Hangup(f"API key {key}{f' ({name})' if name else ''} is not served")
        if peer.login is not None and peer.login.user is None and key not in BEFORE_LOGIN:
            raise Hangup(f"{name} before the login")
        if key != PRODUCE and size > self.state.settings.limits.other:
            raise Hangup(f"{name} of {size:,} bytes, the limit is {self.state.settings.limits.other:,}")
        versions = self.state.faults.ranges().get(key, there[key])
        if version not in versions or version not in there[key]:
            if key != API_VERSIONS:
                raise Hangup(f"{name} v{version} is not served, {versions} are")
            return None
        if (key, version) not in self._versions:
            message = self._library.api_message(key, request=True)
            header = self._library.codec("RequestHeader", request_header_version(key, version, message))
            body = self._library.codec(f"{name}Request", version)
            self._versions[key, version] = ServedVersion(name, key, version, header, body)
        return self._versions[key, version]

    def _unknown(self, peer: Peer, data: bytes) -> bytes:
        """The answer to a version of ApiVersions that is not served."""
        key, version, correlation = HEAD.unpack_from(data)
        request = Request("ApiVersions", key, version, correlation, None, {}, peer, peer.node, self.state.clock.now())
        return written(request, api_versions.refusal(self.state), 0)

    def _measure(self, asked: ServedVersion, data: bytes) -> Work[None]:
        """Raises Hangup for a body with too many elements, or one that is none."""
        limits = self.state.settings.limits
        most = limits.batches if asked.key == PRODUCE else limits.elements
        try:
            _, pos = asked.header.decode_at(data, 0)
            found = yield from elements.count(asked.body.plan.root, data, pos, most)
        except elements.TooMany:
            raise Hangup(f"{asked.name} with more than {most:,} elements") from None
        except (DecodeError, elements.Unreadable) as error:
            raise Hangup(f"{asked.name} v{asked.version} cannot be read: {error}") from None
        if found > elements.AT_ONCE:
            yield

    def _bare(self, peer: Peer, data: bytes) -> ReplyFrame:
        """A token without a header (SaslHandshake v0); the answer is bare too."""
        login = peer.login
        assert login is not None
        try:
            answer = login.token(data)
        except LoginFailed as wrong:
            return ReplyFrame(None, f"the login failed: {wrong}")
        if login.user is not None:
            self.state.tell("login", str(peer), f"{login.user} with {login.mechanism}")
        return ReplyFrame(pack(">i", len(answer)) + answer)

    # ------------------------------------------------------------ out

    def handle(self, request: Request) -> Outcome:
        """The handler's outcome; what it refuses as a whole becomes an answer full of that error. Raises Hangup."""
        if not self.state.memory.allows(request.api, request.client_id, request.body):
            self.state.tell("refused", str(request.peer), f"{request.api}: groups, offsets and settings take too much")
            return error_body(request, codes.POLICY_VIOLATION)
        try:
            handler = self._served[request.api].handle
            return Guard(request, self.state).handle(handler) if self.state.acls.on else handler(request, self.state)
        except Refused as refused:
            return {**error_body(request, refused.code), "ErrorMessage": refused.why}


def is_large(size: int, head: bytes | bytearray) -> bool:
    """Whether a request is taken up on its own, after other large ones. head: how it begins, without the size."""
    return size > LARGE and head[:2] != b"\0\0"  # Produce is large because of its records


def foreign(size: int) -> str:
    """What a size prefix that cannot be one was instead, in words."""
    greeting = GREETINGS.get(size)
    if greeting is None and size >> 16 in (0x1603, 0x1503):
        greeting = "TLS"
    return f"; this is {greeting}, not Kafka" if greeting else ""
