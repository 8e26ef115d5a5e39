"""Where a Produce request says whether it wants an answer: with acks=0 it does not (Kafka protocol guide)."""

from __future__ import annotations

from struct import Struct

from kwire.wire.varint import read_uvarint

short_at = Struct(">h").unpack_from


def acks_place(version: int, data: bytes | bytearray, pos: int) -> int:
    """Where acks stand in a Produce body that begins at pos: behind the transactional id, which is compact and nullable
    from version 9 on. Raises IndexError, VarintError or struct.error where data ends before."""
    if version >= 9:
        length, pos = read_uvarint(data, pos)
        return pos + max(length - 1, 0)
    return pos + 2 + max(short_at(data, pos)[0], 0) if version >= 3 else pos
