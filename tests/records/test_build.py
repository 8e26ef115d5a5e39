"""Records to bytes: uncompressed official batches are rebuilt byte for byte, every codec and magic reads back."""

# mypy: disable-error-code="arg-type, no-untyped-call"

from __future__ import annotations

import random
from typing import Any

import pytest
from vectors import jsonl

from kwire.errors import KwireError
from kwire.records import Batch, Record, build, read_records
from kwire.records.annotate import annotate_records

ROWS = {row["what"]: row for row in jsonl("vectors/records")}
EVERY = [
    (magic, codec)
    for magic in (0, 1, 2)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    if magic == 2 or codec != "zstd"
]


def rebuildable() -> list[str]:
    """Whole uncompressed batches that a builder wrote; a compacted batch keeps offsets of records that are gone."""
    out = []
    for what, row in ROWS.items():
        codecs = {batch["compression"] for batch in row["batches"]}
        if codecs == {"none"} and not row["truncatedBytes"] and "empty" not in what and "wrong crc" not in what:
            out.append(what)
    return out


def original_times(raw: bytes, records: list[Record]) -> list[Record]:
    """The records with the times that they were given before the broker's log append time took their place."""
    (batch,) = annotate_records(raw)
    (base,) = (span.value for span in batch.children if span.name == "BaseTimestamp")
    deltas = [span.value for span in batch.below() if span.name == "TimestampDelta"]
    assert isinstance(base, int)
    return [
        record._replace(timestamp=base + delta)
        for record, delta in zip(records, deltas, strict=True)
        if isinstance(delta, int)
    ]


def rebuilt(batch: Batch, records: list[Record]) -> bytes:
    return build(
        records,
        magic=batch.magic,
        base_offset=batch.base_offset,
        log_append_time=batch.max_timestamp if batch.timestamp_type == "LogAppendTime" else None,
        partition_leader_epoch=batch.partition_leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )


# ---------------------------------------------------------------- byte for byte


@pytest.mark.parametrize("what", rebuildable())
def test_an_uncompressed_official_batch_is_rebuilt_byte_for_byte(what: str) -> None:
    raw = bytes.fromhex(ROWS[what]["hex"])
    made, at = b"", 0
    for batch in read_records(raw):
        records = batch.records
        if batch.magic == 2 and batch.timestamp_type == "LogAppendTime":
            records = original_times(raw[at : at + batch.size], records)
        made += rebuilt(batch, records)
        at += batch.size
    assert made == raw


def test_that_covers_every_magic_time_and_kind() -> None:
    whats = " ".join(rebuildable())
    assert len(rebuildable()) == 22
    needed = ("v0", "v1", "v2", "LogAppendTime", "CreateTime", "control", "transactional", "idempotent")
    assert [word for word in needed if word not in whats] == []


def test_a_compacted_batch_without_records() -> None:
    raw = build([], base_offset=7)
    (batch,) = read_records(raw)
    assert (len(raw), batch.base_offset, batch.last_offset, batch.records) == (61, 7, 7, [])
    assert (batch.crc_ok, batch.max_timestamp, batch.note) == (True, -1, None)


# ---------------------------------------------------------------- what is built reads back


def some_records(headers: bool) -> list[Record]:
    draw = random.Random(6)
    more: list[tuple[str, bytes | None]] = [("trace", b"\0\1"), ("ключ", None)] if headers else []
    return [
        Record(
            40 + n,
            1_700_000_000_000 + draw.randrange(-5000, 5000),
            None if n % 4 == 0 else draw.randbytes(n % 9),
            None if n % 5 == 0 else b"text " * draw.randrange(90) + draw.randbytes(n),
            more[: n % 3],
        )
        for n in range(40)
    ]


@pytest.mark.parametrize("stamp", [None, 1_700_000_009_999])
@pytest.mark.parametrize(("magic", "codec"), EVERY)
def test_what_is_built_reads_back(magic: int, codec: str, stamp: int | None) -> None:
    records = some_records(headers=magic == 2)
    found = read_records(build(records, magic=magic, compression=codec, log_append_time=stamp))
    assert all(batch.crc_ok and batch.note is None and batch.compression == codec for batch in found)
    assert len(found) == (len(records) if magic < 2 and codec == "none" else 1)
    time = {0: lambda _: None, 1: lambda own: stamp or own, 2: lambda own: stamp or own}[magic]
    assert [record for batch in found for record in batch.records] == [
        record._replace(timestamp=time(record.timestamp)) for record in records
    ]


@pytest.mark.parametrize("stamp", [None, 1_700_000_009_999])
@pytest.mark.parametrize(("magic", "codec"), EVERY)
def test_kafka_python_reads_what_is_built(magic: int, codec: str, stamp: int | None) -> None:
    memory = pytest.importorskip("kafka.record.memory_records", reason="kafka-python is not installed")
    codecs = pytest.importorskip("kafka.codec")
    if codec != "none" and not getattr(codecs, f"has_{codec}")():
        pytest.skip(f"kafka-python has no {codec} here")
    if (magic, codec) == (0, "lz4"):
        pytest.importorskip("xxhash", reason="kafka-python reads lz4 of magic 0 with xxhash, which is not installed")
    records = some_records(headers=magic == 2)
    batches = memory.MemoryRecords(build(records, magic=magic, compression=codec, log_append_time=stamp))
    found = []
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in batch]
    assert found == [
        (record.offset, None if magic == 0 else stamp or record.timestamp, *record[2:]) for record in records
    ]


# ---------------------------------------------------------------- what is given


def test_pairs_get_offsets_and_one_time() -> None:
    (batch,) = read_records(build([(b"a", b"1"), (None, b"2"), (b"c", None)], base_offset=9, timestamp=5000))
    assert batch.records == [
        Record(9, 5000, b"a", b"1", []),
        Record(10, 5000, None, b"2", []),
        Record(11, 5000, b"c", None, []),
    ]


def test_pairs_begin_at_offset_and_time_zero() -> None:
    (batch,) = read_records(build(iter([(b"a", b"1")])))
    assert (batch.base_offset, batch.records) == (0, [Record(0, 0, b"a", b"1", [])])


def test_records_keep_their_offsets_and_the_base_is_the_first_one_s() -> None:
    records = [Record(20, 1, None, b"a", []), Record(25, 3, None, b"b", [])]
    (batch,) = read_records(build(records))
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (20, 25, 3)
    assert batch.records == records
    (batch,) = read_records(build(records, base_offset=10))
    assert (batch.base_offset, batch.last_offset, batch.records) == (10, 25, records)


def test_a_time_of_none_is_written_as_none() -> None:
    (batch,) = read_records(build([Record(0, None, b"k", b"v", [])]))
    assert [record.timestamp for record in batch.records] == [-1]


def test_the_flags_and_the_producer() -> None:
    (batch,) = read_records(
        build([(b"k", b"v")], compression="zstd", partition_leader_epoch=3, producer_id=77, producer_epoch=2,
              base_sequence=2147483647, is_transactional=True, is_control=True, log_append_time=9)
    )  # fmt: skip
    assert (batch.compression, batch.timestamp_type, batch.max_timestamp) == ("zstd", "LogAppendTime", 9)
    assert (batch.partition_leader_epoch, batch.producer_id, batch.producer_epoch) == (3, 77, 2)
    assert (batch.base_sequence, batch.last_sequence) == (2147483647, 2147483647)
    assert (batch.is_transactional, batch.is_control) == (True, True)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1])
def test_no_records_are_no_messages(magic: int, codec: str) -> None:
    assert build([], magic=magic, compression=codec) == b""


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"magic": 3}, "no magic 3; there are 0, 1 and 2"),
        ({"magic": -1}, "no magic -1; there are 0, 1 and 2"),
        ({"compression": "brotli"}, "unknown compression brotli; there are none, gzip, snappy, lz4, zstd"),
        ({"magic": 1, "compression": "zstd"}, "zstd needs magic 2"),
        ({"magic": 0, "compression": "zstd"}, "zstd needs magic 2"),
        ({"magic": 1, "producer_id": 5}, "magic 1 has no headers, producers, transactions or control batches"),
        ({"magic": 0, "is_control": True}, "magic 0 has no headers, producers, transactions or control batches"),
        ({"magic": 1, "is_transactional": True}, "magic 1 has no headers, producers, transactions or control batches"),
    ],
)
def test_what_a_magic_cannot_hold(options: dict[str, Any], error: str) -> None:
    with pytest.raises(KwireError) as raised:
        build([(b"k", b"v")], **options)
    assert str(raised.value) == error


def test_a_message_has_no_headers() -> None:
    with pytest.raises(KwireError) as raised:
        build([Record(0, 0, b"k", b"v", [("a", b"1")])], magic=1)
    assert str(raised.value) == "magic 1 has no headers, producers, transactions or control batches"


@pytest.mark.parametrize(
    ("magic", "options"),
    [
        (2, {"base_offset": 1 << 63}),
        (2, {"producer_epoch": 1 << 15}),
        (2, {"base_sequence": 1 << 31}),
        (2, {"log_append_time": 1 << 63}),
        (1, {"base_offset": 1 << 63}),
        (1, {"timestamp": -1 << 64}),
    ],
)
def test_numbers_that_do_not_fit(magic: int, options: dict[str, int]) -> None:
    with pytest.raises(KwireError, match=r"^a number does not fit: "):
        build([(b"k", b"v")], magic=magic, **options)
