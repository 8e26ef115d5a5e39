"""The codecs without cramjam against those of cramjam: the same bytes from all that is whole, an error and no more than
the limit from what is damaged."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from functools import partial
from struct import pack
from typing import Any

import cramjam
import pytest
from vectors import damaged

from kwire.errors import CompressionError
from kwire.records import plain_codecs
from kwire.records.batch import crc32c, plain_crc32c
from kwire.records.codecs import codecs
from kwire.records.compression import compress

DRAW = random.Random(5)
CONTENTS = {
    "a byte": b"x",
    "text": b'{"order": 1, "state": "paid"}\n' * 50,
    "zeros": bytes(300_000),
    "random": DRAW.randbytes(70_000),
    "mixed": b"".join(DRAW.choice([b"orders", b"-", bytes(9), DRAW.randbytes(5)]) for _ in range(20_000)),
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: bytes(cramjam.gzip.compress(data)),
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),  # blocks that reach back into earlier ones
    "lz4 of Kafka": lambda data: compress("lz4", data),
    "lz4_block": lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
}


def _plain(name: str, packed: bytes, limit: int) -> bytes:
    data: bytes = getattr(plain_codecs, name.partition(" ")[0])(packed, limit)
    return data


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("codec", PACKED)
def test_the_same_as_cramjam(codec: str, content: str) -> None:
    data = CONTENTS[content]
    assert _plain(codec, PACKED[codec](data), len(data)) == data


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])
def test_frames_in_a_row(codec: str) -> None:
    pack_it = PACKED[codec]
    assert _plain(codec, pack_it(b"one") + pack_it(b"two"), 6) == b"onetwo"


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_of_many_small_frames_only_pieces_are_copied(codec: str) -> None:
    """Not all that is left at the end of each."""
    packed = PACKED[codec](b"x") * 5_000
    begin = {"gzip": zlib.decompressobj, "zstd": plain_codecs._zstd().ZstdDecompressor}[codec]
    copied = 0

    class Counting:
        def __init__(self, **how: int) -> None:
            self._frame = begin(**how)

        def decompress(self, data: bytes, most: int) -> bytes:
            plain: bytes = self._frame.decompress(data, most)
            nonlocal copied
            copied += len(self._frame.unused_data)
            return plain

        def __getattr__(self, name: str) -> Any:
            return getattr(self._frame, name)

    out = plain_codecs._frames(packed, 10_000, partial(Counting, **({"wbits": 31} if codec == "gzip" else {})), OSError)
    assert out == b"x" * 5_000
    assert copied <= 5_001 * plain_codecs.PIECE


@pytest.mark.parametrize("codec", PACKED)
def test_no_more_than_the_limit(codec: str) -> None:
    with pytest.raises((CompressionError, ValueError), match=r"more than"):
        _plain(codec, PACKED[codec](bytes(300_000)), 100_000)


@pytest.mark.parametrize("codec", PACKED)
def test_what_is_damaged_is_an_error_or_the_content(codec: str) -> None:
    """What both read is the same; checksums of content are read by cramjam alone."""
    packed = PACKED[codec](CONTENTS["text"] + DRAW.randbytes(100))
    inputs = [packed[:size] for size in range(1, len(packed))] + [damaged(packed, DRAW) for _ in range(500)]
    reference = getattr(codecs(), codec.partition(" ")[0])
    for one in inputs:
        try:
            read = _plain(codec, one, 10_000)
        except (CompressionError, ValueError, IndexError):
            continue
        assert len(read) <= 10_000
        try:
            expected = reference(one, 10_000)
        except (CompressionError, codecs().error):
            continue
        assert read == expected


def test_a_skippable_frame_of_lz4_is_passed_over() -> None:
    assert plain_codecs.lz4(pack("<II", 0x184D2A50, 3) + b"abc" + compress("lz4", b"text"), 100) == b"text"


@pytest.mark.parametrize("data", [b"", b"x", b"123456789", DRAW.randbytes(1000)], ids=len)
def test_the_checksum(data: bytes) -> None:
    assert plain_crc32c(0, data) == crc32c(data)


def test_the_checksum_of_the_standard() -> None:
    assert plain_crc32c(0, b"123456789") == 0xE3069283
    assert zlib.crc32(b"123456789") != plain_crc32c(0, b"123456789")
