"""Bytes for kwire decode that mean harm: record batches that are bombs, bytes that no layout fits, a million empty
names, dumps with a far offset, escapes with many blanks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from struct import pack

import kwire
from kwire.records.batch import crc32c
from kwire.wire.varint import write_varint

NO_SIZE = bytes.fromhex("28b52ffd0038")  # a zstd frame without content size
RUN = 1 << 17  # bytes of zeros that four bytes of zstd make


def zstd_zeros(size: int) -> bytes:
    """A zstd frame that is a record: its value is zeros."""
    blocks = max(size // RUN, 1)
    head = b"\0\0\0\1" + write_varint(blocks * RUN - 1)
    head = write_varint(len(head) + blocks * RUN) + head
    packed = [pack("<I", RUN << 3 | (at == blocks - 1) | 2)[:3] + b"\0" for at in range(blocks)]
    return NO_SIZE + pack("<I", len(head) << 3)[:3] + head + b"".join(packed)


def batch(packed: bytes, records: int = 1, codec: int = 4) -> bytes:
    """A record batch of these compressed bytes."""
    body = pack(">hiqqqhii", codec, 0, 0, 0, -1, -1, -1, records) + packed
    return pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


def bombs(folder: Path, scale: float, *options: str) -> list[str]:
    """2.1 KB of zstd that are 63 MB of zeros, 64 of them in 16 partitions."""
    one = batch(zstd_zeros(int(63e6 * scale)))
    parts = [{"PartitionIndex": at, "Records": one * 4} for at in range(16)]
    body = kwire.encode("FetchResponse", 12, {"Responses": [{"Topic": "t", "Partitions": parts}]})
    (folder / "bombs.bin").write_bytes(body)
    return ["decode", str(folder / "bombs.bin"), "--as", "FetchResponse", "-v", "12", *options]


def small_records(folder: Path, scale: float) -> list[str]:
    """Batches of nine million records of 7 bytes each, read by Python."""
    import cramjam

    count = int(9_000_000 * scale)
    record = bytes((12, 0, 0, 0, 1, 1, 0))
    raw = batch(bytes(cramjam.zstd.compress(record * count)), count) * 16
    (folder / "records.bin").write_bytes(raw)
    code = "import kwire, sys; kwire.read_records(open(sys.argv[1], 'rb').read())"
    return ["python", "-c", code, str(folder / "records.bin")]


def nothing_fits(folder: Path, scale: float) -> list[str]:
    """60 KB of small numbers that no message reads whole."""
    random = Random(3)
    (folder / "noise.bin").write_bytes(bytes(random.choice((0, 0, 1, 2, 5)) for _ in range(int(60_000 * scale))))
    return ["decode", str(folder / "noise.bin")]


def empty_names(folder: Path, scale: float) -> list[str]:
    """An array of a million empty names, as a body alone."""
    count = int(1_000_000 * scale)
    (folder / "names.bin").write_bytes(kwire.encode("MetadataRequest", 0, {"Topics": [{"Name": ""}] * count}))
    return ["decode", str(folder / "names.bin")]


def far_offset(folder: Path, scale: float) -> list[str]:
    """A hexdump whose star stands for terabytes."""
    rows = ["00000000  " + "00 " * 16, "*", f"{int(scale * 0xFFFFFFFFFFF):012x}  " + "00 " * 16]
    (folder / "far.txt").write_text("\n".join(rows) + "\n")
    return ["decode", str(folder / "far.txt")]


def many_stars(folder: Path, scale: float) -> list[str]:
    """Rows and stars, of packets that begin again and again."""
    packet = "00000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n*\n00100000\n"
    (folder / "stars.txt").write_text(packet * int(2000 * scale + 1))
    return ["decode", str(folder / "stars.txt")]


def blanks(folder: Path, scale: float) -> list[str]:
    """An escape and many blanks."""
    (folder / "blanks.txt").write_text("\\x00" + " " * int(60_000 * scale) + "x")
    return ["decode", str(folder / "blanks.txt")]


def text(form: str, folder: Path, scale: float) -> list[str]:
    """A MB of what begins like a literal."""
    (folder / "text.txt").write_text((form * (int(1_000_000 * scale) // len(form) + 1)) + "~")
    return ["decode", str(folder / "text.txt")]


FORMS = {
    "backslashes": "\\",
    "quotes": '"',
    "brackets": "[",
    "comments": "/*",
    "numbers": "1,",
    "casts": "(byte)",
    "hex": "0x",
    "lines": "\\x00\n\n",
    "words": "deadbeef ",
    "pairs": "[00 ",
    "u8": "0u8, ",
    "spaced list": "[1   ",
    "bytes(": "byte(",
    "escaped quotes": '"\\',
    "open comments": "/* ",
}
ATTACKS: dict[str, Callable[[Path, float], list[str]]] = {
    "64 zstd bombs": bombs,
    "64 zstd bombs, --inner": lambda folder, scale: bombs(folder, scale, "--format", "json", "--inner"),
    "64 zstd bombs, spans": lambda folder, scale: bombs(folder, scale, "--format", "spans"),
    "144 million small records": small_records,
    "60 KB that no layout fits": nothing_fits,
    "a million empty names": empty_names,
    "a dump with a far offset": far_offset,
    "dumps with stars": many_stars,
    "an escape and blanks": blanks,
    **{f"a MB of {name}": partial(text, form) for name, form in FORMS.items()},
}
