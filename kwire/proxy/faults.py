"""Faults on the way: what the rules of kwire/broker/faults.py make of one connection's requests and their answers.

A request that a rule may be about waits until it is whole, is judged, and goes on, or is answered here; an answer that
is to be changed waits too. What no rule is about passes as always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kwire.broker.answers import error_body, written
from kwire.broker.context import MS, Body, Peer, Request, Seen
from kwire.broker.faults import Faults, FaultVerdict
from kwire.codec.library import builtin_library
from kwire.errors import KwireError
from kwire.proxy.cutter import Dead, End, Piece, Wait
from kwire.proxy.link import Fate, PendingRequest
from kwire.proxy.rewrite import known, request_body
from kwire.proxy.splice import place_of, read, spliced
from kwire.proxy.types import PeerRefused
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS

NEEDS_BODY = ("error", "unsupported")


@dataclass(slots=True)
class Judge:
    """node: of the broker that is asked, below zero while it is not known. now: ns since the Unix epoch. told(api,
    rule): a rule was applied. paused(): a broker was. saw: where each request's header goes. peer: the client."""

    faults: Faults
    node: Callable[[], int]
    now: Callable[[], int]
    told: Callable[[str, str], None] = lambda _, __: None
    paused: Callable[[], None] = lambda: None
    saw: Callable[[Seen], None] | None = None
    peer: Peer = field(default_factory=lambda: Peer(0, "", 0, -1))

    @property
    def active(self) -> bool:
        """Whether headers are to be shown here at all."""
        return bool(self.faults.rules or self.faults.controls or self.saw is not None)

    def concerns(self, asked: PendingRequest, client: str | None) -> bool:
        """Whether a request must be judged, by what its header says."""
        api = name_of(asked.key)
        if self.saw is not None:
            self.saw(Seen(self.now(), api, asked.version, client, str(self.peer), "", self.node()))
        if any(control.api in ("any", api) for control in self.faults.controls):
            return True
        for rule in self.faults.rules:
            if rule.apis is not None and api not in rule.apis:
                continue
            if rule.standing and not any(action == "versions" for action, _ in rule.actions):
                continue
            if fnmatchcase(client or "", rule.where.get("client", "*")):
                return True
        return False

    def judge(self, frame: bytes, asked: PendingRequest, client: str | None) -> Fate | None:
        """What becomes of a whole request, size prefix included; None: it goes on."""
        api, node = name_of(asked.key), self.node()
        self.peer.node = node
        request = Request(
            api, asked.key, asked.version, asked.correlation or 0, client, {}, self.peer, node, self.now()
        )
        served = self.faults.ranges().get(asked.key)
        if served is not None and asked.version not in served:
            if asked.key != API_VERSIONS:
                why = f"{api} v{asked.version} is not served, {served} are, on purpose"
                return Fate(False, [End(why)])
            return self._answered(request, FaultVerdict(unsupported=True))
        if self._needs_body(api):
            try:
                request = request._replace(body=request_body(frame, asked))
            except KwireError:  # the broker will say what it thinks of it
                return None
        try:
            verdict = self.faults.judge(request)
        except KwireError as error:
            return Fate(False, [End(f"a hook on {api}: {error}")])
        if verdict is None:
            return None
        for rule in verdict.rules:
            self.told(api, rule)
        if verdict.paused:
            self.paused()
        return self._fate(request, verdict)

    def _needs_body(self, api: str) -> bool:
        return any(control.api in ("any", api) for control in self.faults.controls) or any(
            rule.where.keys() & {"group", "topic"} or any(action in NEEDS_BODY for action, _ in rule.actions)
            for rule in self.faults.rules
            if rule.apis is None or api in rule.apis
        )

    def _fate(self, request: Request, verdict: FaultVerdict) -> Fate:
        if verdict.dead:
            return Fate(False, [Dead()])
        if verdict.drop == "before":
            return Fate(False, [])
        if verdict.cut == "before":
            return Fate(False, [End("cut on purpose")])
        if verdict.body is not None or verdict.unsupported or verdict.error is not None:
            return self._answered(request, verdict)
        return Fate(True, after=lambda frame: self._spoiled(frame, request, verdict))

    def _answered(self, request: Request, verdict: FaultVerdict) -> Fate:
        """The answer is made here, and the broker never hears of the request."""
        version = request.version
        try:
            if verdict.body is not None:
                body = verdict.body
            elif verdict.unsupported and request.key == API_VERSIONS:
                version, body = 0, _unsupported()
            else:
                code = codes.UNSUPPORTED_VERSION if verdict.unsupported else verdict.error
                body = error_body(request, code or 0)
            frame = written(request, body, version)
        except KwireError as error:
            return Fate(False, [End(f"{request.api} v{version}: the answer cannot be written: {error}")])
        return Fate(False, self._spoiled(frame, request._replace(version=version), verdict))

    def _spoiled(self, frame: bytes, request: Request, verdict: FaultVerdict) -> list[Piece]:
        """What goes out of an answer, and when."""
        if verdict.throttle:
            frame = _throttled(
                frame, PendingRequest(request.key, request.version, request.correlation_id), verdict.throttle
            )
        left, why = self.faults.spoiled(frame, verdict)
        out: list[Piece] = [Wait(verdict.delay)] if verdict.delay else []
        if left:
            out.append(left)
        return [*out, End(why)] if why is not None else out


def name_of(key: int) -> str:
    """An API's name, or its key where it has none."""
    return (builtin_library().registry.name_of(key) if 0 <= key < 1000 else None) or f"key {key}"


def _throttled(frame: bytes, asked: PendingRequest, ns: int) -> bytes:
    """An answer that says how long its client is throttled, where it can say so."""

    try:
        place = place_of(frame, asked, "ThrottleTimeMs")
        return frame if place is None else spliced(frame, asked, place, max(read(frame, asked, place), ns // MS))
    except PeerRefused:
        return frame


def _unsupported() -> Body:
    versions = known(API_VERSIONS)
    row = {"ApiKey": API_VERSIONS, "MinVersion": versions.low, "MaxVersion": versions.high}
    return {"ErrorCode": codes.UNSUPPORTED_VERSION, "ApiKeys": [row]}
