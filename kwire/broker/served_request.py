"""One request on its way to its answer: quotas, faults, slices of a large one, the handler, and the answer's frame.

The answer is given to whoever waits for it exactly once, at once or later. What takes long is work, done a little at
every step of the connection's turns.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from kwire.broker import slices
from kwire.broker.acls import ANONYMOUS
from kwire.broker.answers import Done, ReplyFrame, error_body, framed, written
from kwire.broker.apis import api_versions
from kwire.broker.context import MS, Body, Hangup, Later, Outcome, Request, Work
from kwire.broker.faults import FaultVerdict, mentioned
from kwire.broker.pieces import in_steps, layout_of, weight
from kwire.broker.quotas import CONSUMED, PRODUCED
from kwire.errors import KwireError
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, FETCH, PRODUCE, SASL_AUTHENTICATE

if TYPE_CHECKING:
    from kwire.broker.state import BrokerState

SMALL = 4 << 10  # bytes of a request that cannot name many things


class ServedRequest:
    """One request on its way through the faults to its answer."""

    __slots__ = ("_done", "_handle", "request", "size", "state", "throttle", "verdict", "worked")

    def __init__(
        self, state: BrokerState, handle: Callable[[Request], Outcome], request: Request, done: Done, size: int
    ) -> None:
        self.state, self.request, self.size = state, request, size
        self._handle = handle
        self.throttle = 0  # ns
        self.worked = False  # the handler took several steps
        self._done: Done = done
        self.verdict: FaultVerdict | None = None

    def start(self) -> Work[None] | None:
        """Looks at the request, or does so later when its client is throttled or its node paused."""
        peer, clock, faults = self.request.peer, self.state.clock, self.state.faults
        if peer.muted or faults.paused:
            wait = max(peer.muted - clock.now(), faults.silence(peer.node, clock.now()))
            if wait > 0:
                clock.after(wait, lambda: peer.soon(self.start))
                return None
        try:
            verdict = self.verdict = faults.judge(self.request)
        except KwireError as error:
            self._done(ReplyFrame(None, str(error)))
            return None
        if verdict is not None:
            self.throttle = verdict.throttle
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
            outcome: Outcome = None if self.verdict is None else self.unusual(self.verdict)
            if outcome is None:
                cut = slices.of(self.request, self.state, self.size)
                if cut is not None:
                    return self.answer_in_slices(cut)
                outcome = self._handle(self.request)
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

    def unusual(self, verdict: FaultVerdict) -> Body | None:
        """What a fault answers in place of the handler."""
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
            for body in cut.answer(self._handle, self.state.clock.now, most, throttle // MS):
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
        return error_body(self.request, codes.UNSUPPORTED_VERSION)

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
        if (self.worked or self.size > SMALL) and weight(body) > self.state.settings.limits.at_once:
            large = body
            request.peer.soon(lambda: self.write_in_steps(large))
            return
        try:
            data = written(request, body, request.version)
        except KwireError as error:
            self._done(ReplyFrame(None, self.unwritten(error)))
            return
        failed = request.key == SASL_AUTHENTICATE and body.get("ErrorCode") == codes.SASL_AUTHENTICATION_FAILED
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
        if verdict is None:
            self._late(reply)
        else:
            left, why = self.state.faults.spoiled(data, verdict)
            reply = ReplyFrame(left, why or close)
            if verdict.delay:
                self.state.clock.after(verdict.delay, lambda: self._late(reply))
            else:
                self._late(reply)

    def _late(self, reply: ReplyFrame) -> None:
        """The answer goes out, unless its client is gone or its node paused."""
        faults, clock = self.state.faults, self.state.clock
        wait = faults.silence(self.request.node, clock.now()) if faults.paused else 0
        if wait:
            clock.after(wait, lambda: self._late(reply))
        elif not self.request.peer.closed:
            self._done(reply)
