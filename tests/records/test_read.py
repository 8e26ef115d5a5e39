"""Batches to objects: equal to the official reading of every vector; what is broken is said."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from struct import pack
from typing import Any

import pytest
from vectors import IN_HEADERS, damaged, jsonl

import kwire.records.read as module
from kwire.codec.thresholds import DEFAULT, ONE_BY_ONE
from kwire.errors import DecodeError, KwireError
from kwire.records import Batch, Batches, Record, build, read_records
from kwire.records.batch import crc32, crc32c
from kwire.records.compression import NAMES, compress
from kwire.records.read import walk

ROWS = {row["what"]: row for row in jsonl("vectors/records")}
HEADER_FIELDS = {
    "baseOffset": "base_offset", "lastOffset": "last_offset", "magic": "magic", "compression": "compression",
    "timestampType": "timestamp_type", "partitionLeaderEpoch": "partition_leader_epoch", "producerId": "producer_id",
    "producerEpoch": "producer_epoch", "baseSequence": "base_sequence", "lastSequence": "last_sequence",
    "isTransactional": "is_transactional", "isControl": "is_control", "crc": "crc", "valid": "crc_ok",
    "sizeInBytes": "size",
}  # fmt: skip


def raw_of(what: str) -> bytes:
    return bytes.fromhex(ROWS[what]["hex"])


def official(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def as_official(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": -1 if record.timestamp is None else record.timestamp,
        "key": official(record.key),
        "value": official(record.value),
        "headers": [{"key": key, "value": official(value)} for key, value in record.headers],
    }


def without_control_type(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "controlType"}


# ---------------------------------------------------------------- official vectors


@pytest.mark.parametrize("what", ROWS)
def test_reads_as_the_official_classes_do(what: str) -> None:
    row, found = ROWS[what], read_records(raw_of(what))
    assert found.truncated_bytes == row["truncatedBytes"]
    assert len(found) == len(row["batches"])
    for batch, expected in zip(found, row["batches"], strict=True):
        for name, ours in HEADER_FIELDS.items():
            assert getattr(batch, ours) == expected[name], name
        assert (-1 if batch.max_timestamp is None else batch.max_timestamp) == expected["maxTimestamp"]
        if batch.crc_ok:  # the official reader does not list records behind a wrong checksum
            assert batch.note is None
            assert [as_official(record) for record in batch.records] == [
                without_control_type(row) for row in expected["records"]
            ]


def test_the_vectors_have_every_magic_and_compression() -> None:
    found = {(batch.magic, batch.compression) for what in ROWS for batch in read_records(raw_of(what))}
    assert found == {(magic, name) for magic in (0, 1, 2) for name in NAMES} - {(0, "zstd"), (1, "zstd")}


def test_records_behind_a_wrong_checksum_are_read_all_the_same() -> None:
    (batch,) = read_records(raw_of("v2 wrong crc"))
    assert (batch.crc_ok, batch.note) == (False, "record 4 of 5 cannot be read")
    assert [record.offset for record in batch.records] == [1000, 1001, 1002, 1003]


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_takes_every_kind_of_bytes(form: Callable[[bytes], Any]) -> None:
    assert len(read_records(form(raw_of("several batches mixed")))) == 22


# ---------------------------------------------------------------- several batches, and a cut last one


def test_a_cut_at_any_place_leaves_out_the_last_batch_and_counts_its_bytes() -> None:
    whole = build([(b"k", b"v")], magic=1) + build([(b"key", b"value")])
    first = len(build([(b"k", b"v")], magic=1))
    for size in range(len(whole)):
        found = read_records(whole[:size])
        assert len(found) == (size >= first)
        assert found.truncated_bytes == size - first * len(found)


def test_walk_gives_the_place_of_each_whole_batch() -> None:
    one, two = build([(b"k", b"v")]), build([(b"k", b"v")], magic=0)
    assert list(walk(one + two + one[:30])) == [(0, len(one)), (len(one), len(one) + len(two))]


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (bytes(16) + b"\x03", "records: [0].Magic: magic 3, there are 0, 1 and 2"),
        (bytes(16) + b"\xff" + bytes(99), "records: [0].Magic: magic 255, there are 0, 1 and 2"),
        (pack(">qiib", 0, 48, 0, 2), "records: [0].BatchLength: a length of 48, the least for magic 2 is 49"),
        (pack(">qiib", 0, -5, 0, 2), "records: [0].BatchLength: a length of -5, the least for magic 2 is 49"),
        (pack(">qiib", 0, 21, 0, 1), "records: [0].BatchLength: a length of 21, the least for magic 1 is 22"),
        (pack(">qiib", 0, 13, 0, 0), "records: [0].BatchLength: a length of 13, the least for magic 0 is 14"),
        (build([(b"k", b"v")]) + bytes(16) + b"\x09", "records: [1].Magic: magic 9, there are 0, 1 and 2"),
        (
            pack(">qiIbbi", 0, 14, 0, 0, 0, 99) + bytes(4),
            "records: [0].Key: needs 99 bytes at offset 22, has 4",
        ),
    ],
)
def test_what_cannot_be_a_batch(raw: bytes, error: str) -> None:
    with pytest.raises(DecodeError) as raised:
        read_records(raw)
    assert str(raised.value) == error


# ---------------------------------------------------------------- what is broken inside a batch


def batch(body: bytes, count: int, attributes: int = 0) -> bytes:
    """A batch of magic 2 around body, with a right checksum."""
    covered = pack(">hiqqqhii", attributes, count - 1, 1000, 1000, -1, -1, -1, count) + body
    return pack(">qiibI", 50, len(covered) + 9, 0, 2, crc32c(covered)) + covered


GOOD = bytes.fromhex("0e00000001027600")  # key null, value "v"


@pytest.mark.parametrize(
    ("body", "count", "read", "note"),
    [
        (GOOD, 2, 1, "record 1 of 2 cannot be read"),
        (GOOD[:-1], 1, 0, "record 0 of 1 cannot be read"),
        (GOOD + b"\x0f" + GOOD[1:], 2, 1, "record 1 of 2 cannot be read"),  # a negative length
        (GOOD + b"\x0c" + GOOD[1:], 2, 1, "record 1 of 2 cannot be read"),  # a length that is one too small
        (GOOD + b"\x10" + GOOD[1:] + b"\0", 2, 1, "record 1 of 2 cannot be read"),  # one that is one too large
        (GOOD[:5] + b"\x7e" + GOOD[6:], 1, 0, "record 0 of 1 cannot be read"),  # a value beyond the batch
        (GOOD[:7] + b"\x01", 1, 0, "record 0 of 1 cannot be read"),  # a negative number of headers
        (GOOD[:7] + b"\x02", 1, 0, "record 0 of 1 cannot be read"),  # a header that is not there
        (b"\x80" * 11, 1, 0, "record 0 of 1 cannot be read"),  # a varint without an end
        (GOOD + b"\0\0", 1, 1, "records: left over behind the last record, in bytes: 2"),
        (b"", -3, 0, "records: RecordCount: a number of records of -3"),
        (b"", 1 << 30, 0, "record 0 of 1073741824 cannot be read"),
    ],
)
def test_what_can_be_read_stays_and_the_note_says_why_not_all(body: bytes, count: int, read: int, note: str) -> None:
    (found,) = read_records(batch(body, count))
    assert (found.crc_ok, found.base_offset, found.note) == (True, 50, note)
    assert found.records == [Record(50, 1000, None, b"v", [])] * read


def test_what_does_not_decompress_is_a_note() -> None:
    (found,) = read_records(batch(b"garbage", 1, attributes=5))
    assert (found.compression, found.records, found.note) == ("codec 5", [], "unknown compression codec 5")
    (found,) = read_records(batch(compress("zstd", bytes(500)), 1, attributes=4), limit=400)
    assert found.note == "decompresses to more than 400 bytes, the limit"


@pytest.mark.parametrize("name", ["key", "value"])
def test_any_negative_length_is_null(name: str) -> None:
    body = bytes.fromhex("0c000000030500" if name == "key" else "0c000000017f00")
    (found,) = read_records(batch(body, 1))
    assert (found.note, found.records) == (None, [Record(50, 1000, None, None, [])])


# ---------------------------------------------------------------- compressed messages of magic 0 and 1


def message(magic: int, value: bytes | None, attributes: int, offset: int = 9) -> bytes:
    covered = pack(">bb", magic, attributes) + (pack(">q", 700) if magic else b"") + pack(">i", -1)
    covered += pack(">i", -1) if value is None else pack(">i", len(value)) + value
    return pack(">qiI", offset, len(covered) + 4, crc32(covered)) + covered


INNER = {magic: message(magic, b"v", 0, 1) for magic in (0, 1)}
TWICE = compress("gzip", message(0, compress("gzip", INNER[0]), 1))
V2 = build([(b"k", b"v")])
LEFT = "records: [0]: left over behind the last whole message in it, in bytes:"


@pytest.mark.parametrize(
    ("magic", "value", "read", "note"),
    [
        (1, None, 0, "records: [0]: a compressed message without a value"),
        (1, b"garbage", 0, None),
        (0, TWICE, 0, "records: [0]: a compressed message inside a compressed one"),
        (1, compress("gzip", INNER[0]), 0, "records: [0]: magic 0 inside a compressed message of magic 1"),
        (1, compress("gzip", V2), 0, "records: [0]: magic 2 inside a compressed message of magic 1"),
        (1, compress("gzip", INNER[1] + bytes(9)), 1, f"{LEFT} 9"),
        (1, compress("gzip", INNER[1][:-1]), 0, f"{LEFT} {len(INNER[1]) - 1}"),
        (1, compress("gzip", bytes(16) + b"\x07"), 0, "records: [0].Magic: magic 7, there are 0, 1 and 2"),
    ],
)  # fmt: skip
def test_broken_wrappers(magic: int, value: bytes | None, read: int, note: str | None) -> None:
    (found,) = read_records(message(magic, value, 1))
    assert len(found.records) == read
    assert found.note == note if note else found.note and found.note.startswith("does not decompress as gzip: ")


@pytest.mark.parametrize(("magic", "offsets"), [(0, [1, 1]), (1, [9, 9])])
def test_offsets_inside_are_absolute_in_magic_0_and_count_back_from_the_wrapper_s_in_magic_1(
    magic: int, offsets: list[int]
) -> None:
    (found,) = read_records(message(magic, compress("gzip", INNER[magic] * 2), 1))
    assert [record.offset for record in found.records] == offsets
    assert (found.base_offset, found.last_offset) == (offsets[0], 9)


def test_the_wrapper_s_time_counts_with_log_append_time() -> None:
    inner = build([Record(0, 5, None, b"a", []), Record(1, 6, None, b"b", [])], magic=1)
    (created,), (appended,) = (read_records(message(1, compress("gzip", inner), bits)) for bits in (1, 9))
    assert [record.timestamp for record in created.records] == [5, 6]
    assert (appended.timestamp_type, [record.timestamp for record in appended.records]) == ("LogAppendTime", [700, 700])


# ---------------------------------------------------------------- large batches are read through columns


def shapes() -> Iterator[tuple[str, list[Record]]]:
    draw = random.Random(5)
    headers: list[tuple[str, bytes | None]] = [("trace", b"x"), ("", None), ("ключ", b"")]
    count = DEFAULT.records + 44
    yield "one size", [Record(n, 1000, b"key", b"value", []) for n in range(count)]
    yield "nulls", [Record(n, 1000 - n, None, b"v" if n % 3 else None, []) for n in range(count)]
    yield "headers", [Record(n * 3, n * n, b"", b"v" * (n % 200), headers[: n % 4]) for n in range(count)]
    yield "random", [Record(n, n, draw.randbytes(n % 9), draw.randbytes(draw.randrange(200)), []) for n in range(count)]


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize(("name", "records"), list(shapes()), ids=[name for name, _ in shapes()])
def test_large_batches_are_read_as_small_ones_are(
    monkeypatch: pytest.MonkeyPatch, name: str, records: list[Record], compression: str
) -> None:
    raw = build(records, compression=compression)
    by_columns = read_records(raw)
    monkeypatch.setattr(module, "_by_columns", None)
    assert by_columns[0].records == records == read_records(raw, thresholds=ONE_BY_ONE)[0].records, name


def test_large_broken_batches_are_read_as_small_ones_are() -> None:
    draw = random.Random(8)
    raw = build(dict(shapes())["headers"])
    inputs = []
    for _ in range(150):
        changed = bytearray(raw)
        for _ in range(10):
            changed[draw.randrange(61, len(raw))] ^= 1 << draw.randrange(8)
        inputs.append(bytes(changed))
    by_columns = [read_records(one) for one in inputs]
    assert sum(found[0].note is not None for found in by_columns) > 20
    assert by_columns == [read_records(one, thresholds=ONE_BY_ONE) for one in inputs]


# ---------------------------------------------------------------- hostile bytes


def small() -> list[str]:
    """Vectors of every magic and compression, small enough for every prefix of them."""
    return [what for what, row in ROWS.items() if "one record" in what or "control" in what or "empty" in what]


@pytest.mark.parametrize("what", small())
def test_a_prefix_of_one_batch_holds_no_batch(what: str) -> None:
    raw = raw_of(what)
    for size in range(len(raw)):
        found = read_records(raw[:size])
        assert (list(found), found.truncated_bytes) == ([], size)


def test_mutations_are_read_or_raise_kwire_s_own_errors() -> None:
    draw = random.Random(20)
    raws = [raw_of(what) for what in ROWS if 0 < len(raw_of(what)) < 5000]
    read = refused = 0
    for _ in range(6000):
        try:
            found = read_records(damaged(draw.choice(raws), draw, IN_HEADERS))
        except KwireError:
            refused += 1
        else:
            assert isinstance(found, Batches)
            assert all(isinstance(batch, Batch) for batch in found)
            read += 1
    assert read > 2000
    assert refused > 200
