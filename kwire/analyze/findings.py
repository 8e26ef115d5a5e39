"""What a judgement is made of: a severity, a line that says it, the frames that prove it, and what to do.

Every command that judges (groups, trace, audit, doctor) gives findings of this one shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.capture.packet_numbers import reference
from kwire.schema.errorcodes import errors

if TYPE_CHECKING:
    from kwire.session.exchange import Message

SEVERITIES = ("error", "warning", "note")
SECOND = 1_000_000_000
BARE = ("SYN", "close", "full window", "packet")  # what packets without a frame are named
ABOUT = (  # what a finding may be about, in the order in which it is shown
    "client_id", "address", "group", "member", "topic", "partition", "broker", "principal", "transactional_id", "api",
)  # fmt: skip
MANY = {  # what a finding that stands for several tells of: members and addresses only where no client id does
    "topic": "topics", "partition": "partitions", "client_id": "clients", "member": "members", "address": "addresses",
    "principal": "principals", "transactional_id": "transactional ids",
}  # fmt: skip
NAMED = 5  # of the many that are named
About = str | int


class Reference(NamedTuple):
    """A frame of a capture. packet: the number of the packet with its first byte, in that capture; time: ns since the
    epoch; several: whether it is one of several captures. str() is as kwire decode --frame takes it."""

    capture: str
    packet: int
    time: int
    connection: str
    message: str
    several: bool = False

    @classmethod
    def of(cls, message: Message) -> Reference:
        """A reference to a message."""
        connection = message.connection
        capture, packet = connection.places.of(message.packet)
        several = connection.places.several
        return cls(capture or connection.capture, packet, message.time, connection.name, message.name, several)

    @property
    def is_frame(self) -> bool:
        """Whether a frame that can be decoded begins in the packet."""
        return self.message not in BARE

    def __str__(self) -> str:
        return reference(self.capture, self.packet, self.several)

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "capture": self.capture, "frame": self.packet, "time": self.time, "connection": self.connection,
            "message": self.message,
        }  # fmt: skip


class RootEvent(NamedTuple):
    """The event that a finding follows from: its detector, when, ns, and the broker that it is about."""

    detector: str
    time: int
    broker: str

    @classmethod
    def of(cls, event: Finding) -> RootEvent:
        return cls(event.detector, event.time, str(event.about.get("broker", "")))


@dataclass(frozen=True, slots=True)
class Finding:
    """severity: one of SEVERITIES; what: one line; advice: what to do, empty when nothing; subject: what it is about,
    as "group billing"; time: when, ns since the epoch; words: the broker's own, empty when it said none.

    Of a detector besides: its name; about: what it is about, by name (client_id, address, group, member, topic,
    partition, broker, principal, transactional_id, api); last: when last, None: once; count: how many equal facts it
    stands for; otherwise: what would prove that it is not so; brokers: the names of those whose absence would bring it
    about, or whose absence it is (ClusterHistory.names_of); cause: the event that it follows from, None for most. Of
    one that stands for several alike (analyze/alike.py): stands_for: how many; among: what they differ in, by name.
    """

    severity: str
    what: str
    evidence: tuple[Reference, ...] = ()
    advice: str = ""
    subject: str = ""
    time: int = 0
    words: str = ""
    detector: str = ""
    about: Mapping[str, About] = field(default_factory=dict)
    last: int | None = None
    count: int = 1
    otherwise: str = ""
    brokers: frozenset[str] = frozenset()
    cause: RootEvent | None = None
    among: Mapping[str, tuple[About, ...]] = field(default_factory=dict)
    stands_for: int = 1

    @property
    def text(self) -> str:
        """The finding's text, with a count if it stands for several."""
        return self.what + self.likewise

    @property
    def likewise(self) -> str:
        """As "; and 719 more like it, of 12 clients (a, b, …)"; empty for a finding that stands for itself."""
        if self.stands_for == 1:
            return ""
        whose = "client_id" in self.among
        told = [name for name in MANY if name in self.among and not (whose and name in ("member", "address"))]
        many = [f"{len(self.among[name]):,} {MANY[name]} ({named(self.among[name])})" for name in told]
        return f"; and {self.stands_for - 1:,} more like it: {', '.join(many)}"

    def row(self) -> dict[str, Any]:
        """As JSON of groups and trace shows it."""
        return {
            "severity": self.severity, "subject": self.subject, "time": self.time, "what": self.what,
            "words": self.words, "advice": self.advice, "evidence": [reference.row() for reference in self.evidence],
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """As doctor writes it, and as a row of the table findings: times in ns since the epoch, packets as every
        command takes them; caused_by and caused_at: detector and first_time of the event that it follows from."""
        return {
            "detector": self.detector, "severity": self.severity,
            "about": {name: self.about[name] for name in ABOUT if self.about.get(name) is not None},
            "first_time": self.time, "last_time": self.time if self.last is None else max(self.last, self.time),
            "count": self.count, "packets": list(dict.fromkeys(str(reference) for reference in self.evidence)),
            "text": self.text + (f"; the broker says: {self.words}" if self.words else ""), "advice": self.advice,
            "otherwise": self.otherwise, "caused_by": self.cause.detector if self.cause else None,
            "caused_at": self.cause.time if self.cause else None,
            "among": {name: list(self.among[name]) for name in ABOUT if name in self.among},
        }  # fmt: skip


def error_label(code: int) -> str:
    """An error's name."""
    known = errors.get(code)
    return known.name if known else f"error {code}"


def named(values: Iterable[About]) -> str:
    """The first few by name and how many more; numbers as ranges, as "0 to 11, 14"."""
    there = list(values)
    numbers = sorted(value for value in there if isinstance(value, int))
    if len(numbers) == len(there):
        starts = [at for at, number in enumerate(numbers) if not at or number != numbers[at - 1] + 1]
        runs = [numbers[start:end] for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True)]
        words = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    else:
        words = sorted(map(str, there), key=_natural)
    return ", ".join([*words[:NAMED], *(["…"] if len(words) > NAMED else [])])


def _natural(text: str) -> list[str | int]:
    """To sort by: shop-2 before shop-10."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]{1,18})", text))]


def about(**given: About) -> dict[str, About]:
    """What a finding is about, by the names of ABOUT; what is empty is left out."""
    return {name: value for name, value in given.items() if value != ""}


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then by time."""
    return sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.time))


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """Moments as text: seconds since start (ns since the epoch), or the time of day, UTC, without one."""

    start: int | None = None

    def __call__(self, moment: int) -> str:
        """As "12.031"."""
        if self.start is None:
            seconds, rest = divmod(moment, SECOND)
            return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}.{rest // 1_000_000:03d}"
        milli = (moment - self.start) // 1_000_000
        sign = "-" if milli < 0 else ""
        return f"{sign}{abs(milli) // 1000}.{abs(milli) % 1000:03d}"


def lasted(ns: int) -> str:
    """A length of time: 12 ms, 6.0 s, 4.5 min, 2.1 h."""
    seconds = abs(ns) / SECOND
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0095 else f"{seconds * 1000:.1f} ms"
    if seconds < 119.95:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
