"""Whether a Produce request wants an answer: with acks=0 it does not (Kafka protocol guide). One and many at once."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

import numpy as np

from kwire.schema.keys import PRODUCE
from kwire.session.api_versions import Kind
from kwire.wire.columns import Columns, Ints
from kwire.wire.varint import read_uvarint

UNKNOWN = -1  # behind a long transactional id

short_at = Struct(">h").unpack_from


def is_silent(kind: Kind | None, data: bytes, pos: int | None) -> bool:
    """Whether a request, whose body begins at pos, is a Produce with acks=0, which is never answered."""
    if kind is None or kind.key != PRODUCE or pos is None or not kind.supported:
        return False
    try:
        if kind.version >= 9:  # a compact, nullable transactional id stands before acks
            length, pos = read_uvarint(data, pos)
            pos += max(length - 1, 0)
        elif kind.version >= 3:
            pos += 2 + max(short_at(data, pos)[0], 0)
        return bool(short_at(data, pos)[0] == 0)
    except (IndexError, StructError, ValueError):
        return False


def acks_of(version: int, data: Columns, body: Ints) -> Ints:
    """The acks of Produce requests; UNKNOWN where it cannot be told at a glance."""
    if version >= 9:
        length = data.u8(body)
        found = data.u16(body + 1 + np.maximum(length - 1, 0))
        return np.where(length > 127, UNKNOWN, found)
    if version >= 3:
        length = data.u16(body)
        return data.u16(body + 2 + np.where(length > 0x7FFF, 0, length))
    return data.u16(body)
