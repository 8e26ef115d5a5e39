"""AssignmentInfo: every version as the Java class writes it, where it is opened, and what is none."""

from __future__ import annotations

import random
from struct import pack
from typing import Any

import pytest
from spans import gap
from vectors import damaged

import kwire
from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.span import Span
from kwire.codec.span import opened as plain
from kwire.payloads import streams
from kwire.payloads.open import open_payloads
from kwire.payloads.streams import assignment_info

# AssignmentInfo.encode() of kafka-streams 4.3.1, run in a Java program with its jar. EMPTY: new AssignmentInfo(v, 11).
# FULL: active 0_0 and 0_1, standby 1_2 of in-2 and b-2, standby 1_3 of none; h1:80 has in-0, b-0 and in-1, and a host
# whose name is an h, an o with two dots and a NUL, port 81, has none; h1:80 is standby for in-2; error code 4, next
# rebalance at 1767225600000. From version 10 on, 0_1 and 1_2 are of the named topology "top".
EMPTY = {
    1: "000000010000000000000000",
    2: "00000002000000000000000000000000",
    3: "000000030000000b000000000000000000000000",
    4: "000000040000000b00000000000000000000000000000000",
    5: "000000050000000b0000000000000000000000000000000000000000",
    6: "000000060000000b000000000000000000000000000000000000000000000000",
    7: "000000070000000b0000000000000000000000000000000000000000000000007fffffffffffffff",
    8: "000000080000000b0000000000000000000000000000000000000000000000007fffffffffffffff",
    9: "000000090000000b0000000000000000000000000000000000000000000000007fffffffffffffff",
    10: "0000000a0000000b0000000000000000000000000000000000000000000000007fffffffffffffff",
    11: "0000000b0000000b0000000000000000000000000000000000000000000000007fffffffffffffff",
}
FULL = {
    1: (
        "000000010000000200000000000000000000000000000001000000020000000100000002000000020002696e00000002"
        "00016200000002000000010000000300000000"
    ),
    2: (
        "000000020000000200000000000000000000000000000001000000020000000100000002000000020002696e00000002"
        "00016200000002000000010000000300000000000000020002683100000050000000030002696e000000000001620000"
        "00000002696e00000001000568c3b6c0800000005100000000"
    ),
    3: (
        "000000030000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "0000000200016200000002000000010000000300000000000000020002683100000050000000030002696e0000000000"
        "0162000000000002696e00000001000568c3b6c0800000005100000000"
    ),
    4: (
        "000000040000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "0000000200016200000002000000010000000300000000000000020002683100000050000000030002696e0000000000"
        "0162000000000002696e00000001000568c3b6c080000000510000000000000004"
    ),
    5: (
        "000000050000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "00000002000162000000020000000100000003000000000000000200000000000162000000010002696e000000020002"
        "68310000005000000003000000010000000000000000000000000000000100000001000568c3b6c08000000051000000"
        "0000000004"
    ),
    6: (
        "000000060000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "00000002000162000000020000000100000003000000000000000200000000000162000000010002696e000000020002"
        "68310000005000000003000000010000000000000000000000000000000100000001000568c3b6c08000000051000000"
        "0000000001000268310000005000000001000000010000000200000004"
    ),
    7: (
        "000000070000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "00000002000162000000020000000100000003000000000000000200000000000162000000010002696e000000020002"
        "68310000005000000003000000010000000000000000000000000000000100000001000568c3b6c08000000051000000"
        "00000000010002683100000050000000010000000100000002000000040000019b76daa800"
    ),
    8: (
        "000000080000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "00000002000162000000020000000100000003000000000000000200000000000162000000010002696e000000020002"
        "68310000005000000003000000010000000000000000000000000000000100000001000568c3b6c08000000051000000"
        "00000000010002683100000050000000010000000100000002000000040000019b76daa800"
    ),
    9: (
        "000000090000000b0000000200000000000000000000000000000001000000020000000100000002000000020002696e"
        "00000002000162000000020000000100000003000000000000000200000000000162000000010002696e000000020002"
        "68310000005000000003000000010000000000000000000000000000000100000001000568c3b6c08000000051000000"
        "00000000010002683100000050000000010000000100000002000000040000019b76daa800"
    ),
    10: (
        "0000000a0000000b000000020000000000000000000000000000000000000001000000030074006f0070000000020000"
        "000100000002000000030074006f0070000000020002696e000000020001620000000200000001000000030000000000"
        "0000000000000200000000000162000000010002696e0000000200026831000000500000000300000001000000000000"
        "0000000000000000000100000001000568c3b6c080000000510000000000000001000268310000005000000001000000"
        "0100000002000000040000019b76daa800"
    ),
    11: (
        "0000000b0000000b000000020000000000000000000000000000000000000001000000030074006f0070000000020000"
        "000100000002000000030074006f0070000000020002696e000000020001620000000200000001000000030000000000"
        "0000000000000200000000000162000000010002696e0000000200026831000000500000000300000001000000000000"
        "0000000000000000000100000001000568c3b6c080000000510000000000000001000268310000005000000001000000"
        "0100000002000000040000019b76daa800"
    ),
}
WIRES = [*EMPTY.values(), *FULL.values()]


def read(wire: bytes, before: bytes = b"") -> Span:
    """The user data, with bytes in front of it, and one behind."""
    data = before + wire + b"x"
    return assignment_info(Span("UserData", "bytes", 0, len(data) - 1, wire), data)


def task(subtopology: int, partition: int, topology: str | None) -> dict[str, Any]:
    named = {} if topology is None else {"NamedTopology": topology}
    return {"Subtopology": subtopology, "Partition": partition, **named}


@pytest.mark.parametrize("version", FULL)
def test_every_version(version: int) -> None:
    span = read(bytes.fromhex(FULL[version]), b"len:")
    assert gap([span], span.start, span.end) is None
    assert span.start == 0
    assert span.own_end == 4
    assert (span.text, span.note) == (f"AssignmentInfo v{version}", None)
    top, none = ("top", "") if version >= 10 else (None, None)

    def held(*partitions: tuple[str, int]) -> list[dict[str, Any]]:
        if version < 5:
            return [{"Topic": topic, "Partition": number} for topic, number in partitions]
        return [{"TopicIndex": ["b", "in"].index(topic), "Partition": number} for topic, number in partitions]

    expected: dict[str, Any] = {"_type": f"AssignmentInfo v{version}", "Version": version}
    if version >= 3:
        expected["CommonlySupportedVersion"] = 11
    expected["ActiveTasks"] = [task(0, 0, none), task(0, 1, top)]
    expected["StandbyTasks"] = [
        {**task(1, 2, top), "Partitions": [{"Topic": "in", "Partition": 2}, {"Topic": "b", "Partition": 2}]},
        {**task(1, 3, none), "Partitions": []},
    ]
    if version >= 5:
        expected["TopicDictionary"] = [{"Index": 0, "Topic": "b"}, {"Index": 1, "Topic": "in"}]
    if version >= 2:
        expected["PartitionsByHost"] = [
            {"Host": "h1", "Port": 80, "Partitions": held(("in", 0), ("b", 0), ("in", 1))},
            {"Host": "h\u00f6\0", "Port": 81, "Partitions": []},
        ]
    if version >= 6:
        expected["StandbyPartitionsByHost"] = [{"Host": "h1", "Port": 80, "Partitions": held(("in", 2))}]
    if version >= 4:
        expected["ErrorCode"] = 4
    if version >= 7:
        expected["NextRebalanceMs"] = 1767225600000
    assert plain(span) == expected
    assert list(expected)[1:] == [child.name for child in span.children]


@pytest.mark.parametrize("version", EMPTY)
def test_empty(version: int) -> None:
    span = read(bytes.fromhex(EMPTY[version]))
    assert gap([span], span.start, span.end) is None
    assert (span.text, span.note) == (f"AssignmentInfo v{version}", None)
    assert {child.value for child in span.children if child.type == "array"} == {0}
    if version >= 7:
        assert [child.text for child in span.children[-2:]] == ["NONE", "none"]


def test_what_values_mean() -> None:
    span = read(bytes.fromhex(FULL[11]))
    texts = {path: one.text for path, one in span.walk() if one.text}
    assert texts == {
        "ActiveTasks[0]": "task 0_0",
        "ActiveTasks[1]": "task top__0_1",
        "StandbyTasks[0]": "task top__1_2",
        "StandbyTasks[0].Partitions[0]": "in-2",
        "StandbyTasks[0].Partitions[1]": "b-2",
        "StandbyTasks[1]": "task 1_3",
        "PartitionsByHost[0]": "h1:80",
        "PartitionsByHost[0].Partitions[0]": "in-0",
        "PartitionsByHost[0].Partitions[0].TopicIndex": "in",
        "PartitionsByHost[0].Partitions[1]": "b-0",
        "PartitionsByHost[0].Partitions[1].TopicIndex": "b",
        "PartitionsByHost[0].Partitions[2]": "in-1",
        "PartitionsByHost[0].Partitions[2].TopicIndex": "in",
        "PartitionsByHost[1]": "h\u00f6\0:81",
        "StandbyPartitionsByHost[0]": "h1:80",
        "StandbyPartitionsByHost[0].Partitions[0]": "in-2",
        "StandbyPartitionsByHost[0].Partitions[0].TopicIndex": "in",
        "ErrorCode": "SHUTDOWN_REQUESTED",
        "NextRebalanceMs": "2026-01-01 00:00:00.000Z",
    }


HOST = pack(">iiiii", 5, 11, 0, 0, 0)  # version 5 up to the count of hosts


def test_a_topic_that_the_dictionary_lacks() -> None:
    span = read(HOST + pack(">iH1siiiii", 1, 1, b"h", 80, 1, 7, 0, 0))
    assert [(one.name, one.value, one.note) for one in span.below() if one.note] == [
        ("TopicIndex", 7, "not in the dictionary")
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"a\xc0\x80", "a\0"),
        (b"\xed\xa0\xbd\xed\xb8\x80", "\U0001f600"),  # Java's pair of surrogates
        (b"\xed\xa0\xbd", "\ufffd"),
        (b"\xf0\x9f\x98\x80", None),  # which Java does not read
        (b"\xff", None),
        (b"\xc3", None),
    ],
)
def test_java_s_texts(name: bytes, text: str | None) -> None:
    span = read(HOST + pack(">iH", 1, len(name)) + name + pack(">iii", 80, 0, 0))
    hosts = [one.value for one in span.below() if one.name == "Host"]
    assert hosts == ([] if text is None else [text])


# ---------------------------------------------------------------- what is none


NONE = "not AssignmentInfo"


@pytest.mark.parametrize(
    "wire",
    [
        b"abc",
        pack(">iii", 0, 0, 0),
        pack(">iii", 12, 0, 0),
        pack(">iii", -1, 0, 0),
        pack(">iii", 1, -1, 0),
        pack(">iii", 1, 2**31 - 1, 0),
        pack(">iii", 1, 0, 2**31 - 1),
        pack(">iiiiiii", 11, 11, 1, 0, 0, -1, 0),
        pack(">iiiiiii", 11, 11, 1, 0, 0, 2**31 - 1, 0),
    ],
)
def test_what_is_none_stays_as_it_was(wire: bytes) -> None:
    assert read(wire) == Span("UserData", "bytes", 0, len(wire), wire, (), NONE)


@pytest.mark.parametrize("wire", WIRES)
def test_prefixes_and_bytes_behind_are_none(wire: str) -> None:
    raw = bytes.fromhex(wire)
    for size in range(1, len(raw)):
        span = read(raw[:size])
        assert (span.children, span.text, span.note) == ((), None, NONE)
    assert read(raw + b"\0").note == NONE


@pytest.mark.parametrize("wire", WIRES)
def test_mutations_never_raise(wire: str) -> None:
    rng = random.Random(wire)
    for _ in range(300):
        span = read(damaged(bytes.fromhex(wire), rng), b"....")
        assert bool(span.children) != (span.note == NONE)
        assert gap([span], span.start, span.end) is None


def test_too_many_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_SPANS", 1000)
    count = 500
    span = read(pack(">ii", 1, count) + bytes(8 * count + 4))
    assert (span.children, span.note) == ((), "AssignmentInfo not opened: over 1,000 spans")


# ---------------------------------------------------------------- in a frame


def user_data(message: str, version: int, data: bytes, around: dict[str, Any]) -> Span:
    assignment = b"\0\1" + kwire.encode("ConsumerProtocolAssignment", 1, {"UserData": data})
    if message == "SyncGroupRequest":
        body = around | {"Assignments": [{"MemberId": "m", "Assignment": assignment}]}
    elif message == "DescribeGroupsResponse":
        body = {"Groups": [around | {"Members": [{"MemberAssignment": assignment}]}]}
    elif message == "GroupMetadataValue":
        body = around | {"Members": [{"Assignment": assignment}]}
    else:
        body = around | {"Assignment": assignment}
    raw = kwire.encode(message, version, body)
    tree = open_payloads(annotate(builtin_library().plan(message, version), raw), raw, message)
    assert gap([tree], 0, len(raw)) is None
    return next(span for span in tree.below() if span.name == "UserData")


STREAM = {"ProtocolType": "consumer", "ProtocolName": "stream"}


@pytest.mark.parametrize(
    ("message", "version", "around"),
    [
        ("SyncGroupResponse", 5, STREAM),
        ("SyncGroupResponse", 3, {}),
        ("SyncGroupResponse", 5, {"ProtocolType": None, "ProtocolName": None}),
        ("SyncGroupRequest", 5, STREAM),
        ("SyncGroupRequest", 3, {}),
        ("DescribeGroupsResponse", 5, {"ProtocolType": "consumer", "ProtocolData": "stream"}),
        ("GroupMetadataValue", 3, {"ProtocolType": "consumer", "Protocol": "stream"}),
    ],
)
def test_in_every_message_with_assignments(message: str, version: int, around: dict[str, Any]) -> None:
    span = user_data(message, version, bytes.fromhex(FULL[11]), around)
    assert (span.text, span.note) == ("AssignmentInfo v11", None)


def test_another_assignor_s_user_data_stays_as_it_is() -> None:
    span = user_data("SyncGroupResponse", 5, bytes.fromhex(FULL[11]), STREAM | {"ProtocolName": "range"})
    assert (span.text, span.note, span.children) == (None, None, ())


@pytest.mark.parametrize(("version", "around", "note"), [(5, STREAM, NONE), (3, {}, None)])
def test_only_what_is_said_to_be_streams_gets_a_note(version: int, around: dict[str, Any], note: str | None) -> None:
    span = user_data("SyncGroupResponse", version, b"garbage", around)
    assert (span.text, span.note, span.children) == (None, note, ())


def test_no_user_data() -> None:
    span = user_data("SyncGroupResponse", 5, b"", STREAM)
    assert (span.text, span.note, span.children) == (None, None, ())
