"""A frame to its answer, without a socket: header, version, login, faults, the API's handler, and the answer's frame.

Kafka answers what it can and closes the connection for all else: an API or version that is not served, a body that does
not decode, a request before the login (SocketServer.processCompletedReceives, KafkaApis). serve() calls done exactly
once, at once or later; whoever calls it sends no further frame of that connection before. Of a large request it gives
the work that is to be done, a little at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from struct import pack, unpack_from
from typing import Any, NamedTuple

from kwire.broker import elements, slices
from kwire.broker.acls import ANONYMOUS
from kwire.broker.answers import error_body, framed, written
from kwire.broker.apis import announced, api_versions, served
from kwire.broker.authorizer import Guard
from kwire.broker.codes import Code, Refused
from kwire.broker.context import MS, Body, Hangup, Later, Outcome, Peer, Request, Work
from kwire.broker.faults import FaultVerdict, mentioned
from kwire.broker.pieces import MANY, in_steps, layout_of, weight
from kwire.broker.quotas import CONSUMED, PRODUCED
from kwire.broker.security import LoginFailed
from kwire.broker.state import BrokerState
from kwire.codec.headers import request_header_version
from kwire.codec.library import builtin_library
from kwire.errors import DecodeError, KwireError
from kwire.schema.keys import API_VERSIONS, FETCH, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE

LARGE = 64 << 10  # bytes of a request that is taken up on its own, and whose elements are counted first
SMALL = 4 << 10  # bytes of a request that cannot name many things
BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
GREETINGS = {  # what else comes to a port, read as a size: the first four bytes
    0x47455420: "HTTP (GET)", 0x504F5354: "HTTP (POST)", 0x50524920: "HTTP/2", 0x5353482D: "SSH",
    0x50524F58: "the proxy protocol",
}  # fmt: skip


class ReplyFrame(NamedTuple):
    """What goes out: the frame, None for nothing; close says why the connection ends after it."""

    data: bytes | None
    close: str | None = None


Done = Callable[[ReplyFrame], None]


class Service:
    """What all connections of all nodes ask."""

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self._library = builtin_library()
        self._served = served()
        self._announced = announced(state.settings.era, state.telemetry)

    def serve(self, peer: Peer, data: bytes, done: Done) -> Work[None] | None:
        """Answers a frame; data is without the size prefix. What it gives must be gone through for the answer."""
        work = self._at_leisure(peer, data, done)
        if is_large(len(data), data):
            return work
        return None if next(work, self) is self else work

    def _at_leisure(self, peer: Peer, data: bytes, done: Done) -> Work[None]:
        work = yield from self._opened(peer, data, done)
        if work is not None:
            yield
            yield from work

    def _opened(self, peer: Peer, data: bytes, done: Done) -> Work[Work[None] | None]:
        try:
            if peer.login is not None and peer.login.bare:
                done(self._bare(peer, data))
                return None
            request, unknown = yield from self._request(peer, data)
        except Hangup as hangup:
            done(ReplyFrame(None, str(hangup)))
            return None
        if unknown:
            body = api_versions.refusal(self.state)
            done(ReplyFrame(written(request, body, 0)))
            return None
        self.state.saw(request)
        return ServedRequest(self, request, done, len(data)).start()

    # ------------------------------------------------------------ in

    def _request(self, peer: Peer, data: bytes) -> Work[tuple[Request, bool]]:
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
            if len(data) > LARGE:
                yield from self._measure(name, version, data, pos)
            body, _ = self._library.codec(f"{name}Request", version).decode_at(data, pos)  # more bytes: as Kafka, fine
        except DecodeError as error:
            raise Hangup(f"{name} v{version} cannot be read: {error}") from None
        return Request(name, key, version, correlation, header["ClientId"], body, peer, peer.node, now), False

    def _measure(self, name: str, version: int, data: bytes, pos: int) -> Work[None]:
        """Raises Hangup for a body with too many elements, or one that is none."""
        limits = self.state.settings.limits
        most = limits.batches if name == "Produce" else limits.elements
        try:
            found = yield from elements.count(self._library.plan(f"{name}Request", version).root, data, pos, most)
        except elements.TooMany:
            raise Hangup(f"{name} with more than {most:,} elements") from None
        except elements.Unreadable as error:
            raise Hangup(f"{name} v{version} cannot be read: {error}") from None
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
            return error_body(request, Code.POLICY_VIOLATION)
        try:
            handler = self._served[request.api].handle
            return Guard(request, self.state).handle(handler) if self.state.acls.on else handler(request, self.state)
        except Refused as refused:
            return {**error_body(request, refused.code), "ErrorMessage": refused.why}


class ServedRequest:
    """One request on its way through the faults to its answer."""

    def __init__(self, service: Service, request: Request, done: Done, size: int) -> None:
        self.service, self.state, self.request, self.size = service, service.state, request, size
        self.throttle = 0  # ns
        self.worked = False  # the handler took several steps
        self._done: Done = done
        self.verdict: FaultVerdict | None = None

    def start(self) -> Work[None] | None:
        """Looks at the request, or does so later when its client is throttled or its node paused."""
        peer, clock = self.request.peer, self.state.clock
        wait = max(peer.muted - clock.now(), self.state.faults.silence(peer.node, clock.now()))
        if wait > 0:
            clock.after(wait, lambda: peer.soon(self.start))
            return None
        try:
            verdict = self.verdict = self.state.faults.judge(self.request)
        except KwireError as error:
            self._done(ReplyFrame(None, str(error)))
            return None
        self.throttle = verdict.throttle if verdict else 0
        if self.request.key == PRODUCE:
            self.charge(PRODUCED, self.size)
        if verdict is None:
            return self.act()
        for rule in verdict.rules:
            self.state.tell("fault", str(self.request.peer), f"{self.request.api}: {rule}", api=self.request.api)
        if verdict.dead:
            return None  # never done: nothing more of this connection is looked at
        if verdict.drop == "before":
            self._done(ReplyFrame(None))
        elif verdict.cut == "before":
            self._done(ReplyFrame(None, "cut on purpose"))
        else:
            self.prepare(verdict.before)
            return self.act()
        return None

    def charge(self, quota: str, amount: int) -> None:
        """The client's quota is used; above it the answer says so, and the connection is not heard for so long."""
        state, peer = self.state, self.request.peer
        if not state.quotas.given:
            return
        user, now = peer.principal or ANONYMOUS, state.clock.now()
        wait = state.quotas.charge(quota, user, self.request.client_id or "", amount, now)
        if wait:
            peer.muted, self.throttle = now + wait, max(self.throttle, wait)
            state.tell("throttled", str(peer), f"{quota} of {user}: {wait // MS:,} ms", quota=quota, wait=wait)

    def prepare(self, acts: list[tuple[str, Any]]) -> None:
        """What faults do to groups, leaders and nodes before the request is looked at."""
        state, request = self.state, self.request
        for act, value in acts:
            if act == "down":
                state.stop_node(request.node)
                if value is not None:
                    state.clock.after(value, partial(state.start_node, request.node))
            elif act == "lead":
                for name in set(mentioned(request, "topicName")):
                    for partition in state.cluster.topics[name].partitions if name in state.cluster.topics else ():
                        state.cluster.move_leader(partition)
            else:
                groups = set(mentioned(request, "groupId"))
                for group in groups:
                    state.groups.act(act, group, request.body.get("MemberId"), value)
                for name in set() if groups else set(mentioned(request, "transactionalId")):
                    state.transactions.act(act, name, value)

    def act(self) -> Work[None] | None:
        """The answer, or the work that leads to it."""
        try:
            outcome: Outcome = self.unusual()
            if outcome is None:
                cut = slices.of(self.request, self.state, self.size)
                if cut is not None:
                    return self.answer_in_slices(cut)
                outcome = self.service.handle(self.request)
        except Hangup as hangup:
            self._done(ReplyFrame(None, str(hangup)))
            return None
        if not isinstance(outcome, dict) and isinstance(outcome, Generator):  # the first asks for less time
            return self.answer_after(outcome)
        self.answer_with(outcome)
        return None

    def answer_after(self, work: Work[Outcome]) -> Work[None]:
        """Does the handler's work, one step at each."""
        outcome = yield from work
        self.worked = True
        self.answer_with(outcome)

    def answer_with(self, outcome: Outcome) -> None:
        if outcome is None or isinstance(outcome, dict):
            self.answer(outcome)
        else:
            assert isinstance(outcome, Later)
            outcome.then(self.answer)

    def unusual(self) -> Body | None:
        """What a fault answers in place of the handler."""
        verdict = self.verdict
        if verdict is None:
            return None
        if verdict.body is not None:
            return verdict.body
        if verdict.unsupported:
            return self.unsupported()
        return None if verdict.error is None else error_body(self.request, verdict.error)

    def answer_in_slices(self, cut: slices.RequestSlices) -> Work[None]:
        """Handles the slices, one at each step."""
        body = None
        most, throttle = self.state.settings.limits.answer, self.throttle
        try:
            for body in cut.answer(self.service.handle, self.state.clock.now, most, throttle // MS):
                if self.request.peer.closed:
                    return
                if body is None:
                    yield
        except Hangup as hangup:
            self._done(ReplyFrame(None, str(hangup)))
            return
        except KwireError as error:
            self._done(ReplyFrame(None, self.unwritten(error)))
            return
        self.request.peer.closing.clear()
        if body is None:
            self._done(ReplyFrame(None))
        else:
            self.reply(framed(self.request, body, self.request.version))

    def unsupported(self) -> Body:
        if self.request.key == API_VERSIONS:
            self.request = self.request._replace(version=0)
            return api_versions.refusal(self.state)
        return error_body(self.request, Code.UNSUPPORTED_VERSION)

    def answer(self, body: Body | None) -> None:
        """The body is there."""
        request = self.request
        if request.peer.closed:
            return
        request.peer.closing.clear()  # nothing waits any more: a connection has one request at a time
        if body is None:
            self._done(ReplyFrame(None))
            return
        if request.key == FETCH and self.state.quotas.given:
            self.charge(CONSUMED, sum(len(p.get("Records") or b"") for t in body["Responses"] for p in t["Partitions"]))
        if self.throttle:
            body = {**body, "ThrottleTimeMs": self.throttle // MS}
        if (self.worked or self.size > SMALL) and weight(body) > MANY:
            large = body
            request.peer.soon(lambda: self.write_in_steps(large))
            return
        try:
            data = written(request, body, request.version)
        except KwireError as error:
            self._done(ReplyFrame(None, self.unwritten(error)))
            return
        failed = request.key == SASL_AUTHENTICATE and body.get("ErrorCode") == Code.SASL_AUTHENTICATION_FAILED
        self.reply(data, "the login failed" if failed else None)

    def write_in_steps(self, body: Body) -> Work[None]:
        """An answer about many things, some of them at every step."""
        request = self.request
        layout = layout_of(request.api, request.version)
        try:
            if layout is None:
                data = written(request, body, request.version)
            else:
                data = framed(request, (yield from in_steps(layout, body)), request.version)
        except KwireError as error:
            self._done(ReplyFrame(None, self.unwritten(error)))
            return
        if not request.peer.closed:
            self.reply(data)

    def unwritten(self, error: KwireError) -> str:
        return f"{self.request.api} v{self.request.version}: the answer cannot be written: {error}"

    def reply(self, data: bytes, close: str | None = None) -> None:
        """The frame is there: out with it, or what the faults leave of it."""
        reply, verdict = ReplyFrame(data, close), self.verdict
        if verdict is not None:
            left, why = self.state.faults.spoiled(data, verdict)
            reply = ReplyFrame(left, why or close)
            if verdict.delay:
                self.state.clock.after(verdict.delay, lambda: self._late(reply))
                return
        self._late(reply)

    def _late(self, reply: ReplyFrame) -> None:
        """The answer goes out, unless its client is gone or its node paused."""
        wait = self.state.faults.silence(self.request.node, self.state.clock.now())
        if wait:
            self.state.clock.after(wait, lambda: self._late(reply))
        elif not self.request.peer.closed:
            self._done(reply)


def is_large(size: int, head: bytes | bytearray) -> bool:
    """Whether a request is taken up on its own, after other large ones. head: how it begins, without the size."""
    return size > LARGE and head[:2] != b"\0\0"  # Produce is large because of its records


def foreign(size: int) -> str:
    """What a size prefix that cannot be one was instead, in words."""
    greeting = GREETINGS.get(size)
    if greeting is None and size >> 16 in (0x1603, 0x1503):
        greeting = "TLS"
    return f"; this is {greeting}, not Kafka" if greeting else ""
