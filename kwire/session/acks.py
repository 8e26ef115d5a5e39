"""Whether a Produce request wants a response: with acks=0 it does not (Kafka protocol guide). For one or many."""

from __future__ import annotations

from struct import error as StructError

import numpy as np

from kwire.codec.acks import acks_place, short_at
from kwire.schema.keys import PRODUCE
from kwire.session.api_versions import Kind
from kwire.wire.columns import Columns, Ints

UNKNOWN = -1  # behind a long transactional id


def is_silent(kind: Kind | None, data: bytes, pos: int | None) -> bool:
    """Whether a request, whose body begins at pos, is a Produce with acks=0, which is never answered."""
    if kind is None or kind.key != PRODUCE or pos is None or not kind.supported:
        return False
    try:
        return bool(short_at(data, acks_place(kind.version, data, pos))[0] == 0)
    except (IndexError, StructError, ValueError):
        return False


def acks_of(version: int, data: Columns, body: Ints) -> Ints:
    """The acks of Produce requests; UNKNOWN behind a transactional id of 127 bytes or more."""
    if version >= 9:
        length = data.u8(body)
        found = data.u16(body + 1 + np.maximum(length - 1, 0))
        return np.where(length > 127, UNKNOWN, found)
    if version >= 3:
        length = data.u16(body)
        return data.u16(body + 2 + np.where(length > 0x7FFF, 0, length))
    return data.u16(body)
