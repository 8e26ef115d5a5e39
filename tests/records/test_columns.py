"""Columns equal the objects, whatever the records are; what does not lie in the batch is an error of kwire's own."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

import random
from struct import pack, pack_into
from typing import Any

import numpy as np
import pytest
from vectors import jsonl

import kwire.records.columns as module
from kwire.errors import CompressionError, DecodeError, KwireError
from kwire.records import Record, build, read_records
from kwire.records.batch import SIZE
from kwire.records.columns import RecordColumns, columns

COUNT_AT = 57  # where a batch says how many records it has
DRAW = random.Random(4)
HEADERS: list[tuple[str, bytes | None]] = [("trace", b"x" * 70), ("", None), ("ключ", b"")]


def plain(n: int, key: bytes | None, value: bytes | None) -> Record:
    return Record(n, 1000, key, value, [])


SHAPES: dict[str, list[Record]] = {
    "none": [],
    "one": [plain(0, b"k", b"v")],
    "equal sizes": [plain(n % 60, b"key-%04d" % n, b"v" * 90) for n in range(500)],
    "growing offsets": [plain(n, b"key", b"value") for n in range(9000)],
    "growing deltas": [Record(n * 5, 1000 + n * 40, b"key", b"value", []) for n in range(2000)],
    "falling times": [Record(n, 10**12 - n * 10**9, b"k", b"v", []) for n in range(40)],
    "runs of two sizes": [plain(n, b"k", b"v" * (50 + n // 30 % 2)) for n in range(600)],
    "varied": [plain(n, b"key-%06d" % n, b"a" * DRAW.randrange(150)) for n in range(700)],
    "random bytes": [plain(n, None, DRAW.randbytes(DRAW.randrange(150))) for n in range(700)],
    "full of zeros": [plain(n, b"", bytes(DRAW.randrange(150))) for n in range(300)],
    "nulls": [plain(n, b"k" if n % 2 else None, b"v" if n % 3 else None) for n in range(100)],
    "the least": [plain(0, None, None)] * 300,
    "headers": [Record(n, n, b"k", b"v" * (n % 5), HEADERS[: n % 4]) for n in range(300)],
    "large": [plain(n, b"k" * 200, b"v" * size) for n, size in enumerate((10, 9000, 20_000, 3_000_000, 0))],
    "shuffled offsets": [plain(n ^ 21, b"k", b"v") for n in range(64)],
}


def of(found: RecordColumns) -> list[tuple[Any, ...]]:
    """What the columns say of each record, headers only counted."""

    def part(start: int, length: int) -> bytes | None:
        return None if length == -1 else found.buffer[start : start + length]

    rows = zip(*(column.tolist() for column in found[1:]), strict=True)
    return [
        (offset, time, part(key, key_size), part(value, value_size), count)
        for offset, time, key, key_size, value, value_size, count, _, _ in rows
    ]


def expected(records: list[Record]) -> list[tuple[Any, ...]]:
    return [(*record[:4], len(record.headers)) for record in records]


# ---------------------------------------------------------------- equal to the objects


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("shape", SHAPES)
def test_columns_equal_the_objects(shape: str, compression: str) -> None:
    raw = build(SHAPES[shape], compression=compression)
    found = columns(raw)
    assert all(column.dtype == np.int64 and column.shape == (len(SHAPES[shape]),) for column in found[1:])
    assert of(found) == expected(SHAPES[shape])


@pytest.mark.parametrize("what", ["CreateTime", "LogAppendTime", "large values", "idempotent", "transactional"])
def test_official_batches(what: str) -> None:
    rows = [row for row in jsonl("vectors/records") if row["what"].startswith("v2") and what in row["what"]]
    assert len(rows) >= 5
    for row in rows:
        raw = bytes.fromhex(row["hex"])
        assert of(columns(raw)) == expected(read_records(raw)[0].records), row["what"]


def test_log_append_time_counts_for_every_record() -> None:
    found = columns(build(SHAPES["growing deltas"], log_append_time=77))
    assert set(found.timestamps.tolist()) == {77}


def test_headers_lie_between_their_start_and_end() -> None:
    found = columns(build([Record(0, 0, b"k", b"v", [("a", b"1")]), Record(1, 0, b"k", b"v", [])]))
    slices = [found.buffer[start:end] for start, end in zip(found.header_starts, found.header_ends, strict=True)]
    assert (found.header_counts.tolist(), slices) == ([1, 0], [b"\x02a\x021", b""])


def test_a_batch_in_the_middle_of_bytes() -> None:
    first, second = build(SHAPES["varied"]), build(SHAPES["nulls"], compression="lz4")
    raw = b"junk" + first + second
    assert of(columns(raw, 4, 4 + len(first))) == expected(SHAPES["varied"])
    assert of(columns(raw, 4 + len(first))) == expected(SHAPES["nulls"])


@pytest.mark.parametrize("name", ["key", "value"])
def test_any_negative_length_is_null(name: str) -> None:
    record = bytes.fromhex("0c000000030500" if name == "key" else "0c000000017f00")
    assert of(columns(batch(record * 3, 3))) == [(0, 0, None, None, 0)] * 3


# ---------------------------------------------------------------- how the starts are found


@pytest.mark.parametrize("shape", SHAPES)
def test_walking_finds_the_same_starts(shape: str) -> None:
    raw, count = build(SHAPES[shape]), len(SHAPES[shape])
    assert module._starts(raw, SIZE, len(raw), count).tolist() == module._walk(raw, SIZE, len(raw), count).tolist()


@pytest.mark.parametrize(("shape", "guessed"), [("varied", True), ("random bytes", True), ("full of zeros", False)])
def test_a_guess_is_right_or_none(shape: str, guessed: bool) -> None:
    raw, count = build(SHAPES[shape]), len(SHAPES[shape])
    found = module._guess(np.frombuffer(raw, np.uint8), 61, len(raw), count)
    assert (found is not None) == guessed
    if found is not None:
        assert found.tolist() == module._walk(raw, 61, len(raw), count).tolist()
    assert module._guess(np.frombuffer(raw, np.uint8), 61, len(raw), count - 1) is None


@pytest.mark.parametrize("shape", ["equal sizes", "growing offsets"])
def test_runs_of_one_size_are_not_walked(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    walked: list[int] = []
    walk = module._walk
    monkeypatch.setattr(module, "_guess", lambda *_: None)
    monkeypatch.setattr(module, "_walk", lambda *given: (walked.append(given[-1]), walk(*given))[1])
    columns(build(SHAPES[shape]))
    assert walked == [0]


# ---------------------------------------------------------------- what is wrong


def batch(body: bytes, count: int, attributes: int = 0) -> bytes:
    """A batch of magic 2 around body; its checksum is not looked at."""
    return pack(">qiibIhiqqqhii", 0, len(body) + 49, 0, 2, 0, attributes, 0, 0, 0, -1, -1, -1, count) + body


GOOD = bytes.fromhex("0e00000001027600")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", "records: needs 61 bytes at offset 0, has 0"),
        (bytes(60), "records: needs 61 bytes at offset 0, has 60"),
        (bytes(61), "records: Magic: columns are of magic 2, this is 0"),
        (build([(b"k", b"v" * 90)], magic=1), "records: Magic: columns are of magic 2, this is 1"),
        *(
            (batch(body, count), f"records: {count:,} records do not lie in the batch")
            for body, count in [
                (b"", 1),
                (GOOD, 0),
                (GOOD, 2),
                (GOOD * 3, 2),
                (GOOD, -1),
                (GOOD, -(2**31)),
                (GOOD, 2**31 - 1),
                (GOOD + b"\0", 1),
                (GOOD[:-1], 1),
                (b"\x0f" + GOOD[1:], 1),  # a negative length
                (GOOD[:5] + b"\x7e" + GOOD[6:], 1),  # a value beyond the batch
                (b"\x0c" + GOOD[1:] + GOOD, 2),  # a record that is longer than it says
                (b"\x12" + GOOD[1:] + b"\0\0", 1),  # one that is shorter
                (GOOD[:7] + b"\x01", 1),  # a negative number of headers
                (GOOD[:1] + b"\0" + b"\x80" * 20, 1),  # a varint without an end
                (b"\xff" * 40, 1),
                (bytes(70), 10),  # records of no length
                (bytes(7 * 4000), 4000),
            ]
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_columns(raw: bytes, error: str) -> None:
    with pytest.raises(DecodeError) as raised:
        columns(raw)
    assert str(raised.value) == error


def test_what_does_not_decompress() -> None:
    with pytest.raises(CompressionError, match=r"^does not decompress as zstd: "):
        columns(batch(GOOD, 1, attributes=4))
    with pytest.raises(CompressionError) as raised:
        columns(build(SHAPES["full of zeros"], compression="lz4"), limit=1000)
    assert str(raised.value) == "decompresses to more than 1,000 bytes, the limit"


@pytest.mark.parametrize("shape", ["one", "nulls", "headers"])
def test_a_count_that_is_wrong_is_refused(shape: str) -> None:
    raw = bytearray(build(SHAPES[shape]))
    right = len(SHAPES[shape])
    for count in (right - 1, right + 1, 0, -right, right * 256):
        pack_into(">i", raw, COUNT_AT, count)
        with pytest.raises(DecodeError) as raised:
            columns(bytes(raw))
        assert str(raised.value) == f"records: {count:,} records do not lie in the batch"


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_every_prefix_is_refused(compression: str) -> None:
    raw = build(SHAPES["nulls"], compression=compression)
    for size in range(len(raw)):
        with pytest.raises(KwireError):
            columns(raw[:size])


@pytest.mark.parametrize("shape", ["varied", "nulls", "the least", "headers"])
def test_mutations_are_refused_or_equal_the_objects(shape: str) -> None:
    draw = random.Random(shape)
    raw = build(SHAPES[shape])
    equal = refused = 0
    for _ in range(150):
        changed = bytearray(raw)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(COUNT_AT, len(raw))] = draw.choice((0, 1, 2, 127, 128, 255, draw.randrange(256)))
        data = bytes(changed)
        (objects,) = read_records(data)
        try:
            found = columns(data)
        except KwireError:
            assert objects.note is not None
            refused += 1
            continue
        if objects.note is None:
            assert of(found) == expected(objects.records)
            equal += 1
        else:  # nothing but the headers, which columns do not look at
            assert bool((found.header_counts > 0).any())
    assert equal > 0 or shape == "the least"
    assert refused > 0
