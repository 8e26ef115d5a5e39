"""Unsigned and zigzag varints, seven bits a byte, low bits first (Kafka's ByteUtils).

Longer forms than needed are accepted, as Kafka accepts them; canonical_size() tells. What does not fit into 32 or 64
bits is an error.
"""

from __future__ import annotations


class VarintError(ValueError):
    """The bytes are no varint: they end too early (short), or the number is too large."""

    def __init__(self, reason: str, short: bool) -> None:
        self.short = short
        super().__init__(reason)


def read_uvarint(
    data: bytes | bytearray | memoryview, pos: int, end: int | None = None, bits: int = 32
) -> tuple[int, int]:
    """Reads an unsigned varint of up to `bits` bits at pos; gives the value and the position behind it."""
    limit = len(data) if end is None else end
    value = shift = 0
    while True:
        if pos >= limit:
            raise VarintError("the varint does not end", short=True)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise VarintError(f"the varint is longer than {(bits + 6) // 7} bytes", short=False)
    if value >> bits:
        raise VarintError(f"the varint is {value:,}, above 2^{bits}-1", short=False)
    return value, pos


def write_uvarint(value: int) -> bytes:
    """The shortest form. value is not negative."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_varint(value: int) -> bytes:
    """The shortest zigzag form, for any sign."""
    return write_uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def canonical_size(value: int) -> int:
    """How many bytes the shortest unsigned form takes."""
    return max(1, (value.bit_length() + 6) // 7)
