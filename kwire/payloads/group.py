"""What members tell each other through the coordinator: subscriptions and assignments.

The coordinator does not read them; the protocol type says who does. Consumers write ConsumerProtocolSubscription and
ConsumerProtocolAssignment, Connect workers ConnectProtocolSubscription and ConnectProtocolAssignment, an int16 version
in front of each; a version above those known is read as the newest known, as clients do. Inside a consumer's
subscription, user data belongs to the assignor that the protocol is named after; inside an assignment, Kafka Streams
alone has any.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack_from

from kwire.codec.library import builtin_library
from kwire.codec.span import Span
from kwire.payloads.streams import assignment_info
from kwire.records.annotate import open_message

PREFIXES = {"consumer": "ConsumerProtocol", "connect": "ConnectProtocol"}
USER_DATA = {  # by assignor: the message, and the versions to try
    "sticky": ("StickyAssignorUserData", (1, 0)),
    "cooperative-sticky": ("CooperativeStickyUserData", (0,)),
}
STREAMS = "stream"  # Kafka Streams' assignor


def subscription(span: Span, data: bytes, around: Sequence[Span]) -> Span:
    """A member's metadata: JoinGroup, DescribeGroups, GroupMetadataValue."""
    opened = _protocol(span, data, around, "Subscription")
    assignor = _sibling(around[:1], "Name") or _sibling(around, "ProtocolName") or _sibling(around, "Protocol")
    if not opened.children:
        return opened
    return opened._replace(children=tuple(_inner(child, data, assignor) for child in opened.children))


def _inner(span: Span, data: bytes, assignor: str | None) -> Span:
    """A subscription's field, which may hold a message in turn."""
    if span.name == "Allocation" and span.value:
        return _newest(span, data, "ConnectProtocolAssignment")
    if span.name == "UserData" and span.value and assignor:
        return _user_data(span, data, assignor)
    return span


def assignment(span: Span, data: bytes, around: Sequence[Span]) -> Span:
    """A member's assignment: SyncGroup, DescribeGroups, GroupMetadataValue."""
    opened = _protocol(span, data, around, "Assignment")
    if not opened.children or _sibling(around, "ProtocolType") not in (None, "consumer"):
        return opened
    assignor = _sibling(around, "ProtocolName") or _sibling(around, "ProtocolData") or _sibling(around, "Protocol")
    if assignor not in (None, STREAMS):
        return opened
    return opened._replace(children=tuple(_assigned(child, data, assignor) for child in opened.children))


def _assigned(span: Span, data: bytes, assignor: str | None) -> Span:
    """An assignment's field; where nobody named the assignor, user data stays as it is unless it is Streams'."""
    if span.name != "UserData" or not span.value:
        return span
    opened = assignment_info(span, data)
    return span if opened.note and assignor is None else opened


def _protocol(span: Span, data: bytes, around: Sequence[Span], what: str) -> Span:
    kind = _sibling(around, "ProtocolType")
    if kind is not None and kind not in PREFIXES:
        return span._replace(text=f"of protocol type {kind}")
    opened = _newest(span, data, PREFIXES[kind or "consumer"] + what)
    return span if opened.note and kind is None else opened  # nobody said that it is a consumer's


def _newest(span: Span, data: bytes, name: str) -> Span:
    assert isinstance(span.value, bytes)
    newest = builtin_library().message(name).versions.high
    version = int.from_bytes(span.value[:2], signed=True)
    if version <= newest:
        return open_message(span, data, name, prefixed=True)
    opened = open_message(span, data, name, prefixed=True, version=newest)
    return opened._replace(text=f"{name} v{version}, read as v{newest}") if opened.children else opened


def _sibling(around: Sequence[Span], name: str) -> str | None:
    """The text of the field of that name in the nearest struct that has one."""
    for struct in around:
        for child in struct.children:
            if child.name == name and isinstance(child.value, str):
                return child.value
    return None


def _user_data(span: Span, data: bytes, assignor: str) -> Span:
    assert isinstance(span.value, bytes)
    if assignor == STREAMS and len(span.value) >= 4:
        (version,) = unpack_from(">i", span.value)
        return open_message(span, data, "SubscriptionInfoData", prefixed=False, version=version)
    name, versions = USER_DATA.get(assignor, ("", ()))
    for version in versions:
        opened = open_message(span, data, name, prefixed=False, version=version)
        if opened.children:
            return opened
    return span
