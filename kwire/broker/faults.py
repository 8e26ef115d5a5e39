"""Faults on purpose: rules as text, and hooks in Python, that decide what becomes of a request.

    RULE    = [WHO ":"] ACTION ["," ACTION | "," LIMIT]...
    WHO     = API ["+" API]... | "coordinator" | "leader" | "any" | SELECTOR, then ["," SELECTOR]...
    SELECTOR  client=, group=, topic= (a name, * and ? allowed), node=, version=
    ACTION    error=NAME        the error in every error field of the answer; nothing is carried out. So a heartbeat's
                                UNKNOWN_MEMBER_ID leaves the member in its group: Heartbeat:expire takes it out
              delay=2s          carried out and answered so much later (ms, s, m)
              drop              never answered, nor carried out; drop=after: carried out, the answer is lost
              cut               the connection is closed instead; cut=after: carried out first
              short=20          only the answer's first 20 bytes are sent, then the connection is closed
              flip=3            3 bytes of the answer are wrong, its length and correlation id are not
              pause=10s         the node that is asked says nothing more on any connection, for so long; pause alone:
                                until the rule is cleared
              half-open         the connection stays open, and nothing is heard or said on it any more
              throttle=2s       the answer says that the client is throttled (ThrottleTimeMs)
              unsupported       UNSUPPORTED_VERSION; ApiVersions answers it in the form of v0
              versions=0-3      only these versions are announced and served
              forget            the group, or the transactional id, that is asked about is forgotten first
              move              the coordinator (or, with leader, the leaders) moves to the next node first
              expire            the session of the member that asks is over first, or the producer's open transaction
              loading=2s        the group, or the transactional id, is being loaded for so long
              down=5s           the node that is asked goes down, others lead in its place, and after so long it comes
                                back at the same port; down alone: for good
              advertise=HOST:PORT   clients are sent there instead (with node=: only for that node). coordinator:
                                    only FindCoordinator says so; leader: only what tells metadata; else both
    LIMIT     after=N (so many pass first), times=N (so often; forget, move, expire, loading, down and pause
              once), chance=0.1

All rules that match are applied, in their order; of several errors the first counts. kwire proxy takes the same rules
for what passes through it, without forget, move, expire, loading and down, which only a broker can do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import count
from random import Random
from typing import Any

from kwire.broker.context import Body, Request
from kwire.broker.fault_rules import ONCE, FaultRule
from kwire.broker.hooks import Control, Hook
from kwire.broker.nodes import counted_nodes
from kwire.codec.library import builtin_library
from kwire.codec.named import named
from kwire.errors import HookFailed, KwireError
from kwire.schema.model import Versions
from kwire.schema.registry import builtin

ENTITIES = {"group": "groupId", "topic": "topicName"}
MOST_RULES = 1_000
LOOK = 100_000_000  # ns after which what a pause holds back looks whether it is over


@dataclass(slots=True)
class FaultVerdict:
    """What becomes of one request. body: the answer itself, made by a hook."""

    delay: int = 0
    throttle: int = 0
    error: int | None = None
    body: Body | None = None
    drop: str = ""
    cut: str = ""
    short: int | None = None
    flip: int = 0
    unsupported: bool = False
    dead: bool = False  # half-open
    paused: bool = False  # a pause began
    before: list[tuple[str, Any]] = field(default_factory=list)  # forget, move, expire, lead, loading, down: its value
    rules: list[str] = field(default_factory=list)  # as they were written


class Fault:
    """A rule in its place; remove() takes it away, and so does leaving a with block. came: how many requests it was
    about; met: to how many of them it was applied."""

    def __init__(self, rule: FaultRule, faults: Faults) -> None:
        self._rule, self._faults = rule, faults

    @property
    def came(self) -> int:
        return self._rule.came

    @property
    def met(self) -> int:
        return self._rule.met

    def remove(self) -> None:
        self._faults.remove(self._rule)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __str__(self) -> str:
        return self._rule.text


class Faults:
    """The rules and hooks of a broker or a proxy. cannot: actions that it has no means for."""

    def __init__(self, seed: int = 0, cannot: Collection[str] = ()) -> None:
        self.rules: list[FaultRule] = []
        self.controls: list[Control] = []
        self.failures: list[HookFailed] = []  # of hooks, at most MOST_RULES
        self.random = Random(seed)
        self._cannot = cannot
        self._nodes: Collection[int] | None = None
        self._numbers = count(1)
        self.paused: dict[int, tuple[FaultRule, int | None]] = {}  # by node, with the time when it is over

    def add(self, rule: str | FaultRule) -> FaultRule:
        """Raises KwireError for a rule that does not parse, or whose node there is not."""
        made = FaultRule.parse(rule) if isinstance(rule, str) else rule
        self._check(made)
        if len(self.rules) >= MOST_RULES:
            raise KwireError(f"there are {MOST_RULES:,} rules already")
        made.number = next(self._numbers)
        self.rules.append(made)
        return made

    def settle(self, nodes: Collection[int]) -> None:
        """From now on it is known which nodes there are. Raises KwireError for a rule about another."""
        self._nodes = nodes
        for rule in self.rules:
            self._check(rule)

    def _check(self, rule: FaultRule) -> None:
        for action, _ in rule.actions:
            if action in self._cannot:
                raise KwireError(f"fault {rule.text}: only a broker can {action}, and this is a proxy")
        if self._nodes is not None and "node" in rule.where and int(rule.where["node"]) not in self._nodes:
            raise KwireError(f"fault {rule.text}: there {counted_nodes(self._nodes)}")

    def remove(self, rule: FaultRule) -> None:
        """A rule that is there holds no longer, nor does the pause that it began."""
        with suppress(ValueError):
            self.rules.remove(rule)
        self.paused = {node: found for node, found in self.paused.items() if found[0] is not rule}

    def clear(self) -> None:
        """Neither rules nor hooks nor pauses any more."""
        self.rules.clear()
        self.controls.clear()
        self.paused.clear()

    def silence(self, node: int, now: int) -> int:
        """ns until one may look again whether a node still says nothing; 0: it speaks."""
        found = self.paused.get(node)
        if found is None:
            return 0
        until = found[1]
        if until is not None and until <= now:
            del self.paused[node]
            return 0
        return LOOK if until is None else min(until - now, LOOK)

    def control(self, api: str, hook: Hook) -> Control:
        """hook sees every request of an API ("any": of all). It gives None to go on, the answer, or actions as in
        a rule, as "error=NOT_COORDINATOR" or "cut". Raises UnknownName."""
        name = "any" if api == "any" else builtin().find(api).definition.name
        made = Control(name, hook, self.controls)
        self.controls.append(made)
        return made

    def ranges(self) -> dict[int, Versions]:
        """By key, where a rule narrows what is served."""
        found: dict[int, Versions] = {}
        for rule in self.rules:
            for action, value in rule.actions:
                if action == "versions":
                    for name in rule.apis or ():
                        key = builtin().find(name).definition.key
                        if key is not None:
                            found[key] = value
        return found

    def advertised(self, api: str) -> dict[int | None, tuple[str, int]]:
        """What an API's answers say, by node; None is all of them."""
        return {
            int(rule.where["node"]) if "node" in rule.where else None: value
            for rule in self.rules
            for action, value in rule.actions
            if action == "advertise" and (rule.apis is None or api in rule.apis)
        }

    def judge(self, request: Request) -> FaultVerdict | None:
        """What is to become of a request; None: nothing unusual. Raises HookFailed."""
        if not self.rules and not self.controls:
            return None
        verdict = FaultVerdict()
        for control in list(self.controls):
            if control.api in ("any", request.api):
                self._ask(control, request, verdict)
        for rule in list(self.rules):
            if self._meets(rule, request):
                self._apply(rule, verdict, request)
        return verdict if verdict.rules else None

    def _ask(self, control: Control, request: Request, verdict: FaultVerdict) -> None:
        """Raises HookFailed, which is kept too."""
        try:
            said = control.ask(request)
            if isinstance(said, str):
                try:
                    rule = FaultRule.parse(said)
                    self._check(rule)
                except KwireError as error:
                    raise control.failed(f"gave no rule's actions: {error}") from error
                self._apply(rule, verdict, request)
            elif said is not None and verdict.body is None:
                verdict.body = said
                verdict.rules.append(f"answered by a hook on {control.api}")
        except HookFailed as error:
            if len(self.failures) < MOST_RULES:
                self.failures.append(error)
            raise

    def _meets(self, rule: FaultRule, request: Request) -> bool:
        if rule.standing or not _matches(rule, request):
            return False
        rule.came += 1
        if rule.came <= rule.after or (rule.times is not None and rule.met >= rule.times):
            return False
        if rule.chance < 1 and self.random.random() >= rule.chance:
            return False
        rule.met += 1
        return True

    def _apply(self, rule: FaultRule, verdict: FaultVerdict, request: Request) -> None:
        verdict.rules.append(rule.text)
        for action, value in rule.actions:
            if action in ("delay", "throttle"):
                setattr(verdict, action, getattr(verdict, action) + value)
            elif action in ONCE:
                verdict.before.append(("lead" if action == "move" and rule.leader else action, value))
            elif action == "error":
                verdict.error = value if verdict.error is None else verdict.error
            elif action == "pause":
                verdict.paused = True
                self.paused[request.node] = rule, None if value is None else request.time + value
            elif action == "half-open":
                verdict.dead = True
            elif action in ("drop", "cut", "short", "flip", "unsupported"):
                setattr(verdict, action, value)

    def spoiled(self, data: bytes, verdict: FaultVerdict) -> tuple[bytes | None, str | None]:
        """What goes out of an answer's frame, and why the connection ends after it, if it does."""
        if verdict.drop or verdict.cut:
            return None, "cut on purpose" if verdict.cut else None
        if verdict.flip:
            data = self.damage(data, verdict.flip, 8)
        if verdict.short is None:
            return data, None
        return data[: verdict.short], f"cut short after {verdict.short} bytes, on purpose"

    def damage(self, data: bytes, count: int, first: int) -> bytes:
        """A frame with count bytes changed, none of them before first."""
        if len(data) <= first:
            return data
        out = bytearray(data)
        for at in self.random.sample(range(first, len(data)), min(count, len(data) - first)):
            out[at] ^= self.random.randrange(1, 256)
        return bytes(out)


def _matches(rule: FaultRule, request: Request) -> bool:
    if rule.apis is not None and request.api not in rule.apis:
        return False
    where = rule.where
    if "client" in where and not fnmatchcase(request.client_id or "", where["client"]):
        return False
    if "node" in where and request.node != int(where["node"]):
        return False
    if "version" in where and request.version != int(where["version"]):
        return False
    return all(
        any(fnmatchcase(name, where[word]) for name in mentioned(request, entity))
        for word, entity in ENTITIES.items()
        if word in where
    )


def mentioned(request: Request, entity: str) -> Iterator[str]:
    """The groups ("groupId") or topics ("topicName") that a request names."""
    plan = builtin_library().plan(f"{request.api}Request", request.version)
    if request.api == "FindCoordinator" and entity == "groupId":
        yield from [request.body["Key"]] if "Key" in request.body else request.body["CoordinatorKeys"]
    yield from named(plan.root, request.body, entity)
