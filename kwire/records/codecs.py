"""What decompresses: cramjam, or where it is not installed (in a browser, for one) the standard library and readers of
our own, which are slower. All are bounded: they stop at the limit, not behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from kwire.errors import TooLargeError

Decompress = Callable[[bytes, int], bytes]


class Codecs(NamedTuple):
    """Each takes packed bytes and the limit of what may come out. Raise TooLargeError beyond that, and error,
    ValueError or IndexError for bytes that are not of the format.

    snappy and lz4_block take a block without framing; gzip, zstd and lz4 frames, several in a row.
    """

    gzip: Decompress
    zstd: Decompress
    snappy: Decompress
    snappy_size: Callable[[bytes], int]
    lz4: Decompress
    lz4_block: Decompress
    error: type[Exception]


@cache
def codecs() -> Codecs:
    """The fastest that are installed."""
    try:
        import cramjam
    except ImportError:
        from kwire.records import plain_codecs as plain

        return Codecs(plain.gzip, plain.zstd, plain.snappy, plain.snappy_size, plain.lz4, plain.lz4_block, ValueError)

    def snappy(data: bytes, limit: int) -> bytes:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > limit:
            raise TooLargeError(limit)
        out = bytearray(size)
        return bytes(memoryview(out)[: cramjam.snappy.decompress_raw_into(data, out)])

    def lz4_block(data: bytes, limit: int) -> bytes:
        out = bytearray(limit)
        return bytes(memoryview(out)[: cramjam.lz4.decompress_block_into(data, out)])

    frames = (cramjam.gzip, cramjam.zstd, cramjam.lz4)
    gzip, zstd, lz4 = (partial(_grow, module.decompress_into) for module in frames)
    size = cramjam.snappy.decompress_raw_len
    return Codecs(gzip, zstd, snappy, size, lz4, lz4_block, cramjam.DecompressionError)


def _grow(into: Any, data: bytes, limit: int) -> bytes:
    """Decompresses into buffers of growing size, the last as large as the limit."""
    size = min(limit, max(4096, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            return bytes(memoryview(out)[: into(data, out)])
        except Exception as error:
            if "whole buffer" not in str(error):
                raise
            if size >= limit:
                raise TooLargeError(limit) from error
            size = min(limit, 8 * size)
