"""Records that have one header and are not long: opened some hundred at a time.

What would be done for each is done for all: headers are compared and types looked at as columns. Records are opened in
a place that stays in the cache; what they hold is put together from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BytesIO
from operator import itemgetter
from struct import iter_unpack
from typing import Protocol

import numpy as np

from kwire.capture.tls.header import APPLICATION, HEADER

FEW = 8  # records: fewer are opened one by one
PLACE, AT_ONCE = 1 << 19, 512  # bytes and records that are opened at a time
PAUSE = 64  # calls
SHORT = 512  # bytes of a record
MOST = 4 << 20  # bytes that are put together
LONG = 8192  # bytes of a record, beside which what is done for each one is little
_LOCAL = threading.local()


class RecordOpener(Protocol):
    """What opens records. typed: their type stands behind what they hold; lead and extra as Protection has them; into
    takes nonce, what is encrypted, additional data, and the place for what it holds. odd: so many calls of run() to
    come do not try it, as the last one was in vain."""

    typed: bool
    odd: int
    lead: int
    extra: int
    into: Callable[[bytes, memoryview | bytes, bytes, memoryview], object]

    def length(self, header: bytes) -> int:
        """The length of the body behind a header; 0 if the record is no application data."""

    def beside(self, number: int, data: bytes, heads: range) -> tuple[Iterable[bytes], Iterable[bytes]]:
        """The nonces and the additional data of records, counted from number; heads: where they begin."""


def run_alike(opening: RecordOpener, number: int, data: bytes, pos: int, heads: list[int], sizes: list[int]) -> bytes:
    """The contents as of Protection.run(), for records of one header; nothing where these are few. Ends before one that
    is not authentic or of another type."""
    from cryptography.exceptions import InvalidTag

    if opening.odd:
        opening.odd -= 1
        return b""
    header = data[pos : pos + HEADER]
    length = opening.length(header)
    step, size = HEADER + length, length - opening.extra
    count = _alike(data, pos, header, step) if 0 < size < LONG else 0
    if not count:
        return b""
    each = size + opening.typed
    view, places, opened, most = memoryview(data), _places(each), 0, FEW
    begin, end = HEADER + opening.lead, HEADER + length
    made = BytesIO(bytes(count * size))
    with made.getbuffer() as buffer:
        whole = np.frombuffer(buffer, np.uint8).reshape(count, size)
        while opened < count:
            some = range(pos + opened * step, pos + min(opened + min(most, len(places)), count) * step, step)
            nonces, beside = opening.beside(number + opened, data, some)
            done: list[object] = []
            with suppress(InvalidTag, ValueError):
                done.extend(map(opening.into, nonces, _parts(view[some.start : some.stop], begin, end), beside, places))
            good = len(done)
            found = np.frombuffer(_place(), np.uint8, good * each).reshape(good, each)
            if opening.typed and not (right := found[:, size] == APPLICATION).all():
                good = int(right.argmin())
            whole[opened : opened + good] = found[:good, :size]
            opened += good
            if good < len(some):
                break
            most *= 2  # so that what is opened behind an odd one, and again, is never more than what was good
        del whole
    if not opened:
        opening.odd = PAUSE
    heads += range(pos, pos + opened * step, step)
    sizes += [size] * opened
    made.truncate(opened * size)
    return made.getvalue()


def _alike(data: bytes, pos: int, header: bytes, step: int) -> int:
    """How many whole records of this header follow each other from pos on, as far as they are opened together; 0 where
    they are too few. step: from one to the next."""
    most = min((len(data) - pos) // step, MOST // step)
    last = pos + (FEW - 1) * step
    if most < FEW or data[last : last + HEADER] != header:
        return 0
    seen = np.ndarray((most, HEADER), np.uint8, data, pos, (step, 1))
    same = (seen == seen[0]).all(axis=1)
    count = most if same.all() else int(same.argmin())
    return count if count >= FEW else 0


def _parts(data: memoryview, begin: int, end: int) -> Iterable[memoryview | bytes]:
    """The bytes between begin and end of each end bytes. A copy costs less than a view where they are few."""
    if end > SHORT:
        return [data[at + begin : at + end] for at in range(0, len(data), end)]
    return map(itemgetter(0), iter_unpack(f"{begin}x{end - begin}s", data))


def _place() -> memoryview:
    """The buffers in which this thread opens records."""
    found: memoryview | None = getattr(_LOCAL, "place", None)
    if found is None:
        found = _LOCAL.place = memoryview(bytearray(PLACE))
    return found


def _places(size: int) -> list[memoryview]:
    """Consecutive parts of the buffer; those of the last size are cached."""
    kept: tuple[int, list[memoryview]] = getattr(_LOCAL, "places", (0, []))
    if kept[0] != size:
        place, end = _place(), min(PLACE // size, AT_ONCE) * size
        kept = _LOCAL.places = size, [place[at : at + size] for at in range(0, end, size)]
    return kept[1]
