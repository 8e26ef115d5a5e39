"""A process that is a broker and nothing else: how its memory is looked after.

glibc takes large pieces from a heap that it cannot give back while anything small lies behind them; here they are
mapped one by one, and gone when they are freed. Python's collector goes over all objects again and again, seconds in a
broker with many topics; here it looks at what is new alone, and at all of it once a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of malloc.h
KEPT = 32 << 20  # bytes of heap that are not given back, for the next large answer
PIECE = 8 << 20  # bytes from which on a piece is mapped
OFTEN, SELDOM = 1.0, 300.0  # seconds


def map_large_pieces() -> None:
    """From now on."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, PIECE)
        library.mallopt(TRIM_THRESHOLD, KEPT)


def settle(loop: asyncio.AbstractEventLoop) -> None:
    """All of this, as long as the loop runs."""
    map_large_pieces()

    def often() -> None:
        gc.freeze()
        loop.call_later(OFTEN, often)

    def seldom() -> None:
        gc.unfreeze()
        gc.collect()
        loop.call_later(SELDOM, seldom)

    often()
    loop.call_later(SELDOM, seldom)
