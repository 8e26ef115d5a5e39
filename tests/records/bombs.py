"""Run by test_compression.py in a process of its own: builds one bomb, opens it, prints what came of it and the memory.

python tests/records/bombs.py gzip
"""

from __future__ import annotations

import json
import resource
import sys
import zlib
from pathlib import Path
from struct import pack

import cramjam

from kwire.codec.span import Span
from kwire.errors import CompressionError
from kwire.records import read_records
from kwire.records.annotate import annotate_records
from kwire.records.compression import NAMES, XERIAL, decompress

GIB = 1 << 30
PIECE = 4 << 20  # of zeros: bombs repeat what it compresses to


def gzip() -> bytes:
    """One member; a full flush makes pieces that can be repeated."""
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(bytes(PIECE)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(PIECE)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * (GIB // PIECE - 1)


def snappy() -> bytes:
    """A zero, and copies of 64 bytes; a third of a GiB, as snappy packs 64 bytes into 3 and no better."""
    size, out = GIB // 3, bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes(out) + bytes((size, 0, 0)) + b"\xfe\x01\x00" * (GIB // 3 // 64)


def xerial() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(PIECE)))
    return XERIAL + pack(">ii", 1, 1) + (pack(">i", len(block)) + block) * (GIB // 3 // PIECE)


def lz4() -> bytes:
    """Blocks of 4 MiB."""
    block = bytes(cramjam.lz4.compress_block(bytes(PIECE), store_size=False))
    return bytes.fromhex("04224d18607073") + (pack("<I", len(block)) + block) * (GIB // PIECE) + bytes(4)


def zstd() -> bytes:
    """One frame without content size; blocks of 128 KiB that are a run of one byte."""
    block = pack("<I", (1 << 17) << 3 | 2)[:3] + b"\0"
    return bytes.fromhex("28b52ffd0038") + block * (GIB >> 17)


BOMBS = {  # codec, magic, the bytes
    "gzip": ("gzip", 2, gzip),
    "gzip members": ("gzip", 2, lambda: zlib.compress(bytes(PIECE), wbits=31) * (GIB // PIECE)),
    "snappy": ("snappy", 2, snappy),
    "xerial": ("snappy", 2, xerial),
    "lz4": ("lz4", 2, lz4),
    "lz4 of magic 0": ("lz4", 0, lz4),
    "zstd": ("zstd", 2, zstd),
    "zstd frames": ("zstd", 2, lambda: bytes(cramjam.zstd.compress(bytes(PIECE))) * (GIB // PIECE)),
}


def batch(codec: str, magic: int, packed: bytes) -> bytes:
    """A batch that claims one record, or a message of magic 0, with a wrong checksum."""
    attributes = NAMES.index(codec)
    if magic == 0:
        return pack(">qiIbbii", 0, len(packed) + 14, 0, 0, attributes, -1, len(packed)) + packed
    return pack(">qiibIhiqqqhii", 0, len(packed) + 49, 0, 2, 0, attributes, 0, 0, 0, -1, -1, -1, 1) + packed


def broken(spans: tuple[Span, ...]) -> str | None:
    """The note that the annotator leaves on what it could not decompress."""
    return next((span.note for span in spans[0].below() if span.note and "limit" in span.note), None)


def peak() -> int:
    """The most memory that this process has held, in bytes. Linux counts its parent's in getrusage, hence /proc."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(name: str) -> None:
    codec, magic, make = BOMBS[name]
    packed = make()
    errors: dict[str, str | None] = {"decompress": None}
    try:
        decompress(codec, packed, magic=magic)
    except CompressionError as error:
        errors["decompress"] = str(error)
    whole = batch(codec, magic, packed)
    del packed
    errors["read_records"] = read_records(whole)[0].note
    errors["annotate_records"] = broken(annotate_records(whole))
    print(json.dumps({"errors": errors, "claims": GIB if codec != "snappy" else GIB // 3, "peak": peak()}))


if __name__ == "__main__":
    main(sys.argv[1])
