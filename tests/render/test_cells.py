"""Cells: a value with its meaning, a type with its size, bytes in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.codec.secrets import conceal
from kwire.codec.span import Span
from kwire.render.cells import duration, hex_bytes, scalar, type_cell, value_cell
from kwire.schema.registry import builtin


def _span(name: str, version: int, message: Mapping[str, Any], path: str, secrets: bool = True) -> Span:
    tree = kwire.annotate(name, version, kwire.encode(name, version, dict(message)))
    if not secrets:
        tree = conceal(tree, builtin().message(name))
    return next(span for here, span in tree.walk() if here == path and span.type != "tag")


@pytest.mark.parametrize(
    ("name", "version", "message", "path", "text", "style"),
    [
        ("HeartbeatResponse", 4, {}, "ErrorCode", "0 NONE", "dim"),
        ("HeartbeatResponse", 4, {"ErrorCode": 27}, "ErrorCode", "27 REBALANCE_IN_PROGRESS", "error"),
        ("HeartbeatResponse", 4, {"ErrorCode": 999}, "ErrorCode", "999 (no error code that kwire knows)", "error"),
        ("HeartbeatResponse", 4, {"ThrottleTimeMs": 999}, "ThrottleTimeMs", "999", "value"),
        ("HeartbeatResponse", 4, {"ThrottleTimeMs": 1500}, "ThrottleTimeMs", "1500 · 1.5 s", "value"),
        ("FetchRequest", 12, {"IsolationLevel": 1}, "IsolationLevel", "1 READ_COMMITTED", "value"),
        ("FetchRequest", 12, {"IsolationLevel": 9}, "IsolationLevel", "9", "value"),
        ("FetchRequest", 12, {"Topics": []}, "Topics", "empty", "dim"),
        ("FetchRequest", 12, {"Topics": [{}]}, "Topics", "1 element", "dim"),
        ("FetchRequest", 12, {"Topics": [{}, {}]}, "Topics", "2 elements", "dim"),
        ("FetchRequest", 12, {"Topics": [{}]}, "Topics[0]", "3 bytes", "dim"),
        ("FetchRequest", 12, {"RackId": 'a\x1b"b'}, "RackId", '"a\\x1b\\"b"', "value"),
        ("MetadataRequest", 9, {"Topics": None}, "Topics", "null", "dim"),
        ("MetadataRequest", 12, {"Topics": [{}]}, "Topics[0].TopicId", "zero uuid", "dim"),
        (
            "MetadataRequest",
            12,
            {"Topics": [{"TopicId": UUID(int=1)}]},
            "Topics[0].TopicId",
            "AAAAAAAAAAAAAAAAAAAAAQ",
            "value",
        ),
        ("JoinGroupResponse", 9, {"SkipAssignment": True}, "SkipAssignment", "true", "value"),
        ("SyncGroupResponse", 3, {"Assignment": b""}, "Assignment", "empty", "value"),
        ("SyncGroupResponse", 3, {"Assignment": b"\x00\xff"}, "Assignment", "2 bytes", "value"),
        ("SyncGroupResponse", 3, {"Assignment": b"text"}, "Assignment", '4 bytes "text"', "value"),
        (
            "StopReplicaRequest",
            1,
            {"Topics": [{"PartitionIndexes": [1, 2]}]},
            "Topics[0].PartitionIndexes",
            "[1, 2]",
            "value",
        ),
        ("StopReplicaRequest", 1, {"Topics": [{}]}, "Topics[0].PartitionIndexes", "empty", "dim"),
        ("ApiVersionsResponse", 3, {"ApiKeys": [{"ApiKey": 12}]}, "ApiKeys[0].ApiKey", "12 Heartbeat", "value"),
        ("ApiVersionsResponse", 3, {"ApiKeys": [{"ApiKey": 999}]}, "ApiKeys[0].ApiKey", "999", "value"),
        (
            "DescribeClientQuotasResponse",
            1,
            {"Entries": [{"Values": [{"Value": 0.5}]}]},
            "Entries[0].Values[0].Value",
            "0.5",
            "value",
        ),
    ],
)
def test_values(name: str, version: int, message: Mapping[str, Any], path: str, text: str, style: str) -> None:
    assert value_cell(_span(name, version, message, path)) == (text, style)


def test_times_are_shown_as_dates() -> None:
    message = {"Topics": [{"Partitions": [{"Timestamp": 1767225600000}]}]}
    span = _span("ListOffsetsRequest", 5, message, "Topics[0].Partitions[0].Timestamp")
    assert value_cell(span) == ("1767225600000 · 2026-01-01 00:00:00.000Z", "value")


def test_long_bytes_that_are_text_are_previewed() -> None:
    text, _ = value_cell(_span("SyncGroupResponse", 3, {"Assignment": b"x" * 5000}, "Assignment"))
    assert text == '5,000 bytes "' + "x" * 160 + '"…'


def test_secrets_are_withheld() -> None:
    span = _span("SaslAuthenticateRequest", 2, {"AuthBytes": b"secret"}, "AuthBytes", secrets=False)
    assert value_cell(span) == ("withheld (6 bytes; --show-secrets)", "note")


def test_what_a_span_says_of_itself_is_cleaned() -> None:
    assert value_cell(Span("Metadata", "bytes", 0, 4, b"", text="of type \x1b[31m")) == (
        "empty · of type \\x1b[31m",
        "value",
    )


def test_tags_and_what_is_unread() -> None:
    flexible = kwire.annotate("HeartbeatResponse", 4, bytes(6) + b"\x01\x07\x02ab")
    tagged = flexible.children[-1]
    assert (value_cell(tagged), type_cell(tagged)) == (("1 field", "dim"), "var · 1B")
    assert (value_cell(tagged.children[0]), type_cell(tagged.children[0])) == (('2 bytes "ab"', "value"), "tag")
    broken = kwire.annotate("HeartbeatResponse", 4, bytes(5)).children[-1]
    assert (value_cell(broken), type_cell(broken)) == (("", "error"), "undecoded · 1B")


@pytest.mark.parametrize(
    ("name", "version", "path", "text"),
    [
        ("HeartbeatRequest", 4, "GenerationId", "int32 · 4B"),
        ("HeartbeatRequest", 4, "GroupId", "string (compact)"),
        ("HeartbeatRequest", 4, "GroupInstanceId", "string? (compact)"),
        ("HeartbeatRequest", 3, "GroupInstanceId", "string?"),
        ("MetadataRequest", 12, "Topics", "array?"),
        ("MetadataRequest", 12, "Topics[0]", "struct"),
        ("MetadataRequest", 12, "Topics[0].TopicId", "uuid · 16B"),
        ("StopReplicaRequest", 1, "Topics[0].PartitionIndexes", "[]int32"),
        ("DescribeGroupsRequest", 5, "Groups", "[]string"),
        ("DescribeGroupsRequest", 5, "Groups[0]", "string (compact)"),
        ("JoinGroupResponse", 9, "SkipAssignment", "bool · 1B"),
        ("SyncGroupResponse", 5, "Assignment", "bytes (compact)"),
    ],
)
def test_types(name: str, version: int, path: str, text: str) -> None:
    message: dict[str, Any] = {"Topics": [{}]} if "Topics" in path else {"Groups": ["g"]} if "Groups" in path else {}
    assert type_cell(_span(name, version, message, path)) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (999, "999 ms"),
        (1000, "1 s"),
        (1234, "1.23 s"),
        (90_000, "90 s"),
        (120_000, "2 min"),
        (270_000, "4.5 min"),
        (7_200_000, "2 h"),
        (86_400_000, "24 h"),
        (604_800_000, "7 d"),
    ],
)
def test_durations(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_scalars_without_a_plan() -> None:
    assert [scalar(value, None)[0] for value in (7, "x", 1.5, True, b"ab")] == [
        "7",
        '"x"',
        "1.5",
        "true",
        '2 bytes "ab"',
    ]


def test_bytes_in_pairs() -> None:
    assert hex_bytes(b"\x00\x1b\xff", 1, 3) == "1b ff"
    assert hex_bytes(b"\x00\x1b\xff", 1, 3, hidden=True) == "·· ··"
