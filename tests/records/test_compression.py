"""The four codecs: what is written, every form that is read, what does not decompress, and where bombs stop."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zlib
from pathlib import Path
from struct import pack

import cramjam
import pytest
from vectors import damaged

from kwire.errors import CompressionError, KwireError
from kwire.records.compression import LIMIT, NAMES, XERIAL, compress, decompress, name_of

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "bombs.py"
CODECS = ("gzip", "snappy", "lz4", "zstd")
TEXT = b'{"order": 1, "state": "paid"}\n'
CONTENTS = {
    "empty": b"",
    "a byte": b"x",
    "text": TEXT * 50,
    "zeros": bytes(300_000),
    "random": random.Random(3).randbytes(70_000),
    "a block": TEXT[:16] * 4096,
    "over a block": TEXT[:16] * 4096 + b"!",
}


def xerial(*blocks: bytes) -> bytes:
    packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    return XERIAL + pack(">ii", 1, 1) + b"".join(pack(">i", len(block)) + block for block in packed)


def lz4_block(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(data, store_size=False))


def lz4_frame(*blocks: bytes, flags: int = 0x60, extra: bytes = b"", checksum: bytes = b"") -> bytes:
    """A frame with a header checksum of 0, which magic 0 alone takes; blocks have their sizes in front."""
    parts = [pack("<I", len(block)) + block + checksum for block in blocks]
    return pack("<IBB", 0x184D2204, flags, 0x40) + extra + b"\0" + b"".join(parts) + bytes(4)


# ---------------------------------------------------------------- both ways


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", NAMES)
def test_what_is_compressed_decompresses(codec: str, magic: int, content: str) -> None:
    plain = CONTENTS[content]
    packed = compress(codec, plain, magic)
    assert decompress(codec, packed, magic=magic) == plain
    assert decompress(codec, memoryview(packed), magic=magic) == plain


@pytest.mark.parametrize(
    ("codec", "magic", "front"),
    [
        ("none", 2, TEXT[:4]),
        ("gzip", 2, b"\x1f\x8b\x08"),
        ("snappy", 1, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"),
        ("lz4", 0, b"\x04\x22\x4d\x18\x60\x40\x1a"),  # the wrong checksum, as the official builder writes it
        ("lz4", 1, b"\x04\x22\x4d\x18\x60\x40\x82"),
        ("lz4", 2, b"\x04\x22\x4d\x18\x60\x40\x82"),
        ("zstd", 2, b"\x28\xb5\x2f\xfd"),
    ],
)
def test_the_form_is_the_one_of_kafka_s_java_client(codec: str, magic: int, front: bytes) -> None:
    assert compress(codec, TEXT * 50, magic).startswith(front)


def test_what_does_not_shrink_stands_as_it_is_in_lz4() -> None:
    plain = CONTENTS["random"]
    packed = compress("lz4", plain)
    assert len(packed) == 7 + 4 + 65536 + 4 + (len(plain) - 65536) + 4
    assert packed[7:11] == pack("<I", 65536 | 1 << 31)


@pytest.mark.parametrize(("attributes", "name"), [*enumerate(NAMES), (5, "codec 5"), (7, "codec 7"), (0x7B, "lz4")])
def test_names(attributes: int, name: str) -> None:
    assert name_of(attributes) == name


# ---------------------------------------------------------------- forms of other writers


@pytest.mark.parametrize(
    ("codec", "magic", "packed", "plain"),
    [
        ("snappy", 2, bytes(cramjam.snappy.compress_raw(TEXT)), TEXT),
        ("snappy", 2, xerial(TEXT, b"", b"more"), TEXT + b"more"),
        ("snappy", 2, xerial(), b""),
        ("gzip", 2, zlib.compress(TEXT, wbits=31) + zlib.compress(b"more", wbits=31), TEXT + b"more"),
        ("zstd", 2, bytes(cramjam.zstd.compress(TEXT)) + bytes(cramjam.zstd.compress(b"more")), TEXT + b"more"),
        ("zstd", 2, b"\x28\xb5\x2f\xfd\x00\x38" + b"\x23\x03\x00x", b"x" * 100),  # no content size: a run of 100
        ("lz4", 2, bytes(cramjam.lz4.compress(CONTENTS["zeros"])), CONTENTS["zeros"]),  # linked blocks
        ("lz4", 1, compress("lz4", TEXT) + compress("lz4", b"more"), TEXT + b"more"),
        ("lz4", 0, compress("lz4", TEXT, 1), TEXT),  # the right checksum, in magic 0
        ("lz4", 0, lz4_frame(lz4_block(TEXT), lz4_block(b"more")), TEXT + b"more"),
        ("lz4", 0, lz4_frame(lz4_block(TEXT), flags=0x68, extra=pack("<Q", len(TEXT))), TEXT),
        ("lz4", 0, lz4_frame(lz4_block(TEXT), lz4_block(b"more"), flags=0x70, checksum=b"csum"), TEXT + b"more"),
    ],
)  # fmt: skip
def test_what_others_write(codec: str, magic: int, packed: bytes, plain: bytes) -> None:
    assert decompress(codec, packed, magic=magic) == plain


# ---------------------------------------------------------------- what does not decompress


@pytest.mark.parametrize(
    ("codec", "magic", "packed", "error"),
    [
        ("brotli", 2, b"x", "unknown compression brotli"),
        ("codec 5", 2, b"x", "unknown compression codec 5"),
        ("snappy", 2, XERIAL, "a snappy stream of 8 bytes, its header takes 16"),
        ("snappy", 2, xerial() + pack(">i", 9) + b"12", "a snappy block claims 9 bytes, 2 are left"),
        ("snappy", 2, xerial() + pack(">i", -1), "a snappy block claims -1 bytes, 0 are left"),
        ("lz4", 0, b"no LZ4 frame", "not an LZ4 frame"),
        ("lz4", 0, lz4_frame() [:-4] + pack("<I", 9) + b"12", "an LZ4 block claims 9 bytes, 2 are left"),
    ],
)  # fmt: skip
def test_errors_of_our_own_readers(codec: str, magic: int, packed: bytes, error: str) -> None:
    with pytest.raises(CompressionError) as raised:
        decompress(codec, packed, magic=magic)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("codec", "magic", "packed"),
    [
        *((codec, 2, b"these bytes were never compressed") for codec in CODECS),
        ("lz4", 2, compress("lz4", TEXT, 0)),  # the wrong header checksum is magic 0's alone
        ("lz4", 0, lz4_frame(b"\xff\xff")),
        ("snappy", 2, xerial() + pack(">i", 2) + b"\xff\xff"),
        ("lz4", 0, b"\x04\x22"),
    ],
)
def test_errors_of_the_codecs_name_them(codec: str, magic: int, packed: bytes) -> None:
    with pytest.raises(CompressionError, match=f"^does not decompress as {codec}: "):
        decompress(codec, packed, magic=magic)


@pytest.mark.parametrize(("codec", "magic"), [("lz4", 0), *((codec, 2) for codec in CODECS)])
def test_prefixes_and_mutations_decompress_or_are_compression_errors(codec: str, magic: int) -> None:
    packed = compress(codec, TEXT * 20 + random.Random(1).randbytes(100), magic)
    draw = random.Random(codec)
    inputs = [packed[:size] for size in range(1, len(packed))]
    inputs += [damaged(packed, draw) for _ in range(1500)]
    failed = 0
    for one in inputs:
        try:
            assert len(decompress(codec, one, 10_000, magic)) <= 10_000
        except CompressionError:
            failed += 1
    assert failed > len(packed) // 2


def test_an_unknown_codec_is_not_written() -> None:
    with pytest.raises(KwireError) as raised:
        compress("brotli", b"x")
    assert str(raised.value) == "unknown compression brotli; there are none, gzip, snappy, lz4, zstd"


# ---------------------------------------------------------------- the bound


@pytest.mark.parametrize(
    ("codec", "magic", "packed"),
    [
        *((codec, 2, compress(codec, bytes(100_000))) for codec in CODECS),
        ("snappy", 2, bytes(cramjam.snappy.compress_raw(bytes(100_000)))),
        ("snappy", 2, xerial(bytes(60_000), bytes(40_000))),
        ("lz4", 0, compress("lz4", bytes(100_000), 0)),
        ("gzip", 2, compress("gzip", bytes(50_000)) * 2),
        ("zstd", 2, compress("zstd", bytes(50_000)) * 2),
    ],
)
def test_the_limit_is_exact(codec: str, magic: int, packed: bytes) -> None:
    assert decompress(codec, packed, 100_000, magic) == bytes(100_000)
    with pytest.raises(CompressionError) as raised:
        decompress(codec, packed, 99_999, magic)
    assert str(raised.value) == "decompresses to more than 99,999 bytes, the limit"


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb", ["gzip", "gzip members", "snappy", "xerial", "lz4", "lz4 of magic 0", "zstd", "zstd frames"]
)
def test_a_bomb_stops_at_the_bound_and_takes_little_memory(bomb: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, bomb], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    error = f"decompresses to more than {LIMIT:,} bytes, the limit"
    assert found["errors"] == {"decompress": error, "read_records": error, "annotate_records": error}
    assert found["claims"] >= 300 << 20
    assert found["peak"] < 200 << 20
