"""A frame to its answer, without a socket: header, version, login, faults, the API's handler, and the answer's frame.

Kafka answers what it can and closes the connection for all else: an API or version that is not served, a body that does
not decode, a request before the login (SocketServer.processCompletedReceives, KafkaApis). serve() calls done exactly
once, at once or later; whoever calls it sends no further frame of that connection before.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack_from
from typing import NamedTuple

from kwire.broker.apis import announced, api_versions, served
from kwire.broker.codes import Code, Refused
from kwire.broker.faults import Verdict, mentioned
from kwire.broker.security import Wrong
from kwire.broker.shape import fitted, refusal
from kwire.broker.state import State
from kwire.broker.words import MS, Body, Hangup, Later, Outcome, Peer, Request
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.errors import DecodeError, KwireError

PRODUCE, API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 0, 18, 17, 36
BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
GREETINGS = {  # what else comes to a port, read as a size: the first four bytes
    0x47455420: "HTTP (GET)", 0x504F5354: "HTTP (POST)", 0x50524920: "HTTP/2", 0x5353482D: "SSH",
    0x50524F58: "the proxy protocol",
}  # fmt: skip


class Reply(NamedTuple):
    """What goes out: the frame, None for nothing; close says why the connection ends after it."""

    data: bytes | None
    close: str | None = None


Done = Callable[[Reply], None]


class Service:
    """What all connections of all nodes ask."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._library = builtin_library()
        self._served = served()
        self._announced = announced(state.settings.era)

    def serve(self, peer: Peer, data: bytes, done: Done) -> None:
        """Answers a frame; data is without the size prefix."""
        try:
            if peer.login is not None and peer.login.bare:
                done(self._bare(peer, data))
                return
            request, unknown = self._request(peer, data)
        except Hangup as hangup:
            done(Reply(None, str(hangup)))
            return
        if unknown:
            body = api_versions.refusal(self.state)
            done(Reply(self._frame(request, body, 0)))
            return
        self.state.saw(request)
        Exchange(self, request, done).start()

    # ------------------------------------------------------------ in

    def _request(self, peer: Peer, data: bytes) -> tuple[Request, bool]:
        """The request; true: a version of ApiVersions that is not served. Raises Hangup."""
        if len(data) < 8:
            raise Hangup(f"a frame of {len(data)} bytes is no request")
        key, version, correlation = unpack_from(">hhi", data)
        name = self._library.registry.name_of(key) if 0 <= key < 1000 else None
        if name is None or name not in self._served or key not in self._announced:
            raise Hangup(f"API key {key}{f' ({name})' if name else ''} is not served")
        if peer.login is not None and peer.login.user is None and key not in BEFORE_LOGIN:
            raise Hangup(f"{name} before the login")
        if key != PRODUCE and len(data) > self.state.settings.limits.other:
            raise Hangup(f"{name} of {len(data):,} bytes, the limit is {self.state.settings.limits.other:,}")
        versions = self.state.faults.ranges().get(key, self._announced[key])
        message = self._library.api_message(key, request=True)
        now = self.state.clock.now()
        if version not in versions or version not in self._announced[key]:
            if key != API_VERSIONS:
                raise Hangup(f"{name} v{version} is not served, {versions} are")
            return Request(name, key, version, correlation, None, {}, peer, peer.node, now), True
        try:
            header_version = request_header_version(key, version, message)
            header, pos = self._library.codec("RequestHeader", header_version).decode_at(data, 0)
            body, _ = self._library.codec(f"{name}Request", version).decode_at(data, pos)  # more bytes: as Kafka, fine
        except DecodeError as error:
            raise Hangup(f"{name} v{version} cannot be read: {error}") from None
        return Request(name, key, version, correlation, header["ClientId"], body, peer, peer.node, now), False

    def _bare(self, peer: Peer, data: bytes) -> Reply:
        """A token without a header (SaslHandshake v0); the answer is bare too."""
        login = peer.login
        assert login is not None
        try:
            answer = login.token(data)
        except Wrong as wrong:
            return Reply(None, f"the login failed: {wrong}")
        if login.user is not None:
            self.state.tell("login", str(peer), f"{login.user} with {login.mechanism}")
        return Reply(pack(">i", len(answer)) + answer)

    # ------------------------------------------------------------ out

    def handle(self, request: Request) -> Outcome:
        """The handler's outcome; what it refuses as a whole becomes an answer full of that error. Raises Hangup."""
        try:
            return self._served[request.api].handle(request, self.state)
        except Refused as refused:
            return self.refusal(request, refused.code)

    def refusal(self, request: Request, code: int) -> Body:
        """One error in every error field of the answer."""
        if request.key == API_VERSIONS:
            return {"ErrorCode": code}
        asked = self._library.plan(f"{request.api}Request", request.version).root
        return refusal(self._library.plan(f"{request.api}Response", request.version).root, asked, request.body, code)

    def frame(self, request: Request, body: Body) -> bytes:
        """The answer's frame, size prefix included."""
        return self._frame(request, body, request.version)

    def _frame(self, request: Request, body: Body, version: int) -> bytes:
        codec = self._library.codec(f"{request.api}Response", version)
        message = self._library.api_message(request.key, request=False)
        tail = b"\0" if response_header_version(request.key, version, message) else b""
        data = codec.encode(fitted(codec.plan.root, body))
        return b"".join((pack(">ii", len(data) + 4 + len(tail), request.correlation_id), tail, data))


class Exchange:
    """One request on its way through the faults to its answer."""

    def __init__(self, service: Service, request: Request, done: Done) -> None:
        self.service, self.state, self.request = service, service.state, request
        self._done: Done = done
        self.verdict: Verdict | None = None

    def start(self) -> None:
        try:
            verdict = self.verdict = self.state.faults.judge(self.request)
        except KwireError as error:
            self._done(Reply(None, f"a hook on {self.request.api}: {error}"))
            return
        if verdict is None:
            self.act()
            return
        for rule in verdict.rules:
            self.state.tell("fault", str(self.request.peer), f"{self.request.api}: {rule}", api=self.request.api)
        if verdict.drop == "before":
            self._done(Reply(None))
        elif verdict.cut == "before":
            self._done(Reply(None, "cut on purpose"))
        else:
            self.prepare(verdict.before)
            self.act()

    def prepare(self, acts: list[str]) -> None:
        """What faults do to groups and leaders before the request is looked at."""
        state, request = self.state, self.request
        for act in acts:
            if act == "lead":
                for name in set(mentioned(request, "topicName")):
                    for partition in state.cluster.topics[name].partitions if name in state.cluster.topics else ():
                        state.cluster.move_leader(partition)
            else:
                groups = set(mentioned(request, "groupId"))
                for group in groups:
                    state.groups.act(act, group, request.body.get("MemberId"))
                for name in set() if groups else set(mentioned(request, "transactionalId")):
                    state.transactions.act(act, name)

    def act(self) -> None:
        verdict = self.verdict
        try:
            if verdict is None:
                outcome = self.service.handle(self.request)
            elif verdict.body is not None:
                outcome = verdict.body
            elif verdict.unsupported:
                outcome = self.unsupported()
            elif verdict.error is not None:
                outcome = self.service.refusal(self.request, verdict.error)
            else:
                outcome = self.service.handle(self.request)
        except Hangup as hangup:
            self._done(Reply(None, str(hangup)))
            return
        if isinstance(outcome, Later):
            outcome.then(self.answer)
        else:
            self.answer(outcome)

    def unsupported(self) -> Body:
        if self.request.key == API_VERSIONS:
            self.request = self.request._replace(version=0)
            return api_versions.refusal(self.state)
        return self.service.refusal(self.request, Code.UNSUPPORTED_VERSION)

    def answer(self, body: Body | None) -> None:
        """The body is there: out with it, or what the faults leave of it."""
        request, verdict = self.request, self.verdict
        if request.peer.closed:
            return
        request.peer.closing.clear()  # nothing waits any more: a connection has one request at a time
        if body is None:
            self._done(Reply(None))
            return
        if verdict is not None and verdict.throttle:
            body = {**body, "ThrottleTimeMs": verdict.throttle // MS}
        try:
            data = self.service.frame(request, body)
        except KwireError as error:
            self._done(Reply(None, f"{request.api} v{request.version}: the answer cannot be written: {error}"))
            return
        failed = request.key == SASL_AUTHENTICATE and body.get("ErrorCode") == Code.SASL_AUTHENTICATION_FAILED
        reply = Reply(data, "the login failed" if failed else None)
        if verdict is None:
            self._done(reply)
            return
        if verdict.flip:
            reply = reply._replace(data=self.state.faults.damage(data, verdict.flip, 8))
        if verdict.short is not None:
            reply = Reply((reply.data or b"")[: verdict.short], f"cut short on purpose, after {verdict.short} bytes")
        if verdict.drop or verdict.cut:
            reply = Reply(None, "cut on purpose" if verdict.cut else None)
        if verdict.delay:
            self.state.clock.after(verdict.delay, lambda: self._late(reply))
        else:
            self._done(reply)

    def _late(self, reply: Reply) -> None:
        if not self.request.peer.closed:
            self._done(reply)


def foreign(size: int) -> str:
    """What a size prefix that cannot be one was instead, in words."""
    greeting = GREETINGS.get(size)
    if greeting is None and size >> 16 in (0x1603, 0x1503):
        greeting = "TLS"
    return f"; this is {greeting}, not Kafka" if greeting else ""
