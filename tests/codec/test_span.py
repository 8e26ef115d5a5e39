"""Spans: paths, order, what is broken, and the plain values that a tree stands for."""

from __future__ import annotations

import pytest
from vectors import jsonl

from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.span import TAG, TAGGED, UNDECODED, Span, fields, plain

# HeartbeatResponse-like: a header, then a message with an array of structs and a tagged field
TREE = Span("HeartbeatResponse v9", "frame", 0, 20, None, (
    Span("message_size", "int32", 0, 4, 16),
    Span("Response Header v1", "header", 4, 9, None, (
        Span("correlation_id", "int32", 4, 8, 7),
        Span("tagged", TAGGED, 8, 9, 0),
    )),
    Span("HeartbeatResponse v9", "message", 9, 20, None, (
        Span("Topics", "array", 9, 16, 2, (
            Span("[0]", "struct", 10, 13, 1, (Span("Name", "string", 10, 13, "a"),)),
            Span("[1]", "struct", 13, 16, 1, (Span("Name", "string", 13, 16, "b"),)),
        )),
        Span("tagged", TAGGED, 16, 20, 1, (
            Span("Epoch", TAG, 17, 20, 3, (Span("Epoch", "int8", 19, 20, 5),)),
        )),
    )),
))  # fmt: skip
PATHS = [
    "message_size", "", "correlation_id", "", "",
    "Topics", "Topics[0]", "Topics[0].Name", "Topics[1]", "Topics[1].Name", "", "Epoch", "Epoch",
]  # fmt: skip


def test_paths_lead_from_the_message_to_each_field() -> None:
    assert [path for path, _ in TREE.walk()] == PATHS


def test_a_path_may_begin_below() -> None:
    topics = TREE.children[2].children[0]
    assert [path for path, _ in topics.walk("Here")] == ["Here[0]", "Here[0].Name", "Here[1]", "Here[1].Name"]


def test_below_gives_the_same_spans_in_the_same_order() -> None:
    assert list(TREE.below()) == [span for _, span in TREE.walk()]
    assert [span.start for span in TREE.below()] == sorted(span.start for span in TREE.below())


@pytest.mark.parametrize(
    ("span", "own_end"),
    [
        (TREE, 0),
        (TREE.children[0], 4),
        (TREE.children[2].children[0], 10),
        (TREE.children[2].children[1], 17),
        (TREE.children[2].children[1].children[0], 19),
    ],
)
def test_a_spans_own_bytes_end_at_its_first_child(span: Span, own_end: int) -> None:
    assert span.own_end == own_end


def test_the_first_span_that_could_not_be_read_is_found_with_its_path() -> None:
    bad = Span("Name", UNDECODED, 13, 16, None, (), "needs 9 bytes")
    worse = Span("trailing", UNDECODED, 16, 20, None, (), "4 bytes left over")
    one = Span("[0]", "struct", 10, 16, 1, (bad,))
    tree = Span("m", "message", 9, 20, None, (Span("Topics", "array", 9, 16, 2, (one,)), worse))
    assert tree.broken() == ("Topics[0].Name", bad)
    assert bad.broken() == ("", bad)
    assert TREE.broken() is None


# ---------------------------------------------------------------- plain values


@pytest.mark.parametrize("file", ["requests", "responses", "data"])
def test_the_tree_stands_for_the_values_that_the_codec_reads(file: str) -> None:
    library = builtin_library()
    for row in jsonl(f"vectors/{file}"):
        codec, data = library.codec(row["name"], row["version"]), bytes.fromhex(row["hex"])
        assert repr(fields(annotate(codec.plan, data))) == repr(codec.decode(data)), row["name"]


def test_plain_gives_each_span_its_own_value() -> None:
    message = {"Topics": [{"Name": "orders", "PartitionIndexes": [0, 2]}, {"Name": "", "PartitionIndexes": []}]}
    codec = builtin_library().codec("OffsetFetchRequest", 1)
    span = annotate(codec.plan, codec.encode({"GroupId": "g", **message}))
    assert plain(span) == {"GroupId": "g", **message}
    found = {path: plain(part) for path, part in span.walk()}
    assert found == {
        "GroupId": "g",
        "Topics": message["Topics"],
        "Topics[0]": message["Topics"][0],
        "Topics[0].Name": "orders",
        "Topics[0].PartitionIndexes": [0, 2],
        "Topics[1]": message["Topics"][1],
        "Topics[1].Name": "",
        "Topics[1].PartitionIndexes": [],
    }


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ("0361", {}),
        ("0261", {"GroupId": "a"}),
        ("0261000000", {"GroupId": "a"}),
        ("0261 00000007", {"GroupId": "a", "GenerationId": 7}),
        ("0261 00000007 0262 00", {"GroupId": "a", "GenerationId": 7, "MemberId": "b", "GroupInstanceId": None}),
    ],
)  # fmt: skip
def test_what_could_be_read_of_a_broken_message_is_there(raw: str, expected: dict[str, object]) -> None:
    span = annotate(builtin_library().plan("HeartbeatRequest", 4), bytes.fromhex(raw))
    assert span.broken() is not None
    assert fields(span) == expected


def test_elements_that_could_not_be_read_are_absent() -> None:
    library = builtin_library()
    span = annotate(library.plan("ListGroupsResponse", 0), bytes.fromhex("0000 00000002 0001610001620009"))
    assert fields(span) == {"ErrorCode": 0, "Groups": [{"GroupId": "a", "ProtocolType": "b"}, {}]}
    texts = annotate(library.plan("DescribeGroupsRequest", 0), bytes.fromhex("00000003 000161 0005"))
    assert fields(texts) == {"Groups": ["a"]}


def test_tagged_fields_are_present_when_they_are_on_the_wire() -> None:
    codec = builtin_library().codec("FetchRequest", 15)
    sent = {"ClusterId": None, "ReplicaState": {"ReplicaId": 4}, "_tagged": {9: b"\x01\x02", 4000: b""}}
    read = fields(annotate(codec.plan, codec.encode(sent)))
    assert read["ClusterId"] is None
    assert read["ReplicaState"] == {"ReplicaId": 4, "ReplicaEpoch": -1}
    assert read["_tagged"] == {9: b"\x01\x02", 4000: b""}
    assert {"ClusterId", "ReplicaState", "_tagged"}.isdisjoint(fields(annotate(codec.plan, codec.encode({}))))


def test_a_tagged_field_that_could_not_be_read_is_absent() -> None:
    codec = builtin_library().codec("FetchRequest", 15)
    data = codec.encode({})[:-1] + bytes.fromhex("02 000109 0900")
    read = fields(annotate(codec.plan, data))
    assert "ClusterId" not in read
    assert read["_tagged"] == {9: b""}
