"""Opens the fields of a message that hold formats of their own; a table says which field holds what.

An opener gets the field's span, the buffer that its offsets count in, and the spans of the structs around it, innermost
first; it gives the span with children, or as it was. Whatever it does, the outer message is not lost to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kwire.codec.frames import decode_frame
from kwire.codec.secrets import METADATA, METADATA_ID
from kwire.codec.span import TAG, TAGGED, UNDECODED, Span
from kwire.payloads import group, sasl, telemetry, topics
from kwire.records.annotate import annotate_records, open_message
from kwire.records.compression import Budget

Opener = Callable[[Span, bytes, Sequence[Span]], Span]


def _records(span: Span, data: bytes, around: Sequence[Span], budget: Budget | None = None) -> Span:
    """Batches; of internal topics, their records too."""
    topic = next((text for struct in around for text in (topic_of(struct),) if text), None)
    return _batches(span, data, topic, budget)


def _batches(span: Span, data: bytes, topic: str | None, budget: Budget | None) -> Span:
    assert isinstance(span.value, bytes)
    start = span.end - len(span.value)
    batches = annotate_records(data, start, span.end, budget=budget)
    return span._replace(children=open_topic(batches, data, topic))


def _snapshot(span: Span, data: bytes, _around: Sequence[Span], budget: Budget | None = None) -> Span:
    """A piece of a snapshot of the metadata log, cut anywhere: only one that begins with a batch is opened."""
    opened = _batches(span, data, METADATA, budget)
    if opened.children and opened.children[0].type == UNDECODED:
        return span._replace(note="a piece of a snapshot that does not begin with a batch", secret=True)
    return opened


def open_topic(batches: tuple[Span, ...], data: bytes, topic: str | None) -> tuple[Span, ...]:
    """The batches of a topic; of an internal one, with its records opened, and what is in their fields."""
    if topic not in topics.BY_NAME:
        strays = tuple(topics.open_strays(batch, data) for batch in batches)
        return tuple(old if new is old else _values(new, data) for new, old in zip(strays, batches, strict=True))
    return tuple(_values(batch, data) for batch in topics.open_batches(batches, data, topic))


def _values(span: Span, data: bytes) -> Span:
    """The values of records that are messages of ours, with their own fields opened."""
    inner = data if span.buffer is None else span.buffer
    if span.name == "Value" and span.text and span.buffer is None:
        return _message_fields(span, inner, span.text.partition(" ")[0])
    children = tuple(_values(child, inner) for child in span.children)
    return span._replace(children=children) if span.children else span


def _message_fields(span: Span, data: bytes, name: str) -> Span:
    wanted = _wanted(name)
    if not wanted:
        return span
    return span._replace(children=tuple(_open(child, data, wanted, (span,)) for child in span.children))


def _envelope(span: Span, _data: bytes, _around: Sequence[Span]) -> Span:
    """The request that a broker forwards: header and body, no size (KIP-590). One that cannot be read may be secret."""
    assert isinstance(span.value, bytes)
    frame = decode_frame(span.value, size=False)
    if frame.quality != "ok":
        return span._replace(note=f"not a request: {frame.note}", secret=True)
    inner = _shifted(frame.span, span.end - (frame.span.end - frame.span.start))
    return span._replace(children=inner.children, text=frame.name)


def _shifted(span: Span, by: int) -> Span:
    children = tuple(_shifted(child, by) for child in span.children)
    return span._replace(start=span.start + by, end=span.end + by, children=children)


def _principal(span: Span, data: bytes, _around: Sequence[Span]) -> Span:
    return open_message(span, data, "DefaultPrincipalData", prefixed=True)


def topic_of(struct: Span) -> str | None:
    """The topic that a struct is about, if it names one."""
    for child in struct.children:
        if child.name in ("Topic", "Name", "TopicName") and isinstance(child.value, str):
            return child.value
        if child.name == "TopicId" and child.value == METADATA_ID:
            return METADATA
    return None


OPENERS: dict[tuple[str, str], Opener] = {
    ("ProduceRequest", "Records"): _records,
    ("FetchResponse", "Records"): _records,
    ("ShareFetchResponse", "Records"): _records,
    ("FetchSnapshotResponse", "UnalignedRecords"): _snapshot,
    ("JoinGroupRequest", "Metadata"): group.subscription,
    ("JoinGroupResponse", "Metadata"): group.subscription,
    ("SyncGroupRequest", "Assignment"): group.assignment,
    ("SyncGroupResponse", "Assignment"): group.assignment,
    ("DescribeGroupsResponse", "MemberMetadata"): group.subscription,
    ("DescribeGroupsResponse", "MemberAssignment"): group.assignment,
    ("ConsumerGroupMemberMetadataValue", "Metadata"): group.subscription,
    ("GroupMetadataValue", "Subscription"): group.subscription,
    ("GroupMetadataValue", "Assignment"): group.assignment,
    ("PushTelemetryRequest", "Metrics"): telemetry.metrics,
    ("EnvelopeRequest", "RequestData"): _envelope,
    ("EnvelopeRequest", "RequestPrincipal"): _principal,
    ("SaslAuthenticateRequest", "AuthBytes"): sasl.client,
    ("SaslAuthenticateResponse", "AuthBytes"): sasl.server,
}


SPENDERS = (_records, _snapshot)  # openers that decompress much


def open_payloads(span: Span, data: bytes, name: str, budget: Budget | None = None) -> Span:
    """The tree of a frame or a message, with the fields of message `name` opened; offsets count in data. budget: what
    all of them may decompress to; one for a frame, unless more is kept."""
    wanted = _wanted(name)
    spent = budget or Budget()
    wanted = {
        field: partial(opener, budget=spent) if opener in SPENDERS else opener for field, opener in wanted.items()
    }
    return _open(span, data, wanted, ()) if wanted else span


def _wanted(name: str) -> dict[str, Opener]:
    return {field: opener for (message, field), opener in OPENERS.items() if message == name}


def _open(span: Span, data: bytes, wanted: dict[str, Opener], around: tuple[Span, ...]) -> Span:
    if span.buffer is not None:
        return span
    if not span.children:
        opener = wanted.get(span.name) if span.slot else None
        if opener is None or not isinstance(span.value, bytes) or not span.value:
            return span
        return opener(span, data, around)
    inside = around if span.type in (TAG, TAGGED) else (span, *around)
    children = tuple(_open(child, data, wanted, inside) for child in span.children)
    changed = any(new is not old for new, old in zip(children, span.children, strict=True))
    return span._replace(children=children) if changed else span
