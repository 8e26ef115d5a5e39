"""AssignmentInfo: what Kafka Streams' own assignor tells a member, in the user data of the consumer's assignment.

There is no schema for it; the layouts are those of the Java class AssignmentInfo, written by DataOutputStream. Texts
are Java's: an uint16 length and modified UTF-8, or of a named topology an int32 count of UTF-16 units.

    v1   active tasks, standby tasks with their partitions
    v2   and which partitions each host has; v3 and what version all members support; v4 and an error code
    v5   topics of the hosts' partitions are numbers that a dictionary explains; v6 and the hosts' standby partitions
    v7   and when the next rebalance is due; v10 and the name of a task's topology
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.codec.annotate import MAX_SPANS
from kwire.codec.span import Span
from kwire.wire.fixed import PACKED
from kwire.wire.times import moment

Layout = tuple[tuple[str, "str | Layout"], ...]  # names and types; a layout for a type is an array of such structs

LATEST = 11
UTF, CHARS = "utf", "chars"
LEAST = {"int32": 4, "int64": 8, UTF: 2, CHARS: 4}  # bytes; of an array its count, 4 too
ERRORS = (  # AssignorError
    "NONE", "INCOMPLETE_SOURCE_TOPIC_METADATA", "VERSION_PROBING", "ASSIGNMENT_ERROR", "SHUTDOWN_REQUESTED",
)  # fmt: skip
NEVER = 2**63 - 1  # NextRebalanceMs

PARTITIONS: Layout = (("Topic", UTF), ("Partition", "int32"))
INDEXED: Layout = (("TopicIndex", "int32"), ("Partition", "int32"))
DICTIONARY: Layout = (("Index", "int32"), ("Topic", UTF))


def assignment_info(span: Span, data: bytes) -> Span:
    """A bytes span, opened; as it was, with a note, where its bytes are not exactly one AssignmentInfo.

    data is the buffer that the span's offsets count in. Never raises on bad bytes.
    """
    assert isinstance(span.value, bytes)
    reader = _Reader(data, span.end - len(span.value), span.end)
    try:
        version = reader.peek("int32")
        if not 1 <= version <= LATEST:
            raise _Stop
        children = reader.fields(_layout(version))
    except _Stop:
        children = []
    except _Full:
        return span._replace(note=f"AssignmentInfo not opened: over {MAX_SPANS:,} spans")
    if not children or reader.pos != span.end:
        return span._replace(note="not AssignmentInfo")
    return span._replace(children=tuple(children), text=f"AssignmentInfo v{version}")


def _layout(version: int) -> Layout:
    task: Layout = (("Subtopology", "int32"), ("Partition", "int32"))
    if version >= 10:
        task += (("NamedTopology", CHARS),)
    hosts: Layout = (("Host", UTF), ("Port", "int32"), ("Partitions", INDEXED if version >= 5 else PARTITIONS))
    fields: tuple[tuple[int, str, str | Layout], ...] = (  # the first version of each
        (1, "Version", "int32"),
        (3, "CommonlySupportedVersion", "int32"),
        (1, "ActiveTasks", task),
        (1, "StandbyTasks", (*task, ("Partitions", PARTITIONS))),
        (5, "TopicDictionary", DICTIONARY),
        (2, "PartitionsByHost", hosts),
        (6, "StandbyPartitionsByHost", hosts),
        (4, "ErrorCode", "int32"),
        (7, "NextRebalanceMs", "int64"),
    )
    return tuple((name, kind) for first, name, kind in fields if version >= first)


class _Stop(Exception):
    """Not an AssignmentInfo."""


class _Full(Exception):
    """More spans than are kept."""


class _Reader:
    """A cursor over data up to end, and the topics of the dictionary as soon as they are read."""

    def __init__(self, data: bytes, pos: int, end: int) -> None:
        self.data, self.pos, self.end = data, pos, end
        self.topics: dict[object, object] = {}
        self.spans = 0

    def peek(self, kind: str) -> int:
        self._need(PACKED[kind].size)
        return int(PACKED[kind].unpack_from(self.data, self.pos)[0])

    def fields(self, layout: Layout) -> list[Span]:
        return [self._leaf(name, kind) if isinstance(kind, str) else self._array(name, kind) for name, kind in layout]

    def _need(self, size: int) -> None:
        if size > self.end - self.pos:
            raise _Stop

    def _array(self, name: str, layout: Layout) -> Span:
        start, count = self.pos, self.peek("int32")
        self.pos += 4
        if count < 0:
            raise _Stop
        self._need(count * sum(LEAST[kind] if isinstance(kind, str) else 4 for _, kind in layout))
        self.spans += 1 + count * (1 + len(layout))
        if self.spans > MAX_SPANS:
            raise _Full
        elements = []
        for index in range(count):
            at = self.pos
            children = self.fields(layout)
            text = self._text(children)
            elements.append(
                Span(f"[{index}]", "struct", at, self.pos, len(children), tuple(children), None, None, text)
            )
        return Span(name, "array", start, self.pos, count, tuple(elements))

    def _text(self, children: list[Span]) -> str | None:
        """What Kafka calls a task, a host, a partition."""
        values = {child.name: child.text if child.name == "TopicIndex" else child.value for child in children}
        if "Index" in values:
            self.topics[values["Index"]] = values["Topic"]
            return None
        if "Subtopology" in values:
            task = f"{values['Subtopology']}_{values['Partition']}"
            return f"task {values['NamedTopology']}__{task}" if values.get("NamedTopology") else f"task {task}"
        if "Host" in values:
            return f"{values['Host']}:{values['Port']}"
        topic = values.get("Topic", values.get("TopicIndex"))
        return None if topic is None else f"{topic}-{values['Partition']}"

    def _leaf(self, name: str, kind: str) -> Span:
        start = self.pos
        if kind in (UTF, CHARS):
            text = self._string(kind)
            return Span(name, "string", start, self.pos, text)
        value = self.peek(kind)
        self.pos += PACKED[kind].size
        if name == "TopicIndex":
            topic = self.topics.get(value)
            note = "not in the dictionary" if topic is None else None
            return Span(name, kind, start, self.pos, value, (), note, None, None if topic is None else str(topic))
        mean = MEANINGS.get(name)
        return Span(name, kind, start, self.pos, value, (), None, None, mean(value) if mean else None)

    def _string(self, kind: str) -> str:
        size = self.peek("uint16") if kind == UTF else 2 * self.peek("int32")
        self.pos += LEAST[kind]
        if size < 0:
            raise _Stop
        self._need(size)
        raw = bytes(self.data[self.pos : self.pos + size])
        self.pos += size
        if kind == UTF:
            raw = _units(raw)
        return raw.decode("utf-16-be", "replace")  # half a surrogate pair is a text in Java


def _units(raw: bytes) -> bytes:
    """Modified UTF-8 as UTF-16: NUL is c0 80, what is above U+FFFF a pair of surrogates of three bytes each."""
    if raw and max(raw) >= 0xF0:
        raise _Stop
    try:
        return raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    except UnicodeDecodeError:
        raise _Stop from None


def _error(code: int) -> str:
    return ERRORS[code] if 0 <= code < len(ERRORS) else "unknown"


def _due(ms: int) -> str:
    return "none" if ms == NEVER else moment(ms)


MEANINGS: dict[str, Callable[[int], str]] = {"ErrorCode": _error, "NextRebalanceMs": _due}
