"""Opens the fields of a message that hold formats of their own; a table says which field holds what.

An opener gets the field's span, the buffer that its offsets count in, and the spans of the structs around it, innermost
first; it gives the span with children, or as it was. Whatever it does, the outer message is not lost to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwire.codec.span import TAG, TAGGED, Span
from kwire.payloads import group, sasl, topics
from kwire.records.annotate import annotate_records

Opener = Callable[[Span, bytes, Sequence[Span]], Span]


def _records(span: Span, data: bytes, around: Sequence[Span]) -> Span:
    """Batches; of internal topics, their records too."""
    assert isinstance(span.value, bytes)
    start = span.end - len(span.value)
    children = annotate_records(data, start, span.end)
    topic = next((text for struct in around for text in (topic_of(struct),) if text), None)
    if topic in topics.BY_NAME:
        children = topics.open_batches(children, data, topic)
    return span._replace(children=children)


def topic_of(struct: Span) -> str | None:
    """The topic that a struct is about, if it names one."""
    for child in struct.children:
        if child.name in ("Topic", "Name", "TopicName") and isinstance(child.value, str):
            return child.value
    return None


OPENERS: dict[tuple[str, str], Opener] = {
    ("ProduceRequest", "Records"): _records,
    ("FetchResponse", "Records"): _records,
    ("ShareFetchResponse", "Records"): _records,
    ("FetchSnapshotResponse", "UnalignedRecords"): _records,
    ("JoinGroupRequest", "Metadata"): group.subscription,
    ("JoinGroupResponse", "Metadata"): group.subscription,
    ("SyncGroupRequest", "Assignment"): group.assignment,
    ("SyncGroupResponse", "Assignment"): group.assignment,
    ("DescribeGroupsResponse", "MemberMetadata"): group.subscription,
    ("DescribeGroupsResponse", "MemberAssignment"): group.assignment,
    ("ConsumerGroupMemberMetadataValue", "Metadata"): group.subscription,
    ("GroupMetadataValue", "Subscription"): group.subscription,
    ("GroupMetadataValue", "Assignment"): group.assignment,
    ("SaslAuthenticateRequest", "AuthBytes"): sasl.client,
    ("SaslAuthenticateResponse", "AuthBytes"): sasl.server,
}


def open_payloads(span: Span, data: bytes, name: str) -> Span:
    """The tree of a frame or a message, with the fields of message `name` opened; offsets count in data."""
    wanted = {field: opener for (message, field), opener in OPENERS.items() if message == name}
    return _open(span, data, wanted, ()) if wanted else span


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
