"""The annotator: spans tile every official vector, and each oddity and each failure has its own words and place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from vectors import jsonl

import kwire.codec.annotate as module
from kwire.codec.annotate import annotate, decode_error
from kwire.codec.library import builtin_library
from kwire.codec.plan import Plan, compile_plan
from kwire.codec.span import UNDECODED, Span
from kwire.schema.model import NONE, Field, MessageSchema, Versions

ZERO = Versions(0, 0)


def field(text: str, *inner: Field) -> Field:
    """A field from "Name type", with ? behind the type for nullable and a number for its tag."""
    name, kind, *tag = text.split()
    number = int(tag[0]) if tag else None
    return Field(
        name, kind.rstrip("?"), ZERO, nullable=ZERO if kind.endswith("?") else NONE, tagged=ZERO if tag else NONE,
        tag=number, fields=inner,
    )  # fmt: skip


def probe(*fields: Field | str, flexible: bool = False) -> Plan:
    made = tuple(field(one) if isinstance(one, str) else one for one in fields)
    return compile_plan(MessageSchema("Probe", "data", ZERO, ZERO if flexible else NONE, made), 0)


def rows(span: Span) -> list[tuple[Any, ...]]:
    """Path, start, end, value and note of every span; an undecoded one's value is the word."""
    return [
        (path, part.start, part.end, UNDECODED if part.type == UNDECODED else part.value, part.note)
        for path, part in span.walk()
    ]


def named(cases: list[Any]) -> list[str]:
    return [case[0] for case in cases]


def bytes_owned(span: Span) -> Iterator[int]:
    """Every byte that a leaf covers, or that a span has before its first child."""
    yield from range(span.start, span.own_end)
    at = span.own_end
    for child in span.children:
        assert child.start == at, f"{child.name} begins at {child.start}, not at {at}"
        yield from bytes_owned(child)
        at = child.end
    assert at == span.end, f"{span.name} ends at {span.end}, its children at {at}"


# ---------------------------------------------------------------- tiling


@pytest.mark.parametrize("file", ["requests", "responses", "data"])
def test_every_byte_of_every_vector_belongs_to_one_span(file: str) -> None:
    library = builtin_library()
    for row in jsonl(f"vectors/{file}"):
        name, version, data = row["name"], row["version"], bytes.fromhex(row["hex"])
        span = annotate(library.plan(name, version), data)
        assert list(bytes_owned(span)) == list(range(len(data))), f"{name} v{version}"
        assert (span.name, span.type, span.broken()) == (f"{name} v{version}", "message", None)
        assert {part.note for _, part in span.walk()} <= {None, "unknown tag"}, f"{name} v{version}"


def test_offsets_count_from_the_start_of_the_buffer() -> None:
    plan = probe("A int16", "B []int8?")
    span = annotate(plan, bytes.fromhex("eeee0007ffffffffee"), 2, 8)
    assert rows(span) == [("A", 2, 4, 7, None), ("B", 4, 8, None, None)]
    assert (span.start, span.end) == (2, 8)


def test_without_whole_the_tree_ends_where_the_message_does() -> None:
    span = annotate(probe("A int16"), bytes.fromhex("0007eeee"), whole=False)
    assert (span.end, span.broken()) == (2, None)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(form: Any) -> None:
    data = form(bytes.fromhex("000161" + "00" * 15 + "0100000001ee"))
    span = annotate(probe("A string", "B uuid", "C bytes"), data)
    assert [(type(part.value), part.end) for part in span.children] == [(str, 3), (UUID, 19), (bytes, 24)]


# ---------------------------------------------------------------- what is fine, and what is odd but readable

READABLE: list[tuple[str, Plan, str, list[tuple[Any, ...]]]] = [
    ("scalars", probe("A int8", "B bool", "C float64"), "ff013ff8000000000000", [
        ("A", 0, 1, -1, None), ("B", 1, 2, True, None), ("C", 2, 10, 1.5, None)]),
    ("unsigned", probe("A uint16", "B uint32"), "ffffffffffff", [
        ("A", 0, 2, 65535, None), ("B", 2, 6, 2**32 - 1, None)]),
    ("a bool of 2", probe("A bool"), "02", [("A", 0, 1, True, "a bool of 2: neither 0 nor 1, read as true")]),
    ("text", probe("A string", "B string?"), "00026162ffff", [("A", 0, 4, "ab", None), ("B", 4, 6, None, None)]),
    ("compact text", probe("A string", "B string?", flexible=True), "0361620000", [
        ("A", 0, 3, "ab", None), ("B", 3, 4, None, None), ("", 4, 5, 0, None)]),
    ("a length with a spare byte", probe("A string", flexible=True), "8300616200", [
        ("A", 0, 4, "ab", "the length is 1 byte longer than needed"), ("", 4, 5, 0, None)]),
    ("a null with spare bytes", probe("A bytes?", flexible=True), "80800000", [
        ("A", 0, 3, None, "the length is 2 bytes longer than needed"), ("", 3, 4, 0, None)]),
    ("a count with a spare byte", probe("A []int8", flexible=True), "82000500", [
        ("A", 0, 3, [5], "the count is 1 byte longer than needed"), ("", 3, 4, 0, None)]),
    ("a spare byte in the number of tags", probe(flexible=True), "8000", [
        ("", 0, 2, 0, "the number of tagged fields is 1 byte longer than needed")]),
    ("text that is not UTF-8", probe("A string"), "0003c3286f", [("A", 0, 5, "\udcc3(o", "not valid UTF-8")]),
    ("half a surrogate pair", probe("A string"), "0003eda080", [("A", 0, 5, "\udced\udca0\udc80", "not valid UTF-8")]),
    ("both", probe("A string", flexible=True), "8200ff00", [
        ("A", 0, 3, "\udcff", "the length is 1 byte longer than needed; not valid UTF-8"), ("", 3, 4, 0, None)]),
    ("an array of texts", probe("A []string"), "00000002000161 0000", [
        ("A", 0, 9, 2, None), ("A[0]", 4, 7, "a", None), ("A[1]", 7, 9, "", None)]),
    ("numbers in one span", probe("A []int16"), "000000020001ffff", [("A", 0, 8, [1, -1], None)]),
    ("a null array", probe("A []string?"), "ffffffff", [("A", 0, 4, None, None)]),
    ("a struct that is there", probe(field("A B?", field("C int8"))), "0105", [
        ("A", 0, 2, 1, None), ("A.C", 1, 2, 5, None)]),
    ("a struct that is null", probe(field("A B?", field("C int8"))), "ff", [("A", 0, 1, None, None)]),
    ("a null marker of -2", probe(field("A B?", field("C int8"))), "fe", [
        ("A", 0, 1, None, "null marker -2: not -1, read as null")]),
    ("a null marker of 0", probe(field("A B?", field("C int8"))), "0005", [
        ("A", 0, 2, 1, "null marker 0: not 1, read as present"), ("A.C", 1, 2, 5, None)]),
    ("structs of no size", probe(field("A []B")), "00000002eeee", [
        ("A", 0, 4, 2, None), ("A[0]", 4, 4, 0, None), ("A[1]", 4, 4, 0, None),
        ("trailing", 4, 6, UNDECODED, "2 bytes left over behind the message")]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "plan", "raw", "expected"), READABLE, ids=named(READABLE))
def test_readable_fields(what: str, plan: Plan, raw: str, expected: list[tuple[Any, ...]]) -> None:
    span = annotate(plan, bytes.fromhex(raw))
    assert rows(span) == expected, what
    assert list(bytes_owned(span)) == list(range(len(bytes.fromhex(raw))))


TAGS = probe("A int8", "T int16 0", "U string? 2", flexible=True)
STRUCT_TAG = probe(field("S B? 1", field("C int8")), flexible=True)
TAGGED: list[tuple[str, Plan, str, list[tuple[Any, ...]]]] = [
    ("in order", TAGS, "05 02 00020007 020100", [
        ("", 1, 9, 2, None), ("T", 2, 6, 0, None), ("T", 4, 6, 7, None),
        ("U", 6, 9, 2, None), ("U", 8, 9, None, None)]),
    ("out of order", TAGS, "05 02 020100 00020007", [
        ("", 1, 9, 2, None), ("U", 2, 5, 2, None), ("U", 4, 5, None, None),
        ("T", 5, 9, 0, "tag 0 after tag 2: tags must ascend"), ("T", 7, 9, 7, None)]),
    ("twice", TAGS, "05 02 00020007 00020008", [
        ("", 1, 10, 2, None), ("T", 2, 6, 0, None), ("T", 4, 6, 7, None),
        ("T", 6, 10, 0, "tag 0 after tag 0: tags must ascend"), ("T", 8, 10, 8, None)]),
    ("unknown", TAGS, "05 01 0702abcd", [
        ("", 1, 6, 1, None), ("tag 7", 2, 6, 7, "unknown tag"), ("tag 7", 4, 6, b"\xab\xcd", None)]),
    ("spare bytes in tag and size", TAGS, "05 01 80008200 0007", [
        ("", 1, 8, 1, None),
        ("T", 2, 8, 0, "the tag is 1 byte longer than needed; the size of tag 0 is 1 byte longer than needed"),
        ("T", 6, 8, 7, None)]),
    ("bytes left over in one", TAGS, "05 02 00030007ee 020100", [
        ("", 1, 10, 2, None), ("T", 2, 7, 0, None), ("T", 4, 6, 7, None),
        ("T", 6, 7, UNDECODED, "tag 0 says 3 bytes, the field takes 2"),
        ("U", 7, 10, 2, None), ("U", 9, 10, None, None)]),
    ("too little in one", TAGS, "05 02 000107 020100", [
        ("", 1, 8, 2, None), ("T", 2, 5, 0, None), ("T", 4, 5, UNDECODED, "needs 2 bytes at offset 4, has 1"),
        ("U", 5, 8, 2, None), ("U", 7, 8, None, None)]),
    ("more than there is", TAGS, "05 01 00090007", [
        ("", 1, 6, 1, None), ("tagged", 2, 6, UNDECODED, "needs 9 bytes for tag 0 at offset 4, has 2")]),
    ("more of them than there are", TAGS, "05 02 020100", [
        ("", 1, 5, 2, None), ("U", 2, 5, 2, None), ("U", 4, 5, None, None),
        ("tagged", 5, 5, UNDECODED, "needs the tag at offset 5, and 0 bytes hold none")]),
    ("2^32-1 of them", TAGS, "05 ffffffff0f 020100", [
        ("", 1, 9, 2**32 - 1, None), ("U", 6, 9, 2, None), ("U", 8, 9, None, None),
        ("tagged", 9, 9, UNDECODED, "needs the tag at offset 9, and 0 bytes hold none")]),
    ("a number of tags without an end", TAGS, "0580", [
        ("tagged", 1, 2, UNDECODED, "needs the number of tagged fields at offset 1, and 1 byte hold none")]),
    ("a tag above 2^32-1", TAGS, "0501ffffffff1f00", [
        ("", 1, 8, 1, None),
        ("tagged", 2, 8, UNDECODED, "the tag at offset 2: the varint is 8,589,934,591, above 2^32-1")]),
    ("a struct in a tag", STRUCT_TAG, "01 01030105 00", [
        ("", 0, 6, 1, None), ("S", 1, 6, 1, None), ("S", 3, 6, 2, None), ("S.C", 4, 5, 5, None), ("S", 5, 6, 0, None)]),
    ("a null struct in a tag", STRUCT_TAG, "01 010100", [
        ("", 0, 4, 1, None), ("S", 1, 4, 1, None), ("S", 3, 4, None, None)]),
    ("a null marker of -1 in a tag", STRUCT_TAG, "01 0101ff", [
        ("", 0, 4, 1, None), ("S", 1, 4, 1, None), ("S", 3, 4, None, "null marker -1: not 0, read as null")]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "plan", "raw", "expected"), TAGGED, ids=named(TAGGED))
def test_tagged_fields(what: str, plan: Plan, raw: str, expected: list[tuple[Any, ...]]) -> None:
    span = annotate(plan, bytes.fromhex(raw))
    assert [row for row in rows(span) if row[0] != "A"] == expected, what
    assert list(bytes_owned(span)) == list(range(len(bytes.fromhex(raw))))


# ---------------------------------------------------------------- what cannot be read

ARRAY = probe("A int8", field("B []C", field("D int16"), field("E string")))
BROKEN: list[tuple[str, Plan, str, str, int, str]] = [
    ("nothing", probe("A int32"), "", "A", 0, "needs 4 bytes at offset 0, has 0"),
    ("too few bytes", probe("A int8", "B int64"), "0000000000", "B", 1, "needs 8 bytes at offset 1, has 4"),
    ("one byte", probe("A int8"), "", "A", 0, "needs 1 byte at offset 0, has 0"),
    ("half a uuid", probe("A uuid"), "00" * 8, "A", 0, "needs 16 bytes at offset 0, has 8"),
    ("half a length", probe("A string"), "00", "A", 0, "needs 2 bytes (length) at offset 0, has 1"),
    ("cut text", probe("A string"), "000561", "A", 0, "needs 5 bytes at offset 2, has 1"),
    ("cut bytes", probe("A bytes"), "7fffffff61", "A", 0, "needs 2,147,483,647 bytes at offset 4, has 1"),
    ("no compact length", probe("A string", flexible=True), "", "A", 0,
     "needs the length at offset 0, and 0 bytes hold none"),
    ("a length that does not end", probe("A bytes", flexible=True), "ffff", "A", 0,
     "needs the length at offset 0, and 2 bytes hold none"),
    ("a length above 2^32-1", probe("A bytes", flexible=True), "ffffffff7f", "A", 0,
     "the length at offset 0: the varint is 34,359,738,367, above 2^32-1"),
    ("a count that is too long", probe("A []int8", flexible=True), "808080808000", "A", 0,
     "the count at offset 0: the varint is longer than 5 bytes"),
    ("null text", probe("A string"), "ffff", "A", 0, "is null, and this field must not be"),
    ("null bytes", probe("A bytes", flexible=True), "0000", "A", 0, "is null, and this field must not be"),
    ("a null array", probe("A []int8"), "ffffffff", "A", 0, "is null, and this field must not be"),
    ("a null element", probe("A []string?"), "00000001ffff", "A[0]", 4, "is null, and this field must not be"),
    ("a negative length", probe("A string?"), "fffe", "A", 0, "the length is -2"),
    ("a negative count", probe("A []int8?"), "80000000", "A", 0, "the count is -2,147,483,648"),
    ("2^31-1 numbers", probe("A []int32"), "7fffffff0000", "A", 0,
     "needs 8,589,934,588 bytes for 2,147,483,647 elements at offset 4, has 2"),
    ("2^31-1 uuids", probe("A []uuid", flexible=True), "8080808008", "A", 0,
     "needs 34,359,738,352 bytes for 2,147,483,647 elements at offset 5, has 0"),
    ("2^31-1 structs", ARRAY, "007fffffff0007000161", "B[1].D", 10, "needs 2 bytes at offset 10, has 0"),
    ("2^31-1 texts", probe("A []string", flexible=True), "80808080080161", "A[1]", 6,
     "needs 96 bytes at offset 7, has 0"),
    ("2^31-1 structs of no size", probe(field("A []B")), "7fffffff", "A", 0,
     "claims 2,147,483,647 elements of no size"),
    ("no null marker", probe(field("A B?", field("C int8"))), "", "A", 0,
     "needs 1 byte (null marker) at offset 0, has 0"),
    ("trailing bytes", probe("A int8"), "000102", "trailing", 1, "2 bytes left over behind the message"),
    ("a trailing byte", probe("A int8", flexible=True), "000001", "trailing", 2, "1 byte left over behind the message"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "plan", "raw", "path", "start", "note"), BROKEN, ids=named(BROKEN))
def test_what_cannot_be_read_is_undecoded_to_the_end(
    what: str, plan: Plan, raw: str, path: str, start: int, note: str
) -> None:
    data = bytes.fromhex(raw)
    span = annotate(plan, data)
    broken = span.broken()
    assert broken is not None
    assert (broken[0], broken[1].start, broken[1].end, broken[1].note) == (path, start, len(data), note), what
    assert list(bytes_owned(span)) == list(range(len(data)))
    error = decode_error(plan, data)
    assert (error.message, error.path, error.offset, error.reason) == ("Probe v0", path, start, note)


def test_an_array_says_how_many_elements_could_be_read() -> None:
    span = annotate(probe("A []string"), bytes.fromhex("00000009000161 0005"))
    array = span.children[0]
    assert (array.value, array.note) == (9, "claims 9 elements, 1 could be read")
    assert [child.type for child in array.children] == ["string", UNDECODED]


def test_an_error_names_message_path_and_place() -> None:
    plan = builtin_library().plan("HeartbeatRequest", 4)
    assert str(decode_error(plan, b"\x03ab")) == "HeartbeatRequest v4: GenerationId: needs 4 bytes at offset 3, has 0"
    behind = decode_error(plan, b"\xee\xee\x03a", 2)
    assert (str(behind), behind.offset) == ("HeartbeatRequest v4: GroupId: needs 2 bytes at offset 3, has 1", 2)
    fine = bytes.fromhex("0261000000070262 0000")
    assert decode_error(plan, fine).reason == "could not be read"
    assert str(decode_error(plan, fine + b"\0")) == "HeartbeatRequest v4: trailing: 1 byte left over behind the message"


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("plan", "raw", "note"),
    [
        (probe("A []string"), "00000009" + "0000" * 9, "stopped here: over 5 spans"),
        (probe(flexible=True), "09" + "".join(f"{tag:02x}00" for tag in range(9)), "stopped here: over 5 spans"),
    ],
)
def test_the_number_of_spans_is_bounded(monkeypatch: pytest.MonkeyPatch, plan: Plan, raw: str, note: str) -> None:
    monkeypatch.setattr(module, "MAX_SPANS", 5)
    data = bytes.fromhex(raw)
    span = annotate(plan, data)
    broken = span.broken()
    assert broken is not None
    assert (broken[1].note, broken[1].end) == (note, len(data))
    assert list(bytes_owned(span)) == list(range(len(data)))


def test_the_bound_holds_inside_a_tagged_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SPANS", 3)
    plan = probe(field("S []B 0", field("C int8")), flexible=True)
    data = bytes.fromhex("02 0009 0501000200030004 00 0500")
    span = annotate(plan, data)
    broken = span.broken()
    assert broken is not None
    assert (broken[0], broken[1].note) == ("S[0].C", "stopped here: over 3 spans")
    assert list(bytes_owned(span)) == list(range(len(data)))
