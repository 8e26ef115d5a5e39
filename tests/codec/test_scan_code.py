"""Walking over messages: it ends where decoding ends, refuses what decoding refuses, and finds the error codes that the
span tree holds."""

# mypy: disable-error-code="return-value"

from __future__ import annotations

import random
from functools import cache
from struct import error as StructError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import damaged, each, names

from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.plan import Plan, StructPlan
from kwire.codec.scan_code import Scan, fixed_size, scanner
from kwire.codec.span import Span
from kwire.errors import DecodeError

BEHIND = b"\xff\x01\x00"  # bytes that belong to something else


@cache
def scan_of(name: str, version: int) -> Scan:
    return scanner(builtin_library().plan(name, version))


def scanned(name: str, version: int, data: bytes, start: int = 0) -> tuple[int | None, list[int]]:
    """Where the scan ends, None where it refuses; and the error codes."""
    errors: list[int] = []
    try:
        end = scan_of(name, version)(data, start, errors)
    except (ValueError, IndexError, StructError):
        return None, errors
    return end if end <= len(data) else None, errors


def decoded(name: str, version: int, data: bytes, start: int = 0) -> int | None:
    """Where decoding ends, None where it refuses."""
    try:
        return builtin_library().codec(name, version).decode_at(data, start)[1]
    except DecodeError:
        return None


def in_order(span: Span) -> list[int]:
    """The error codes in a tree that are not zero, in the order of the bytes."""
    found = []
    for child in span.children:
        if child.slot is not None and child.slot.field.error and not child.children and child.value:
            found.append(child.value)
        found += in_order(child)
    return found


def error_codes(plan: Plan, data: bytes) -> list[int]:
    return in_order(annotate(plan, data))


every = pytest.mark.parametrize("name", names())

# ---------------------------------------------------------------- the official vectors


@every
def test_the_scan_of_a_vector_ends_where_the_vector_ends_and_finds_its_errors(name: str) -> None:
    for version, data in each(name):
        codes = error_codes(builtin_library().plan(name, version), data)
        assert scanned(name, version, data) == (len(data), codes), (version, data.hex())
        assert scanned(name, version, BEHIND + data + BEHIND, 3) == (3 + len(data), codes), (version, data.hex())


def test_vectors_hold_errors_in_most_responses() -> None:
    found = {
        name
        for name in names()
        for version, data in each(name)
        if scanned(name, version, data)[1] and name.endswith("Response")
    }
    assert len(found) > 70


@every
def test_a_cut_vector_is_refused_with_the_errors_before_the_cut(name: str) -> None:
    rng = random.Random(name)
    for version, data in each(name):
        whole = scanned(name, version, data)[1]
        for length in rng.sample(range(len(data)), min(6, len(data))):
            end, errors = scanned(name, version, data[:length])
            assert end == decoded(name, version, data[:length]), (version, data[:length].hex())
            assert errors == whole[: len(errors)]


@every
def test_a_damaged_vector_is_refused_or_ends_as_in_decoding(name: str) -> None:
    rng = random.Random(name)
    for version, data in each(name):
        plan = builtin_library().plan(name, version)
        for _ in range(5):
            changed = damaged(data, rng)
            end, errors = scanned(name, version, changed)
            assert end == decoded(name, version, changed), (version, changed.hex())
            if end == len(changed):
                assert errors == error_codes(plan, changed), (version, changed.hex())


SAMPLE = [
    ("FetchResponse", 16), ("FetchResponse", 4), ("ProduceResponse", 10), ("MetadataResponse", 12),
    ("ApiVersionsResponse", 4), ("JoinGroupResponse", 5), ("ShareFetchResponse", 1), ("FetchRequest", 17),
    ("ConsumerGroupHeartbeatResponse", 1), ("DescribeTopicPartitionsRequest", 0), ("DescribeConfigsResponse", 4),
]  # fmt: skip


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(st.sampled_from(SAMPLE), st.binary(max_size=80))
def test_any_bytes_are_refused_or_end_as_in_decoding(kind: tuple[str, int], data: bytes) -> None:
    assert scanned(*kind, data)[0] == decoded(*kind, data)


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(st.sampled_from(SAMPLE), st.lists(st.sampled_from(b"\x00\x00\x00\x01\x02\x03\x80\xff"), max_size=90).map(bytes))
def test_small_numbers_are_refused_or_end_as_in_decoding(kind: tuple[str, int], data: bytes) -> None:
    assert scanned(*kind, data)[0] == decoded(*kind, data)


# ---------------------------------------------------------------- one by one

CASES = [
    ("HeartbeatResponse", 0, "0000", 2, []),
    ("HeartbeatResponse", 0, "001b", 2, [27]),
    ("HeartbeatResponse", 0, "ffff", 2, [-1]),
    ("HeartbeatResponse", 0, "001bff", 2, [27]),
    ("HeartbeatResponse", 0, "00", None, []),
    ("HeartbeatResponse", 4, "00000000 001b 00", 7, [27]),
    ("HeartbeatResponse", 4, "00000000 001b 01 05 02 aabb", 11, [27]),  # an unknown tag
    ("HeartbeatResponse", 4, "00000000 001b 01 05 03 aabb", None, [27]),  # that is longer than what is left
    ("HeartbeatResponse", 4, "00000000 001b", None, [27]),
    ("HeartbeatResponse", 4, "00000000 001b 8000", 8, [27]),  # a varint longer than needed
    ("HeartbeatRequest", 0, "0001 c3 00000001 0000", 9, []),  # text that is no UTF-8 passes, as in decoding
    ("HeartbeatRequest", 0, "ffff 00000001 0000", None, []),  # null where null is not allowed
    ("MetadataRequest", 1, "ffffffff", 4, []),
    ("MetadataRequest", 1, "fffffffe", None, []),
    ("MetadataRequest", 1, "7fffffff", None, []),
    ("FindCoordinatorResponse", 4, "00000000 03 02 61 00000001 01 00000001 000f 01 00 02 62 00000001 01 00000001 0010"
     " 01 00 00", 36, [15, 16]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "data", "end", "errors"), CASES)
def test_cases(name: str, version: int, data: str, end: int | None, errors: list[int]) -> None:
    assert scanned(name, version, bytes.fromhex(data)) == (end, errors)
    assert decoded(name, version, bytes.fromhex(data)) == end


def test_a_tagged_field_must_fill_its_size() -> None:
    codec = builtin_library().codec("FetchRequest", 17)
    data = codec.encode({"ClusterId": "abc"})
    at = data.index(b"\x00\x04\x04abc")
    assert scanned("FetchRequest", 17, data) == (len(data), [])
    assert scanned("FetchRequest", 17, data[: at + 1] + b"\x05" + data[at + 2 :])[0] is None


STRUCTS = [
    ("ApiVersionsResponse", 0, "ApiKeys", 6),  # three int16
    ("ApiVersionsResponse", 3, "ApiKeys", None),  # tags behind each
    ("LeaderAndIsrRequest", 1, "LiveLeaders", None),  # a string in it
    ("OffsetForLeaderEpochRequest", 0, "Topics", None),
]


@pytest.mark.parametrize(("name", "version", "field", "size"), STRUCTS)
def test_elements_of_fixed_size(name: str, version: int, field: str, size: int | None) -> None:
    root: StructPlan = builtin_library().plan(name, version).root
    (slot,) = (slot for slot in root.slots if slot.name == field)
    assert fixed_size(slot) == size


def test_a_billion_elements_that_are_not_there_are_refused_at_once() -> None:
    topics = b"\0\1a" + b"\0\0\0\1" + bytes.fromhex("00000007 0003 0000000000000000")
    assert scanned("ProduceResponse", 0, b"\0\0\0\1" + topics) == (4 + len(topics), [3])
    assert scanned("ProduceResponse", 0, b"\x7f\xff\xff\xff" + 1000 * topics) == (None, [])
