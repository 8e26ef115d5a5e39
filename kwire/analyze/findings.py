"""What a judgement is made of: a severity, a line that says it, the frames that prove it, and what to do.

Every command that judges (groups, trace, audit, doctor) gives findings of this one shape.
"""

from __future__ import annotations

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
        """Where a message stands."""
        connection = message.connection
        capture, packet = connection.places.of(message.packet)
        several = connection.places.several
        return cls(capture or connection.capture, packet, message.time, connection.name, message.name, several)

    @property
    def is_frame(self) -> bool:
        """Whether a frame begins in the packet, which can be decoded."""
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
    about, or whose absence it is (ClusterHistory.names_of); cause: the event that it follows from, None for most.
    """

    severity: str
    what: str
    evidence: tuple[Reference, ...] = ()
    advice: str = ""
    subject: str = ""
    time: int = 0
    words: str = ""
    detector: str = ""
    about: Mapping[str, str | int] = field(default_factory=dict)
    last: int | None = None
    count: int = 1
    otherwise: str = ""
    brokers: frozenset[str] = frozenset()
    cause: RootEvent | None = None

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
            "text": self.what + (f"; the broker says: {self.words}" if self.words else ""), "advice": self.advice,
            "otherwise": self.otherwise, "caused_by": self.cause.detector if self.cause else None,
            "caused_at": self.cause.time if self.cause else None,
        }  # fmt: skip


def error_label(code: int) -> str:
    """An error's name."""
    known = errors.get(code)
    return known.name if known else f"error {code}"


def about(**given: str | int) -> dict[str, str | int]:
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
