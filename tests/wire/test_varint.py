"""Varints against Kafka's own forms (ByteUtils), their limits, and what is no varint."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.wire.varint import VarintError, canonical_size, read_uvarint, write_uvarint, write_varint

UNSIGNED = [
    (0, "00", 32),
    (1, "01", 32),
    (63, "3f", 32),
    (127, "7f", 32),
    (128, "8001", 32),
    (300, "ac02", 32),
    (8192, "8040", 32),
    (16383, "ff7f", 32),
    (16384, "808001", 32),
    (2097151, "ffff7f", 32),
    (2097152, "80808001", 32),
    (268435455, "ffffff7f", 32),
    (268435456, "8080808001", 32),
    (2**31 - 1, "ffffffff07", 32),
    (2**32 - 1, "ffffffff0f", 32),
    (2**32, "8080808010", 64),
    (2**63 - 1, "ffffffffffffffff7f", 64),
    (2**63, "80808080808080808001", 64),
    (2**64 - 1, "ffffffffffffffffff01", 64),
]
SIGNED = [
    (0, "00", 32),
    (-1, "01", 32),
    (1, "02", 32),
    (-2, "03", 32),
    (63, "7e", 32),
    (-64, "7f", 32),
    (64, "8001", 32),
    (-65, "8101", 32),
    (8191, "fe7f", 32),
    (-8192, "ff7f", 32),
    (2**31 - 1, "feffffff0f", 32),
    (-(2**31), "ffffffff0f", 32),
    (2**63 - 1, "feffffffffffffffff01", 64),
    (-(2**63), "ffffffffffffffffff01", 64),
]


def unzigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


@pytest.mark.parametrize(("value", "raw", "bits"), UNSIGNED)
def test_unsigned_varints_are_written_and_read(value: int, raw: str, bits: int) -> None:
    data = bytes.fromhex(raw)
    assert write_uvarint(value) == data
    assert read_uvarint(data, 0, bits=bits) == (value, len(data))
    assert canonical_size(value) == len(data)


@pytest.mark.parametrize(("value", "raw", "bits"), SIGNED)
def test_signed_varints_are_written_and_read(value: int, raw: str, bits: int) -> None:
    data = bytes.fromhex(raw)
    assert write_varint(value) == data
    assert unzigzag(read_uvarint(data, 0, bits=bits)[0]) == value


@pytest.mark.parametrize("data", [bytes.fromhex("aaac02bb"), memoryview(bytes.fromhex("aaac02bb"))])
def test_a_varint_is_read_where_it_stands(data: bytes | memoryview) -> None:
    assert read_uvarint(data, 1) == (300, 3)
    assert read_uvarint(data, 1, 3) == (300, 3)


@pytest.mark.parametrize(
    ("raw", "value", "spare"),
    [("8000", 0, 1), ("80808000", 0, 3), ("8080808000", 0, 4), ("8100", 1, 1), ("ff00", 127, 1), ("ac8200", 300, 1)],
)
def test_longer_forms_than_needed_are_read(raw: str, value: int, spare: int) -> None:
    data = bytes.fromhex(raw)
    assert read_uvarint(data, 0) == (value, len(data))
    assert len(data) - canonical_size(value) == spare


@pytest.mark.parametrize(
    ("raw", "bits", "short", "reason"),
    [
        ("", 32, True, "the varint does not end"),
        ("80", 32, True, "the varint does not end"),
        ("ffffffff", 32, True, "the varint does not end"),
        ("8080808010", 32, False, "the varint is 4,294,967,296, above 2^32-1"),
        ("ffffffff7f", 32, False, "the varint is 34,359,738,367, above 2^32-1"),
        ("808080808001", 32, False, "the varint is longer than 5 bytes"),
        ("ffffffffff", 32, False, "the varint is longer than 5 bytes"),
        ("80808080808080808002", 64, False, "the varint is 18,446,744,073,709,551,616, above 2^64-1"),
        ("8080808080808080808001", 64, False, "the varint is longer than 10 bytes"),
    ],
)
def test_what_is_no_varint_is_refused(raw: str, bits: int, short: bool, reason: str) -> None:
    with pytest.raises(VarintError) as caught:
        read_uvarint(bytes.fromhex(raw), 0, bits=bits)
    assert (str(caught.value), caught.value.short) == (reason, short)


def test_nothing_is_read_behind_the_end() -> None:
    with pytest.raises(VarintError, match="does not end"):
        read_uvarint(bytes.fromhex("ac02"), 0, 1)
    with pytest.raises(VarintError, match="does not end"):
        read_uvarint(bytes.fromhex("02"), 1)


@settings(derandomize=True, database=None, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read_again(unsigned: int, signed: int) -> None:
    assert read_uvarint(write_uvarint(unsigned), 0, bits=64) == (unsigned, canonical_size(unsigned))
    assert unzigzag(read_uvarint(write_varint(signed), 0, bits=64)[0]) == signed
