"""Nonces that count up with the records of a key (RFC 8446 section 5.3, RFC 7905), made many at a time: as columns one
takes a tenth of what it takes alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count, islice

import numpy as np

FEW, MANY = 8, 256  # made at a time: behind a jump, and then
TWELVE = np.dtype([("high", ">u4"), ("low", ">u8")])


class Nonces:
    """Each is iv, 12 bytes, with the record's number in its last eight."""

    def __init__(self, iv: bytes) -> None:
        self._high, self._low = int.from_bytes(iv[:4], "big"), np.uint64(int.from_bytes(iv[4:], "big"))
        self._first, self._made = 0, list[bytes]()

    def since(self, number: int) -> Iterator[bytes]:
        """The nonces from a record's number on, without end."""
        at = number - self._first
        if not 0 <= at < len(self._made):
            self._make(number, FEW)
            at = 0
        end = self._first + len(self._made)
        return chain(
            islice(self._made, at, None), chain.from_iterable(self._make(next, MANY) for next in count(end, MANY))
        )

    def _make(self, number: int, many: int) -> Iterable[bytes]:
        made = np.empty(many, TWELVE)
        made["high"] = self._high
        made["low"] = np.arange(number, number + many, dtype=np.uint64) ^ self._low
        self._first, self._made = number, made.view("V12").tolist()
        return self._made
