"""Types of fixed size: codes, sizes and ranges agree with each other and with Kafka's protocol guide."""

from __future__ import annotations

from struct import error as StructError

import pytest

from kwire.wire.fixed import CODES, PACKED, RANGES, SIZES

NUMBERS = [
    ("int8", 1, -128, 127),
    ("int16", 2, -32768, 32767),
    ("uint16", 2, 0, 65535),
    ("int32", 4, -(2**31), 2**31 - 1),
    ("uint32", 4, 0, 2**32 - 1),
    ("int64", 8, -(2**63), 2**63 - 1),
]


@pytest.mark.parametrize(("kind", "size", "low", "high"), NUMBERS)
def test_a_number_takes_its_whole_range_and_no_more(kind: str, size: int, low: int, high: int) -> None:
    packed = PACKED[kind]
    assert (SIZES[kind], packed.size, RANGES[kind]) == (size, size, (low, high))
    for value in (low, high):
        assert packed.unpack(packed.pack(value)) == (value,)
        assert packed.pack(value) == value.to_bytes(size, "big", signed=low < 0)
    for value in (low - 1, high + 1):
        with pytest.raises(StructError):
            packed.pack(value)


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        ("bool", True, "01"),
        ("bool", False, "00"),
        ("int16", 27, "001b"),
        ("int32", -2, "fffffffe"),
        ("float64", 1.5, "3ff8000000000000"),
        ("float64", -0.0, "8000000000000000"),
    ],
)
def test_numbers_are_written_high_byte_first(kind: str, value: float, raw: str) -> None:
    assert PACKED[kind].pack(value).hex() == raw
    assert PACKED[kind].unpack(bytes.fromhex(raw)) == (value,)


def test_the_tables_hold_the_same_types() -> None:
    assert set(PACKED) == set(CODES)
    assert set(SIZES) == {*CODES, "uuid"}
    assert SIZES["uuid"] == 16
    assert set(RANGES) == {kind for kind, *_ in NUMBERS}
