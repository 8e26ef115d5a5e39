"""A fault rule from its text; the grammar stands in faults.py."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Any

from kwire.errors import KwireError, UnknownName
from kwire.schema import codes
from kwire.schema.errorcodes import errors
from kwire.schema.model import Versions
from kwire.schema.registry import builtin

SELECTORS = ("client", "group", "topic", "node", "version")
LIMITS = ("after", "times", "chance")
ONCE = ("forget", "move", "expire", "loading", "down")
STANDING = ("versions", "advertise")
ACTIONS = (
    "error", "delay", "drop", "cut", "short", "flip", "throttle", "unsupported", "pause", "half-open", *STANDING, *ONCE,
)  # fmt: skip
SINGLE = (*ONCE, "pause")  # done once, unless times= says more
GROUP_APIS = frozenset(
    {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat"}
)
LEADER_APIS = frozenset({"Produce", "Fetch", "ListOffsets"})
METADATA_APIS = frozenset({"Metadata", "DescribeCluster"})
FIND_APIS = frozenset({"FindCoordinator"})
ADDRESSES = {GROUP_APIS: FIND_APIS, LEADER_APIS: METADATA_APIS}  # what says where those whom a rule names are
TARGETS = {"any": None, "coordinator": GROUP_APIS, "leader": LEADER_APIS}
GONE = (codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID)
UNITS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "": 1_000_000_000}
DAY = 86_400_000_000_000


@dataclass(slots=True, eq=False)
class FaultRule:
    """apis None: all of them. actions: (name, value). standing: it is a setting, and not about single requests. number:
    among the rules of its Faults; came, met: requests that it is about, and those that it was applied to."""

    text: str
    apis: frozenset[str] | None = None
    where: dict[str, str] = field(default_factory=dict)
    actions: list[tuple[str, Any]] = field(default_factory=list)
    after: int = 0
    times: int | None = None
    chance: float = 1.0
    leader: bool = False
    number: int = 0
    came: int = 0
    met: int = 0

    @property
    def standing(self) -> bool:
        return any(action in STANDING for action, _ in self.actions)

    @property
    def note(self) -> str:
        """What somebody may have expected of the rule, and which rule does that; "" when there is nothing to say."""
        gone = any(action == "error" and value in GONE for action, value in self.actions)
        if not gone or self.apis is None or "Heartbeat" not in self.apis or len(self.actions) > 1:
            return ""
        return "the answer says so, and the member stays in its group; Heartbeat:expire takes it out"

    @classmethod
    def parse(cls, text: str) -> FaultRule:
        """Raises KwireError."""
        rule = cls(text)
        try:
            who, what = _halves(text)
            _who(rule, who)
            _what(rule, what)
            if rule.standing:
                _stand(rule, {word.strip().partition("=")[0] for word in what.split(",")})
        except ValueError as error:
            better = _arranged(text)
            why = error if better in (None, text) else f"did you mean {better}?"
            raise KwireError(f"fault {text}: {why}") from None
        if rule.times is None and any(action in SINGLE for action, _ in rule.actions):
            rule.times = 1
        return rule


def _halves(text: str) -> tuple[str, str]:
    """Who, what. A colon inside a value (an address) is no separator: what stands before it names an action."""
    head, colon, rest = text.partition(":")
    first = head.split(",")[0].partition("=")[0].strip()
    if not colon or first in ACTIONS or first in LIMITS:
        return "", text
    return head, rest


def _who(rule: FaultRule, text: str) -> None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if parts and "=" not in parts[0]:
        word = parts.pop(0)
        if word in TARGETS:
            rule.apis, rule.leader = TARGETS[word], word == "leader"
        else:
            rule.apis = frozenset(_api(name) for name in word.split("+"))
    for part in parts:
        name, equals, value = part.partition("=")
        if name not in SELECTORS or not equals:
            raise ValueError(f"no selector {name}{_near(name, SELECTORS)}")
        if name in ("node", "version"):
            _number(name, value)
        rule.where[name] = value


def _arranged(text: str) -> str | None:
    """The words of a rule where they belong, whatever their values are; None if one of them is none of a rule's."""
    who: list[str] = []
    where: list[str] = []
    what: list[str] = []
    for part in re.split(r"[,;\s]+", text.strip()):
        halves = [part] if part.startswith("advertise=") else part.split(":", 1)
        for word in filter(None, halves):
            name, equals, _ = word.partition("=")
            if name in SELECTORS and equals:
                where.append(word)
            elif name in ACTIONS or name in LIMITS:
                what.append(word)
            elif name in TARGETS or _is_apis(name):
                who.append(word)
            else:
                return None
    head = ",".join(["+".join(who), *where] if who else where)
    return ":".join(filter(None, (head, ",".join(what)))) if what else None


def _is_apis(names: str) -> bool:
    try:
        return all(builtin().find(name).definition.is_api for name in names.split("+"))
    except UnknownName:
        return False


def _api(name: str) -> str:
    try:
        found = builtin().find(name).definition
    except UnknownName as error:
        known = tuple(one for one in error.nearest if builtin().find(one).definition.is_api)
        raise ValueError(UnknownName("API", name, known)) from None
    if not found.is_api:
        raise ValueError(f"{name} is no API")
    return found.name


def _what(rule: FaultRule, text: str) -> None:
    for part in (part.strip() for part in text.split(",")):
        name, equals, value = part.partition("=")
        if name in LIMITS:
            _limit(rule, name, value)
        elif name in ACTIONS:
            rule.actions.append((name, _value(name, value, bool(equals))))
        else:
            raise ValueError(f"no action {name or 'at all'}{_near(name, (*ACTIONS, *LIMITS))}")
    if not rule.actions:
        raise ValueError(f"no action; there are {', '.join(ACTIONS)}")


def _stand(rule: FaultRule, words: set[str]) -> None:
    """A standing rule's limits: versions are of APIs, addresses of nodes, and both hold all the time for everybody."""
    name = next(action for action, _ in rule.actions if action in STANDING)
    for word in LIMITS:
        if word in words:
            raise ValueError(f"{word}= does not go with {name}, which holds all the time")
    for action, _ in rule.actions:
        if action != name:
            raise ValueError(f"{name} holds all the time; a rule of its own says {action}")
    for word in rule.where:
        if (name, word) != ("advertise", "node"):
            raise ValueError(f"{word}= does not go with {name}, which holds for all")
    if name == "advertise":
        rule.apis = _speakers(rule.apis)
    elif rule.apis is None:
        raise ValueError("versions= is about one API or several, as Fetch:versions=0-3")


def _speakers(apis: frozenset[str] | None) -> frozenset[str] | None:
    """The APIs whose answers name brokers, out of those that a rule is about."""
    if apis is None:
        return None
    found = ADDRESSES.get(apis, apis)
    others = sorted(found - METADATA_APIS - FIND_APIS)
    if others:
        names = "coordinator, leader, FindCoordinator, Metadata, DescribeCluster"
        raise ValueError(f"{others[0]} names no broker; advertise is for {names}")
    return found


def _limit(rule: FaultRule, name: str, value: str) -> None:
    if name == "chance":
        try:
            rule.chance = float(value)
        except ValueError:
            rule.chance = -1
        if not 0 <= rule.chance <= 1:
            raise ValueError(f"chance={value}; write 0 to 1, as chance=0.1")
    elif name == "after":
        rule.after = _number(name, value)
    else:
        rule.times = _number(name, value)
        if not rule.times:
            raise ValueError("times=0 would be never")


def _value(name: str, value: str, given: bool) -> Any:
    if name in ("drop", "cut"):
        if value not in ("", "after", "before"):
            raise ValueError(f"{name}={value}; there are {name} and {name}=after")
        return value or "before"
    if name in ("pause", "down"):
        return duration(value) if given else None
    if name == "loading":
        return duration(value)
    if name in ("unsupported", "half-open", *ONCE):
        if given:
            raise ValueError(f"{name} takes no value")
        return True
    if name == "error":
        if not value:
            raise ValueError("no error is named")
        found = errors.get(int(value) if re.fullmatch(r"-?\d+", value) else value)
        if found is None:
            raise ValueError(f"no error {value}{_near(value.upper(), [error.name for error in errors])}")
        return found.code
    if name in ("delay", "throttle"):
        return duration(value)
    if name in ("short", "flip"):
        count = _number(name, value)
        if name == "flip" and not count:
            raise ValueError("flip=0 changes nothing")
        return count
    return _versions(value) if name == "versions" else address(value)


def _versions(text: str) -> Versions:
    try:
        found = Versions.parse(text)
        if text and (found or text == "none"):
            return found
    except ValueError:
        pass
    raise ValueError(f"versions={text}; write 0-3, 2+, 5 or none")


def duration(text: str) -> int:
    """ "2s", "300ms", "1m" or seconds, in ns. Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|)", text)
    if not match:
        raise ValueError(f"{text or 'nothing'} is no time; write 300ms, 2s or 1m")
    ns = float(match[1]) * UNITS[match[2]]
    if ns > DAY:
        raise ValueError(f"{text} is more than a day")
    return int(ns)


def address(text: str) -> tuple[str, int]:
    """HOST:PORT, an IPv6 host in brackets. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text or 'nothing'} is no address; write HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _number(name: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"{name}={value} is no number")
    return int(value)


def _near(name: str, names: tuple[str, ...] | list[str]) -> str:
    found = difflib.get_close_matches(name, names, 2, 0.6)
    return (
        f"; did you mean {' or '.join(found)}?"
        if found
        else f"; there are {', '.join(names)}"
        if len(names) < 30
        else ""
    )
