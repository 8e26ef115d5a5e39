"""The codecs of record batches, bounded: a few bytes may claim gigabytes, and get no more than the limit.

Snappy comes in Xerial's framing (the Java client) or raw (librdkafka and others); both are read, Xerial's is written.
LZ4 is the frame format, written with independent blocks, as Kafka's reader demands; in magic 0 Kafka wrote a wrong
header checksum (KAFKA-3160), so there the blocks are read one by one, without it. gzip and zstd may be several members
or frames in a row.
"""

from __future__ import annotations

from struct import error as StructError
from struct import pack, unpack_from

from kwire.codec.annotate import MAX_SPANS
from kwire.codec.span import NOT_OPENED
from kwire.errors import CompressionError, KwireError, TooLargeError
from kwire.records.codecs import Codecs, codecs

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")  # by the low three bits of a batch's attributes
LIMIT = 64 * 1024 * 1024  # what a batch may decompress to, in bytes
TOTAL = 256 * 1024 * 1024  # what all batches of a frame may, together
RECORD = 128  # bytes that an object of a record takes beside its key and value
XERIAL = b"\x82SNAPPY\x00"
XERIAL_BLOCK = 32 * 1024
LZ4_MAGIC = 0x184D2204
LZ4_BLOCK = 64 * 1024
LZ4_HEADER = 7  # bytes, without a content size
LZ4_DESCRIPTOR = (0x60, 0x40)  # version 1, independent blocks; blocks of 64 KiB
LZ4_CHECKSUMS = (0x1A, 0x82, 0x82)  # of that descriptor, by magic; the first is the wrong one


class Budget:
    """What may be opened in all: bytes that are decompressed, and spans over them. One for everything that is kept at
    the same time: the fields of a frame, or the frames of a command."""

    __slots__ = ("left", "spans", "total")

    def __init__(self, total: int = TOTAL) -> None:
        self.total = self.left = total
        self.spans = MAX_SPANS

    def decompress(self, codec: str, data: bytes, limit: int = LIMIT, magic: int = 2, records: int = 0) -> bytes:
        """As decompress. records: how many objects there are to be. What does not fit any more is not opened, nor is
        what comes behind it: trying costs time. Raises CompressionError."""
        room = self.left
        try:
            if room <= 0:
                raise self._spent()
            plain = decompress(codec, data, min(limit, room), magic)
        except TooLargeError:
            self.charge(min(limit, room))
            if limit < room:
                raise
            raise self._spent() from None
        self.charge(len(plain) + RECORD * min(max(records, 0), len(plain) // 7))  # a record takes 7 bytes at least
        return plain

    def charge(self, cost: int) -> None:
        """So much more is kept. Raises CompressionError when that is too much."""
        self.left -= cost
        if self.left < 0:
            raise self._spent()

    def _spent(self) -> CompressionError:
        return CompressionError(f"{NOT_OPENED}: these bytes would decompress to more than {self.total:,} bytes in all")


def name_of(attributes: int) -> str:
    """The codec of a batch, by its attributes."""
    code = attributes & 7
    return NAMES[code] if code < len(NAMES) else f"codec {code}"


def decompress(codec: str, data: bytes | memoryview, limit: int = LIMIT, magic: int = 2) -> bytes:
    """The plain bytes. Raises CompressionError."""
    raw, by = bytes(data), codecs()
    if codec == "none":
        return raw
    if not raw:
        return b""
    try:
        if codec == "gzip":
            return by.gzip(raw, limit)
        if codec == "zstd":
            return by.zstd(raw, limit)
        if codec == "snappy":
            return _xerial(raw, limit, by) if raw.startswith(XERIAL) else by.snappy(raw, limit)
        if codec == "lz4":
            return _lz4_blocks(raw, limit, by) if magic == 0 else by.lz4(raw, limit)
    except CompressionError:
        raise
    except (by.error, StructError, ValueError, IndexError, OverflowError) as error:
        raise CompressionError(f"does not decompress as {codec}: {error}") from error
    raise CompressionError(f"unknown compression {codec}")


def _xerial(data: bytes, limit: int, by: Codecs) -> bytes:
    """Xerial's stream: a header of 16 bytes, then blocks of raw snappy with their sizes in front."""
    out, pos = bytearray(), 16
    if len(data) < pos:
        raise CompressionError(f"a snappy stream of {len(data)} bytes, its header takes 16")
    while pos < len(data):
        (size,) = unpack_from(">i", data, pos)
        pos += 4
        if size < 0 or pos + size > len(data):
            raise CompressionError(f"a snappy block claims {size:,} bytes, {len(data) - pos:,} are left")
        block = data[pos : pos + size]
        if len(out) + by.snappy_size(block) > limit:
            raise TooLargeError(limit)
        out += by.snappy(block, limit)
        pos += size
    return bytes(out)


def _lz4_blocks(data: bytes, limit: int, by: Codecs) -> bytes:
    """An LZ4 frame of independent blocks, its checksums unread (lz4_Frame_format.md, "Frame Descriptor")."""
    magic, flags, descriptor = unpack_from("<IBB", data)
    if magic != LZ4_MAGIC:
        raise CompressionError("not an LZ4 frame")
    block_size = 1 << 8 + 2 * (descriptor >> 4 & 7)
    pos = 7 + (8 if flags & 8 else 0)
    out = bytearray()
    while pos < len(data):
        (size,) = unpack_from("<I", data, pos)
        pos += 4
        if size == 0:
            break
        plain, size = size >> 31, size & 0x7FFFFFFF
        block = data[pos : pos + size]
        if len(block) < size:
            raise CompressionError(f"an LZ4 block claims {size:,} bytes, {len(block):,} are left")
        if plain:
            out += block
        else:
            out += by.lz4_block(block, block_size)
        if len(out) > limit:
            raise TooLargeError(limit)
        pos += size + (4 if flags & 16 else 0)
    return bytes(out)


def compress(codec: str, data: bytes, magic: int = 2, level: int | None = None) -> bytes:
    """The compressed bytes, in the form that Kafka's Java client writes. level: None for the usual one."""
    import cramjam

    match codec:
        case "none":
            return data
        case "gzip":
            return bytes(cramjam.gzip.compress(data) if level is None else cramjam.gzip.compress(data, level=level))
        case "zstd":
            return bytes(cramjam.zstd.compress(data) if level is None else cramjam.zstd.compress(data, level=level))
        case "snappy":
            blocks = [data[at : at + XERIAL_BLOCK] for at in range(0, len(data), XERIAL_BLOCK)]
            packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
            return XERIAL + pack(">ii", 1, 1) + b"".join(pack(">i", len(block)) + block for block in packed)
        case "lz4":
            return _lz4_frame(data, magic, level)
    raise KwireError(f"unknown compression {codec}; there are {', '.join(NAMES)}")


def _tight(frame: bytes) -> bytes:
    """The only block of a frame, compressed or not."""
    (size,) = unpack_from("<I", frame, LZ4_HEADER)
    return frame[LZ4_HEADER + 4 : LZ4_HEADER + 4 + (size & 0x7FFFFFFF)]


def _lz4_frame(data: bytes, magic: int, level: int | None) -> bytes:
    """An LZ4 frame, without content size and checksum; a block that does not shrink stands as it is."""
    import cramjam

    parts = [pack("<IBBB", LZ4_MAGIC, *LZ4_DESCRIPTOR, LZ4_CHECKSUMS[magic])]
    for at in range(0, len(data), LZ4_BLOCK):
        block = data[at : at + LZ4_BLOCK]
        if level is None:
            packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        else:
            packed = _tight(bytes(cramjam.lz4.compress(block, level=level)))
        size, packed = (len(packed), packed) if len(packed) < len(block) else (len(block) | 1 << 31, block)
        parts.append(pack("<I", size) + packed)
    return b"".join((*parts, bytes(4)))
