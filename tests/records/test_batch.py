"""The header of a batch of magic 2: its fields and flags, the checksums, sequences, attributes in words."""

from __future__ import annotations

from struct import pack

import numpy as np
import pytest

from kwire.records.batch import (
    FORMATS,
    HEADER,
    OFFSETS,
    SIZE,
    Header,
    attribute_words,
    crc32,
    crc32c,
    read_header,
    sequence_after,
)

FIELDS = Header(1000, 49, 11, 2, 0xDEADBEEF, 0, 4, 1700000000000, 1700000000009, 77, 3, 2147483646, 5)


def test_numpy_reads_the_same_fields() -> None:
    dtype = np.dtype([(name, ">" + letter) for name, letter in zip(Header._fields, FORMATS, strict=True)])
    assert dtype.itemsize == SIZE
    assert np.frombuffer(HEADER.pack(*FIELDS), dtype)[0].tolist() == FIELDS
    assert {name: dtype.fields[name][1] for name in Header._fields} == OFFSETS  # type: ignore[index]
    assert (OFFSETS["magic"], OFFSETS["attributes"], OFFSETS["record_count"]) == (16, 21, 57)


def test_a_header_is_61_bytes_and_reads_back() -> None:
    raw = b"\xaa" * 7 + HEADER.pack(*FIELDS)
    assert len(raw) == 7 + SIZE == 7 + 61
    assert read_header(raw, 7) == FIELDS
    assert read_header(memoryview(raw), 7) == FIELDS


@pytest.mark.parametrize(
    ("bits", "compression", "append", "transactional", "control", "horizon"),
    [
        (0x00, "none", False, False, False, False),
        (0x01, "gzip", False, False, False, False),
        (0x0A, "snappy", True, False, False, False),
        (0x13, "lz4", False, True, False, False),
        (0x34, "zstd", False, True, True, False),
        (0x45, "codec 5", False, False, False, True),
        (0x7F, "codec 7", True, True, True, True),
    ],
)
def test_flags(bits: int, compression: str, append: bool, transactional: bool, control: bool, horizon: bool) -> None:
    header = FIELDS._replace(attributes=bits)
    assert header.compression == compression
    assert (header.log_append_time, header.is_transactional) == (append, transactional)
    assert (header.is_control, header.has_delete_horizon) == (control, horizon)


@pytest.mark.parametrize(
    ("attributes", "magic", "words"),
    [
        (0, 0, "not compressed"),
        (1, 0, "gzip"),
        (8, 0, "not compressed, unused bits 0x8"),
        (0, 1, "not compressed, create time"),
        (0x0A, 1, "snappy, log append time"),
        (0x10, 1, "not compressed, create time, unused bits 0x10"),
        (0, 2, "not compressed, create time"),
        (0x7C, 2, "zstd, log append time, transactional, control, delete horizon"),
        (0x80, 2, "not compressed, create time, unused bits 0x80"),
        (-32768, 2, "not compressed, create time, unused bits 0x8000"),
        (6, 2, "codec 6, create time"),
    ],
)
def test_attributes_in_words(attributes: int, magic: int, words: str) -> None:
    assert attribute_words(attributes, magic) == words


@pytest.mark.parametrize(
    ("data", "castagnoli", "zlib"),
    [
        (b"", 0, 0),
        (b"123456789", 0xE3069283, 0xCBF43926),  # the check values of both polynomials
        (bytes(32), 0x8A9136AA, 0x190A55AD),  # RFC 3720, B.4
    ],
)
def test_checksums(data: bytes, castagnoli: int, zlib: int) -> None:
    assert crc32c(data) == crc32c(memoryview(data)) == castagnoli
    assert crc32(data) == crc32(memoryview(data)) == zlib


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(0, 0, 0), (5, 4, 9), (-1, 4, -1), (2147483647, 0, 2147483647), (2147483647, 1, 0), (2147483640, 10, 2)],
)
def test_sequences_wrap_to_zero(base: int, delta: int, last: int) -> None:
    assert sequence_after(base, delta) == last


def test_the_header_s_places() -> None:
    raw = pack(">qiib", 1, 2, 3, 2) + pack(">I", 4) + pack(">hiqqqhii", 5, 6, 7, 8, 9, 10, 11, 12)
    assert read_header(raw, 0) == Header(1, 2, 3, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)
