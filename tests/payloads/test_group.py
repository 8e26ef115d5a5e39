"""Subscriptions and assignments: every version, Connect, user data of assignors, and what is neither."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack
from typing import Any

import pytest
from spans import gap
from vectors import jsonl

import kwire
from kwire.codec.annotate import annotate
from kwire.codec.frames import decode_frame
from kwire.codec.library import builtin_library
from kwire.codec.span import Span, fields
from kwire.payloads.open import open_payloads


def vectors(name: str) -> list[dict[str, Any]]:
    return [row for row in jsonl("vectors/data") if row["name"] == name]


def find(span: Span, name: str) -> Iterator[Span]:
    return (one for one in span.below() if one.name == name)


def opened(message: str, version: int, body: dict[str, Any], field: str) -> Span:
    """The named field of a message, as open_payloads leaves it."""
    raw = kwire.encode(message, version, body)
    tree = open_payloads(annotate(builtin_library().plan(message, version), raw), raw, message)
    assert gap([tree], 0, len(raw)) is None
    return next(find(tree, field))


def joined(metadata: bytes, protocol_type: str = "consumer", assignor: str = "range") -> Span:
    """The Metadata of a JoinGroup request."""
    body = {"ProtocolType": protocol_type, "Protocols": [{"Name": assignor, "Metadata": metadata}]}
    return opened("JoinGroupRequest", 5, body, "Metadata")


def shared(assignment: bytes, protocol_type: str | None = "consumer") -> Span:
    """The Assignment of a SyncGroup response, which names the protocol type from version 5 on."""
    body = {"ProtocolType": protocol_type, "ProtocolName": "range", "Assignment": assignment}
    return opened("SyncGroupResponse", 5, body, "Assignment")


def values(span: Span) -> dict[str, Any]:
    """The fields of the message inside, without the version in front."""
    return {name: value for name, value in fields(span).items() if name != "version"}


# ---------------------------------------------------------------- consumers


@pytest.mark.parametrize("row", vectors("ConsumerProtocolSubscription"), ids=lambda row: f"v{row['version']}")
def test_official_subscriptions(row: dict[str, Any]) -> None:
    span = joined(bytes.fromhex(row["wire"]))
    assert (span.text, span.note) == (f"ConsumerProtocolSubscription v{row['version']}", None)
    codec = builtin_library().codec(row["name"], row["version"])
    assert values(span) == codec.decode(bytes.fromhex(row["hex"]))


@pytest.mark.parametrize("row", vectors("ConsumerProtocolAssignment"), ids=lambda row: f"v{row['version']}")
def test_official_assignments(row: dict[str, Any]) -> None:
    span = shared(bytes.fromhex(row["wire"]))
    assert (span.text, span.note) == (f"ConsumerProtocolAssignment v{row['version']}", None)
    codec = builtin_library().codec(row["name"], row["version"])
    assert values(span) == codec.decode(bytes.fromhex(row["hex"]))


SUBSCRIPTION = kwire.encode("ConsumerProtocolSubscription", 3, {"Topics": ["orders"], "RackId": "a"})
ASSIGNMENT = kwire.encode("ConsumerProtocolAssignment", 3, {"AssignedPartitions": [{"Topic": "t", "Partitions": [1]}]})


@pytest.mark.parametrize("version", [4, 9, 32767])
def test_a_newer_version_is_read_as_the_newest_known(version: int) -> None:
    span = joined(pack(">h", version) + SUBSCRIPTION)
    assert span.text == f"ConsumerProtocolSubscription v{version}, read as v3"
    assert values(span)["Topics"] == ["orders"]
    assert span.children[0].value == version
    assert shared(pack(">h", version) + ASSIGNMENT).text == f"ConsumerProtocolAssignment v{version}, read as v3"


@pytest.mark.parametrize(
    ("message", "version", "body", "field"),
    [
        ("JoinGroupResponse", 5, {"Members": [{"Metadata": b"\0\3" + SUBSCRIPTION}]}, "Metadata"),
        ("SyncGroupRequest", 3, {"Assignments": [{"Assignment": b"\0\3" + ASSIGNMENT}]}, "Assignment"),
        ("SyncGroupResponse", 3, {"Assignment": b"\0\3" + ASSIGNMENT}, "Assignment"),
        (
            "DescribeGroupsResponse",
            5,
            {"Groups": [{"ProtocolType": "consumer", "Members": [{"MemberMetadata": b"\0\3" + SUBSCRIPTION}]}]},
            "MemberMetadata",
        ),
        (
            "DescribeGroupsResponse",
            5,
            {"Groups": [{"ProtocolType": "consumer", "Members": [{"MemberAssignment": b"\0\3" + ASSIGNMENT}]}]},
            "MemberAssignment",
        ),
        (
            "GroupMetadataValue",
            3,
            {"ProtocolType": "consumer", "Members": [{"Subscription": b"\0\3" + SUBSCRIPTION}]},
            "Subscription",
        ),
        (
            "GroupMetadataValue",
            3,
            {"ProtocolType": "consumer", "Members": [{"Assignment": b"\0\3" + ASSIGNMENT}]},
            "Assignment",
        ),
    ],
)
def test_every_field_that_holds_them(message: str, version: int, body: dict[str, Any], field: str) -> None:
    span = opened(message, version, body, field)
    what = "Assignment" if "Assignment" in field else "Subscription"
    assert (span.text, span.note) == (f"ConsumerProtocol{what} v3", None)


def test_real_groups_are_opened_without_a_note() -> None:
    rows = [row for row in jsonl("frames/real") if row["name"].startswith(("JoinGroup", "SyncGroup"))]
    texts: list[str | None] = []
    for row in rows:
        raw, name = bytes.fromhex(row["hex"]), row["name"]
        response = {"api": name.removesuffix("Response"), "version": row["version"]}
        frame = decode_frame(raw, **(response if name.endswith("Response") else {}))
        tree = open_payloads(frame.span, raw, name)
        assert gap([tree], 0, len(raw)) is None
        assert [span.note for span in tree.below() if span.note] == []
        texts += [span.text for span in tree.below() if span.name in ("Metadata", "Assignment") and span.value]
    assert len(texts) >= 10
    assert {str(text).split(" ")[0] for text in texts} == {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}


# ---------------------------------------------------------------- user data


def with_user_data(data: bytes) -> bytes:
    return b"\0\1" + kwire.encode("ConsumerProtocolSubscription", 1, {"Topics": ["orders"], "UserData": data})


CLAIM = {"PreviousAssignment": [{"Topic": "orders", "Partitions": [0, 2]}]}
STREAMS = kwire.encode("SubscriptionInfoData", 11, {"Version": 11, "LatestSupportedVersion": 11})


@pytest.mark.parametrize(
    ("assignor", "data", "text", "expected"),
    [
        ("sticky", kwire.encode("StickyAssignorUserData", 0, CLAIM), "StickyAssignorUserData v0", CLAIM),
        (
            "sticky",
            kwire.encode("StickyAssignorUserData", 1, CLAIM | {"Generation": 4}),
            "StickyAssignorUserData v1",
            CLAIM | {"Generation": 4},
        ),
        ("cooperative-sticky", pack(">i", 7), "CooperativeStickyUserData v0", {"Generation": 7}),
        ("stream", STREAMS, "SubscriptionInfoData v11", kwire.decode("SubscriptionInfoData", 11, STREAMS)),
        ("range", pack(">i", 7), None, {}),  # an assignor that has none
        ("sticky", b"garbage", None, {}),
        ("stream", b"abc", None, {}),
    ],
)
def test_user_data_belongs_to_the_assignor(assignor: str, data: bytes, text: str | None, expected: object) -> None:
    span = next(find(joined(with_user_data(data), assignor=assignor), "UserData"))
    assert span.value == data
    assert (span.text, values(span)) == (text, expected)


def test_user_data_of_an_unknown_streams_version_has_a_note() -> None:
    span = next(find(joined(with_user_data(pack(">ii", 99, 11)), assignor="stream"), "UserData"))
    assert (span.children, span.note) == ((), "SubscriptionInfoData has versions 1-11, not 99")


# ---------------------------------------------------------------- Connect


def text(value: str) -> bytes:
    return pack(">h", len(value)) + value.encode()


# ConnectProtocol's own form: assignment v0 and v1 written by hand, as there is no official schema for them
TASKS = pack(">i", 1) + text("sink") + pack(">iii", 2, -1, 0)
CONNECT_0 = pack(">hh", 0, 0) + text("worker-1") + text("http://one:8083/") + pack(">q", 5) + TASKS
CONNECT_1 = pack(">h", 1) + CONNECT_0[2:] + TASKS + pack(">i", 300000)
WORKER_0 = pack(">h", 0) + text("http://two:8083/") + pack(">q", 5)
ASSIGNED = [{"Connector": "sink", "Tasks": [-1, 0]}]


def test_connect_s_eager_protocol() -> None:
    span = joined(WORKER_0, "connect", "default")
    assert (span.text, span.note) == ("ConnectProtocolSubscription v0", None)
    assert values(span) == {"Url": "http://two:8083/", "ConfigOffset": 5}
    span = shared(CONNECT_0, "connect")
    assert (span.text, span.note) == ("ConnectProtocolAssignment v0", None)
    assert values(span) == {
        "Error": 0, "Leader": "worker-1", "LeaderUrl": "http://one:8083/", "ConfigOffset": 5, "Assigned": ASSIGNED,
    }  # fmt: skip


@pytest.mark.parametrize(("version", "assignor"), [(1, "compatible"), (2, "sessioned")])
def test_connect_s_compatible_protocol_holds_an_assignment_in_the_subscription(version: int, assignor: str) -> None:
    metadata = pack(">h", version) + WORKER_0[2:] + pack(">i", len(CONNECT_1)) + CONNECT_1
    span = joined(metadata, "connect", assignor)
    assert (span.text, span.note) == (f"ConnectProtocolSubscription v{version}", None)
    allocation = next(find(span, "Allocation"))
    assert (allocation.text, allocation.note) == ("ConnectProtocolAssignment v1", None)
    assert (values(allocation)["Revoked"], values(allocation)["Delay"]) == (ASSIGNED, 300000)


def test_connect_without_an_allocation() -> None:
    span = joined(pack(">h", 1) + WORKER_0[2:] + pack(">i", -1), "connect", "compatible")
    assert (span.note, values(span)["Allocation"]) == (None, None)


# ---------------------------------------------------------------- what is none of these


def test_an_unknown_protocol_type_is_named_and_its_bytes_stay() -> None:
    for span in (joined(b"\0\3" + SUBSCRIPTION, "beam"), shared(b"\0\3" + ASSIGNMENT, "beam")):
        assert (span.text, span.note, span.children) == ("of protocol type beam", None, ())


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"\0", "too short for ConsumerProtocolSubscription"),
        (b"\xff\xff" + SUBSCRIPTION, "ConsumerProtocolSubscription has versions 0-3, not -1"),
        (
            b"\0\3" + SUBSCRIPTION + b"x",
            "not ConsumerProtocolSubscription v3: 1 byte left over behind the message",
        ),
        (b"garbage", "not ConsumerProtocolSubscription v3: needs "),  # version 0x6761, read as the newest
        (b"\0\3garbage", "not ConsumerProtocolSubscription v3: "),
    ],
)
def test_garbage_stays_bytes_with_a_note(data: bytes, note: str) -> None:
    span = joined(data)
    assert (span.value, span.children, span.text) == (data, (), None)
    assert str(span.note).startswith(note)


def test_garbage_that_nobody_called_a_consumer_s_has_no_note() -> None:
    span = opened("SyncGroupResponse", 3, {"Assignment": b"garbage"}, "Assignment")
    assert (span.value, span.children, span.note, span.text) == (b"garbage", (), None, None)


@pytest.mark.parametrize("whole", [b"\0\3" + SUBSCRIPTION, WORKER_0, CONNECT_1, with_user_data(STREAMS)])
@pytest.mark.parametrize("kind", ["consumer", "connect"])
def test_no_prefix_is_lost(whole: bytes, kind: str) -> None:
    for size in range(1, len(whole)):
        span = joined(whole[:size], kind, "stream")
        assert span.value == whole[:size]
        assert bool(span.children) != bool(span.note)
