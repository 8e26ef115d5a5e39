"""One message of magic 0 or 1: its fields, nulls, and lengths that do not fit."""

from __future__ import annotations

from struct import pack

import pytest

from kwire.errors import DecodeError
from kwire.records.legacy import MIN_SIZE, LegacyMessage, read_message


def message(magic: int, body: bytes, size: int | None = None) -> bytes:
    """A message with attributes 3, checksum 9 and, in magic 1, time 1234; body is what follows those."""
    rest = pack(">Ibb", 9, magic, 3) + (pack(">q", 1234) if magic else b"") + body
    return pack(">qi", 70, len(rest) if size is None else size) + rest


NULLS = pack(">ii", -1, -1)


@pytest.mark.parametrize(
    ("magic", "body", "key", "value"),
    [
        (0, NULLS, None, None),
        (1, NULLS, None, None),
        (0, pack(">i1si2s", 1, b"k", 2, b"vv"), b"k", b"vv"),
        (1, pack(">i1si2s", 1, b"k", 2, b"vv"), b"k", b"vv"),
        (1, pack(">ii", 0, 0), b"", b""),
        (1, pack(">ii", -7, -2147483648), None, None),  # any negative length is null
    ],
)
def test_a_message(magic: int, body: bytes, key: bytes | None, value: bytes | None) -> None:
    raw = b"before" + message(magic, body) + b"behind"
    end = len(raw) - 6
    found = read_message(raw, 6, "[0]")
    assert found == LegacyMessage(6, end, 70, end - 18, 9, magic, 3, 1234 if magic else None, key, value)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_least_message_has_null_key_and_value(magic: int) -> None:
    assert len(message(magic, NULLS)) == MIN_SIZE[magic]


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (message(0, NULLS, 13), "records: [2]: a message of 25 bytes, the least is 26"),
        (message(1, NULLS, 21), "records: [2]: a message of 33 bytes, the least is 34"),
        (message(0, pack(">i", 5) + b"keyv"), "records: [2].Key: needs 5 bytes at offset 22, has 4"),
        (message(0, pack(">i1s", 1, b"k") + b"vvv"), "records: [2].Value: needs 4 bytes at offset 23, has 3"),
        (message(0, pack(">i4s", 4, b"keys")), "records: [2].Value: needs 4 bytes at offset 26, has 0"),
        (message(1, pack(">ii", -1, 9) + b"value"), "records: [2].Value: needs 9 bytes at offset 34, has 5"),
        (message(1, pack(">ii", 2**31 - 1, 0)), "records: [2].Key: needs 2,147,483,647 bytes at offset 30, has 4"),
    ],
)
def test_lengths_that_do_not_fit(raw: bytes, error: str) -> None:
    with pytest.raises(DecodeError) as raised:
        read_message(raw, 0, "[2]")
    assert str(raised.value) == error


def test_a_length_does_not_reach_into_the_next_message() -> None:
    raw = message(0, pack(">ii", -1, 3) + b"vv") + message(0, NULLS)
    with pytest.raises(DecodeError) as raised:
        read_message(raw, 0, "[0]")
    assert (raised.value.offset, raised.value.reason) == (26, "needs 3 bytes at offset 26, has 2")
