"""The codecs without cramjam: gzip by zlib, zstd by Python's own module (3.14, or backports.zstd), snappy and LZ4 read
here (format_description.txt of snappy; lz4_Block_format.md and lz4_Frame_format.md). Checksums of content are unread.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from functools import partial
from struct import unpack_from
from typing import Any

from kwire.codec.span import NOT_OPENED
from kwire.errors import CompressionError, TooLargeError

PIECE = 16 * 1024  # bytes that gzip and zstd are fed with at once
LZ4_MAGIC = 0x184D2204
LZ4_SKIPPED = range(0x184D2A50, 0x184D2A60)  # frames of something else, to be passed over
XXH32 = (2654435761, 2246822519, 3266489917, 668265263, 374761393)  # the primes of that hash


def gzip(data: bytes, limit: int) -> bytes:
    """Members, one behind the other."""
    return _frames(data, limit, partial(zlib.decompressobj, wbits=31), zlib.error)


def zstd(data: bytes, limit: int) -> bytes:
    """Frames, one behind the other."""
    module = _zstd()
    return _frames(data, limit, module.ZstdDecompressor, module.ZstdError)


def _frames(data: bytes, limit: int, begin: Callable[[], Any], errors: type[Exception]) -> bytes:
    """By pieces: what stands behind a frame is copied at its end, and frames may be many and small."""
    out, pos = bytearray(), 0
    while pos < len(data):
        frame = begin()
        while not frame.eof:
            piece = data[pos : pos + PIECE]
            if not piece:
                raise ValueError("the last frame has no end")
            try:
                out += frame.decompress(piece, limit - len(out) + 1)
            except errors as error:
                raise ValueError(str(error)) from error
            if len(out) > limit:
                raise TooLargeError(limit)
            pos += len(piece) - len(frame.unused_data)
    return bytes(out)


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise CompressionError(f"{NOT_OPENED}: there is no zstd in this Python") from error
    return zstd


# ---------------------------------------------------------------- snappy


def snappy_size(data: bytes) -> int:
    """What a block says that it decompresses to."""
    return _varint(data)[0]


def snappy(data: bytes, limit: int) -> bytes:
    """A block: its size, then literals and copies of what is already there."""
    size, pos = _varint(data)
    if size > limit:
        raise TooLargeError(limit)
    out = bytearray()
    while pos < len(data):
        tag = data[pos]
        pos += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                wide = length - 59
                length = int.from_bytes(_piece(data, pos, wide), "little")
                pos += wide
            out += _piece(data, pos, length + 1)
            pos += length + 1
        else:
            if tag & 3 == 1:
                length, wide, high = (tag >> 2 & 7) + 4, 1, tag >> 5 << 8
            else:
                length, wide, high = (tag >> 2) + 1, 2 if tag & 3 == 2 else 4, 0
            _copy(out, high | int.from_bytes(_piece(data, pos, wide), "little"), length)
            pos += wide
        if len(out) > size:
            break
    if len(out) != size:
        raise ValueError(f"a snappy block says {size:,} bytes and holds {'more' if len(out) > size else len(out)}")
    return bytes(out)


def _varint(data: bytes) -> tuple[int, int]:
    value = 0
    for pos, byte in enumerate(data[:5]):
        value |= (byte & 127) << 7 * pos
        if byte < 128:
            return value, pos + 1
    raise ValueError("a snappy block without its size")


def _piece(data: bytes, pos: int, size: int) -> bytes:
    piece = data[pos : pos + size]
    if len(piece) < size:
        raise ValueError(f"needs {size:,} bytes at {pos:,}, {len(piece):,} are left")
    return piece


def _copy(out: bytearray, distance: int, length: int) -> None:
    """Appends length bytes of what stands distance from the end; they may overlap with what is appended."""
    start = len(out) - distance
    if distance == 0 or start < 0:
        raise ValueError(f"a copy from {distance:,} bytes back, {len(out):,} are there")
    if distance >= length:
        out += out[start : start + length]
    else:
        pattern = bytes(out[start:])
        out += (pattern * (length // distance + 1))[:length]


# ---------------------------------------------------------------- LZ4


def lz4(data: bytes, limit: int) -> bytes:
    """Frames, one behind the other, each with its header checksum."""
    out, pos = bytearray(), 0
    while pos < len(data):
        (magic,) = unpack_from("<I", _piece(data, pos, 4))
        if magic in LZ4_SKIPPED:
            pos += 8 + unpack_from("<I", _piece(data, pos + 4, 4))[0]
            continue
        if magic != LZ4_MAGIC:
            raise ValueError("not an LZ4 frame")
        pos = _lz4_frame(data, pos + 4, out, limit)
    return bytes(out)


def _lz4_frame(data: bytes, pos: int, out: bytearray, limit: int) -> int:
    """Reads the frame whose descriptor is at pos, and gives where it ends."""
    flags, sizes = _piece(data, pos, 2)
    descriptor = _piece(data, pos, 2 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0))
    pos += len(descriptor)
    if _piece(data, pos, 1)[0] != xxh32(descriptor) >> 8 & 255 or flags >> 6 != 1:
        raise ValueError("the LZ4 frame's header is damaged")
    pos += 1
    largest, start = 1 << 8 + 2 * (sizes >> 4 & 7), len(out)
    while True:
        (size,) = unpack_from("<I", _piece(data, pos, 4))
        pos += 4
        if size == 0:
            break
        block = _piece(data, pos, size & 0x7FFFFFFF)
        pos += len(block) + (4 if flags & 16 else 0)
        begun = len(out) if flags & 32 else start  # whether blocks stand for themselves
        if size >> 31:
            out += block
        else:
            _lz4_sequences(block, out, begun, len(out) + largest)
        if len(out) > limit:
            raise TooLargeError(limit)
    return pos + (4 if flags & 4 else 0)


def lz4_block(data: bytes, limit: int) -> bytes:
    """A block without a frame."""
    out = bytearray()
    _lz4_sequences(data, out, 0, limit)
    return bytes(out)


def _lz4_sequences(data: bytes, out: bytearray, start: int, most: int) -> None:
    """Appends what a block holds: literals, then a copy, over and over. Copies reach back to start; most: what out
    may grow to."""
    pos, end = 0, len(data)
    while pos < end:
        token = data[pos]
        length, pos = _lz4_length(data, pos + 1, token >> 4)
        out += _piece(data, pos, length)
        pos += length
        if len(out) > most:
            raise ValueError("an LZ4 block holds more than it may")
        if pos >= end:
            return
        (distance,) = unpack_from("<H", _piece(data, pos, 2))
        length, pos = _lz4_length(data, pos + 2, token & 15)
        if distance > len(out) - start or len(out) + length + 4 > most:
            raise ValueError("an LZ4 block holds more than it may, or copies what is not there")
        _copy(out, distance, length + 4)


def _lz4_length(data: bytes, pos: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            byte = _piece(data, pos, 1)[0]
            pos += 1
            length += byte
            if byte < 255:
                break
    return length, pos


def xxh32(data: bytes) -> int:
    """XXH32 of fewer than 16 bytes, which is what an LZ4 descriptor has (xxhash_spec.md)."""
    whole, mask = len(data) & ~3, 0xFFFFFFFF
    value = XXH32[4] + len(data)
    for (word,) in (unpack_from("<I", data, at) for at in range(0, whole, 4)):
        value = value + word * XXH32[2] & mask
        value = (value << 17 | value >> 15) * XXH32[3] & mask
    for byte in data[whole:]:
        value = value + byte * XXH32[4] & mask
        value = (value << 11 | value >> 21) * XXH32[0] & mask
    value = (value ^ value >> 15) * XXH32[1] & mask
    value = (value ^ value >> 13) * XXH32[2] & mask
    return value ^ value >> 16
