"""What members tell each other through the coordinator: subscriptions and assignments.

The coordinator does not read them; the protocol type says who does. Consumers write ConsumerProtocolSubscription and
ConsumerProtocolAssignment, an int16 version in front (Kafka's ConsumerProtocol). A version above those known is read as
the newest known, as clients do, as long as that uses all bytes. Kafka Connect writes its own form (ConnectProtocol).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import error as StructError
from struct import unpack_from

from kwire.codec.span import Span
from kwire.records.annotate import open_message

CONNECT = "connect"


def subscription(span: Span, data: bytes, around: Sequence[Span]) -> Span:
    """A member's metadata: JoinGroup, DescribeGroups, GroupMetadataValue."""
    if _protocol_type(around) == CONNECT:
        return _connect(span, data, "ConnectSubscription")
    return _consumer(span, data, "ConsumerProtocolSubscription", around)


def assignment(span: Span, data: bytes, around: Sequence[Span]) -> Span:
    """A member's assignment: SyncGroup, DescribeGroups, GroupMetadataValue."""
    if _protocol_type(around) == CONNECT:
        return _connect(span, data, "ConnectAssignment")
    return _consumer(span, data, "ConsumerProtocolAssignment", around)


def _protocol_type(around: Sequence[Span]) -> str | None:
    for struct in around:
        for child in struct.children:
            if child.name == "ProtocolType" and isinstance(child.value, str):
                return child.value
    return None


def _consumer(span: Span, data: bytes, name: str, around: Sequence[Span]) -> Span:
    kind = _protocol_type(around)
    if kind not in (None, "consumer"):
        return span._replace(text=f"of protocol type {kind}")
    opened = open_message(span, data, name, prefixed=True)
    if opened.note and kind is None:
        return span  # nobody said that it is a consumer's
    return opened


def _connect(span: Span, data: bytes, name: str) -> Span:
    """version int16, then strings, an int64 and, in assignments, arrays (Kafka's ConnectProtocol, versions 0 to 2)."""
    assert isinstance(span.value, bytes)
    at = span.end - len(span.value)
    spans: list[Span] = []
    try:
        spans.append(Span("version", "int16", at, at + 2, int(unpack_from(">h", data, at)[0])))
        version = spans[0].value
        if name == "ConnectAssignment":
            spans.append(Span("error", "int16", at + 2, at + 4, int(unpack_from(">h", data, at + 2)[0])))
            spans.append(_string(data, spans[-1].end, "leader"))
            spans.append(_string(data, spans[-1].end, "leader_url"))
        else:
            spans.append(_string(data, at + 2, "url"))
        here = spans[-1].end
        spans.append(Span("config_offset", "int64", here, here + 8, int(unpack_from(">q", data, here)[0])))
    except (StructError, ValueError):
        return span._replace(note=f"not {name}")
    if spans[-1].end > span.end:
        return span._replace(note=f"not {name}")
    rest = spans[-1].end
    if rest < span.end:
        spans.append(Span("rest", "bytes", rest, span.end, data[rest : span.end]))
    return span._replace(children=tuple(spans), text=f"{name} v{version}")


def _string(data: bytes, pos: int, name: str) -> Span:
    (size,) = unpack_from(">h", data, pos)
    if size < 0 or pos + 2 + size > len(data):
        raise ValueError
    end = pos + 2 + size
    return Span(name, "string", pos, end, data[pos + 2 : end].decode("utf-8", "surrogateescape"))
