"""A broker's files as span trees; the numbers of the real ones are what kafka-dump-log (4.3.1) prints of them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from struct import pack

import pytest
from spans import gap
from vectors import damaged

from kwire.codec.annotate import MAX_SPANS
from kwire.codec.span import UNDECODED, Span
from kwire.errors import UnknownName
from kwire.payloads import files
from kwire.payloads.files import KINDS, kind_of, open_file
from kwire.records.annotate import CUT

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
ZERO = "00000000000000000000"
METADATA, OUT = "__cluster_metadata-0", "transactions-out-0"
ALL = sorted(str(path.relative_to(LOGS)) for path in LOGS.rglob("*") if path.is_file())

# path, title, text, batches, records
SEGMENTS = [
    ("__consumer_offsets-0/" + ZERO + ".log", "log segment", "17 batches of __consumer_offsets", 17, 39),
    ("__consumer_offsets-1/" + ZERO + ".log", "log segment", "19 batches of __consumer_offsets", 19, 39),
    ("__consumer_offsets-3/" + ZERO + ".log", "log segment", "7 batches of __consumer_offsets", 7, 16),
    ("__transaction_state-1/" + ZERO + ".log", "log segment", "11 batches of __transaction_state", 11, 11),
    ("__share_group_state-2/" + ZERO + ".log", "log segment", "5 batches of __share_group_state", 5, 5),
    (METADATA + "/" + ZERO + ".log", "log segment", "239 batches of __cluster_metadata", 239, 352),
    (METADATA + "/" + ZERO + "-0000000000.checkpoint", "metadata snapshot", "2 batches of __cluster_metadata", 2, 4),
    ("bootstrap.checkpoint", "metadata snapshot", "3 batches of __cluster_metadata", 3, 8),
    (OUT + "/" + ZERO + ".log", "log segment", "8 batches of transactions-out", 8, 29),
    ("share-jobs-1/" + ZERO + ".log", "log segment", "3 batches of share-jobs", 3, 32),
    ("classic-orders-1/" + ZERO + ".log", "log segment", "1 batch of classic-orders", 1, 51),
    ("kafka-python-orders-0/" + ZERO + ".log", "log segment", "1 batch of kafka-python-orders", 1, 22),
]


def read(path: str) -> Span:
    found = kind_of(path)
    assert found is not None
    return open_file((LOGS / path).read_bytes(), found[0], path)


def opened(span: Span) -> Counter[str]:
    """How many keys and values were opened (or are tombstones), by what they are."""
    values = (s for s in span.below() if s.name in ("Key", "Value") and (s.children or s.text == "tombstone"))
    return Counter(str(s.text) for s in values)


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("path", ALL)
def test_a_real_file_opens_whole(path: str) -> None:
    span, data = read(path), (LOGS / path).read_bytes()
    assert span.broken() is None
    assert (span.type, span.start, span.end) == ("message", 0, len(data))
    assert [s.note for s in span.below() if s.note] == []
    assert gap([span], 0, len(data)) is None


@pytest.mark.parametrize(("path", "title", "text", "batches", "records"), SEGMENTS)
def test_batches_and_records_are_those_of_kafka_dump_log(
    path: str, title: str, text: str, batches: int, records: int
) -> None:
    span = read(path)
    types = Counter(s.type for s in span.below())
    assert (span.name, span.text, types["batch"], types["record"]) == (title, text, batches, records)
    assert [s.text for s in span.below() if s.name == "Crc"] == ["right"] * batches


@pytest.mark.parametrize(
    ("path", "types"),
    [
        (SEGMENTS[0][0], {"OffsetCommitValue v4": 7, "ConsumerGroupMetadataValue v0": 4, "tombstone": 6}),
        (SEGMENTS[1][0], {"GroupMetadataValue v3": 10, "ShareGroupMetadataValue v0": 4, "EndTxnMarker v0": 1}),
        (SEGMENTS[2][0], {"StreamsGroupTopologyValue v0": 1, "OffsetCommitKey": 4, "tombstone": 3}),
        (SEGMENTS[3][0], {"TransactionLogKey": 11, "TransactionLogValue v1": 11}),
        (SEGMENTS[4][0], {"ShareSnapshotValue v0": 1, "ShareUpdateValue v0": 4}),
        (SEGMENTS[5][0], {"TopicRecord v0": 15, "PartitionRecord v2": 37, "NoOpRecord v0": 222, "VotersRecord v0": 1}),
        (SEGMENTS[6][0], {"SnapshotHeaderRecord v0": 1, "KRaftVersionRecord v0": 1, "SnapshotFooterRecord v0": 1}),
        (SEGMENTS[7][0], {"FeatureLevelRecord v0": 6, "SnapshotFooterRecord v0": 1}),
        (SEGMENTS[8][0], {"EndTxnMarker v0": 4}),
    ],
)
def test_records_of_internal_topics_are_opened(path: str, types: dict[str, int]) -> None:
    found = opened(read(path))
    assert {name: found[name] for name in types} == types


@pytest.mark.parametrize(
    ("path", "title", "text", "entries"),
    [
        (
            METADATA + "/" + ZERO + ".index",
            "offset index",
            "5 entries, from offset 0",
            [
                "offset 56, position 4130",
                "offset 114, position 8323",
                "offset 171, position 12427",
                "offset 229, position 16674",
                "offset 287, position 20798",
            ],
        ),
        (
            "__consumer_offsets-1/" + ZERO + ".index",
            "offset index",
            "1 entry, from offset 0",
            ["offset 36, position 4137"],
        ),
        (
            "__consumer_offsets-1/" + ZERO + ".timeindex",
            "time index",
            "2 entries, from offset 0",
            ["2026-11-21 02:17:40.647Z, offset 36", "2026-11-21 02:17:40.674Z, offset 38"],
        ),
        (
            OUT + "/" + ZERO + ".timeindex",
            "time index",
            "1 entry, from offset 0",
            ["2026-11-21 02:17:41.311Z, offset 28"],
        ),
        (
            OUT + "/" + ZERO + ".txnindex",
            "transaction index",
            "2 aborted transactions, from offset 0",
            ["producer id 6 aborted offsets 9 to 15", "producer id 8 aborted offsets 27 to 28"],
        ),
    ],
)
def test_entries_of_an_index(path: str, title: str, text: str, entries: list[str]) -> None:
    span = read(path)
    assert (span.name, span.text, [entry.text for entry in span.children]) == (title, text, entries)


def test_a_time_indexs_numbers_are_those_of_kafka_dump_log() -> None:
    span = read(METADATA + "/" + ZERO + ".timeindex")
    assert [tuple(leaf.value for leaf in entry.children) for entry in span.children] == [
        (1795227383077, 56), (1795227406700, 114), (1795227435225, 171),
        (1795227447734, 229), (1795227469258, 287), (1795227480351, 351),
    ]  # fmt: skip


def test_an_index_leads_to_batches_of_its_log() -> None:
    starts = {batch.start: batch for batch in read(SEGMENTS[5][0]).children}
    for entry in read(METADATA + "/" + ZERO + ".index").children:
        offset, position = (leaf.value for leaf in entry.children)
        batch = {leaf.name: leaf.value for leaf in starts[position].children}  # type: ignore[index]
        assert batch["BaseOffset"] + batch["LastOffsetDelta"] == offset  # type: ignore[operator]


def test_aborted_transactions() -> None:
    entries = read(OUT + "/" + ZERO + ".txnindex").children
    names = ["version", "ProducerId", "FirstOffset", "LastOffset", "LastStableOffset"]
    assert [[leaf.name for leaf in entry.children] for entry in entries] == [names, names]
    assert [[leaf.value for leaf in entry.children] for entry in entries] == [[0, 6, 9, 15, 16], [0, 8, 27, 28, 29]]


@pytest.mark.parametrize(
    ("path", "text", "producers"),
    [
        (
            OUT + "/00000000000000000029.snapshot",
            "2 producers at offset 29",
            [[6, 3, -1, -1, 0, 1795227460667, 0, -1], [8, 1, -1, -1, 0, 1795227461311, 0, -1]],
        ),
        (
            "share-jobs-1/00000000000000000032.snapshot",
            "2 producers at offset 32",
            [[2, 0, 10, 10, 9, 1795227435955, -1, -1], [3, 0, 20, 31, 20, 1795227442040, -1, -1]],
        ),
        (METADATA + "/00000000000000000352.snapshot", "0 producers at offset 352", []),
    ],
)
def test_producer_snapshots(path: str, text: str, producers: list[list[int]]) -> None:
    span = read(path)
    version, crc, entries = span.children
    assert (span.name, span.text, version.value, crc.text) == ("producer snapshot", text, 1, "right")
    assert [[leaf.value for leaf in entry.children] for entry in entries.children] == producers


# ---------------------------------------------------------------- kinds, names, topics


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/kafka/__consumer_offsets-3/" + ZERO + ".log", ("log", "__consumer_offsets")),
        ("__cluster_metadata-0/000.log", ("log", "__cluster_metadata")),
        ("orders-v2-11/" + ZERO + ".index", ("index", "orders-v2")),
        ("C:\\kafka\\orders-0\\" + ZERO + ".timeindex", ("timeindex", "orders")),
        ("orders-0.0123456789abcdef0123456789abcdef-delete/" + ZERO + ".log", ("log", "orders")),
        ("orders-0.0123456789abcdef0123456789abcdef-future/" + ZERO + ".log", ("log", "orders")),
        ("orders-0/" + ZERO + ".txnindex.deleted", ("txnindex", "orders")),
        ("orders-0/" + ZERO + ".log.cleaned", ("log", "orders")),
        ("data/" + ZERO + ".snapshot", ("snapshot", None)),
        (ZERO + ".log", ("log", None)),
        (ZERO + "-0000000000.checkpoint", ("log", "__cluster_metadata")),
        ("data/bootstrap.checkpoint", ("log", "__cluster_metadata")),
        (ZERO + "-0000000007-123456.checkpoint.part", ("log", "__cluster_metadata")),
        ("server.log", None),
        ("orders-0/leader-epoch-checkpoint", None),
        ("orders-0/partition.metadata", None),
        ("replication-offset-checkpoint", None),
        (ZERO + ".logs", None),
        ("", None),
    ],
)
def test_a_path_tells_kind_and_topic(path: str, expected: tuple[str, str | None] | None) -> None:
    assert kind_of(path) == expected


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"^no kind of log file logs; did you mean log, index, timeindex, "):
        open_file(b"", "logs")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "snapshot"])
def test_an_empty_file_is_no_fault(kind: str) -> None:
    span = open_file(b"", kind)
    assert (span.start, span.end, span.children, span.text) == (0, 0, (), "empty")


def test_a_log_of_unknown_topic_keeps_keys_and_values_as_bytes() -> None:
    data = (LOGS / SEGMENTS[3][0]).read_bytes()
    bare = open_file(data, "log")
    assert (bare.text, opened(bare)) == ("11 batches", Counter())
    assert opened(open_file(data, "log", topic="__transaction_state")) == opened(read(SEGMENTS[3][0]))
    assert opened(open_file(data, "log", SEGMENTS[3][0], topic="orders")) == Counter()


@pytest.mark.parametrize(
    ("name", "text", "entry"),
    [
        ("00000000000000001000.index", "1 entry, from offset 1000", "offset 1056, position 4130"),
        ("orders-0/00000000000000001000.index.deleted", "1 entry, from offset 1000", "offset 1056, position 4130"),
        ("1000.index", "1 entry", "base offset + 56, position 4130"),
        (None, "1 entry", "base offset + 56, position 4130"),
    ],
)
def test_relative_offsets_count_from_the_files_name(name: str | None, text: str, entry: str) -> None:
    span = open_file(pack(">ii", 56, 4130), "index", name)
    assert (span.text, span.children[0].text) == (text, entry)


# ---------------------------------------------------------------- preallocated, cut, damaged


@pytest.mark.parametrize(
    ("kind", "data", "types"),
    [
        ("index", pack(">ii", 1, 256) + bytes(24), [("struct", 0, 8), ("zeros", 8, 32)]),
        ("index", pack(">ii", 1, 256) + bytes(29), [("struct", 0, 8), ("zeros", 8, 37)]),
        ("index", bytes(16), [("zeros", 0, 16)]),
        ("index", bytes(8), [("struct", 0, 8)]),
        ("index", pack(">ii", 1, 256) + bytes(7), [("struct", 0, 8), (UNDECODED, 8, 15)]),
        ("timeindex", pack(">qi", 7, 256) + bytes(36), [("struct", 0, 12), ("zeros", 12, 48)]),
        ("timeindex", bytes(12), [("struct", 0, 12)]),
        ("log", bytes(4096), [("zeros", 0, 4096)]),
        ("log", bytes(16), [(CUT, 0, 16)]),
    ],
)
def test_zeros_behind_the_last_entry_are_one_span(kind: str, data: bytes, types: list[tuple[str, int, int]]) -> None:
    span = open_file(data, kind)
    assert [(child.type, child.start, child.end) for child in span.children] == types


def test_a_preallocated_tail_says_why() -> None:
    index = open_file(pack(">ii", 1, 256) + bytes(800), "index").children[-1]
    assert (index.name, index.value, index.text) == ("preallocated", 800, "800 bytes")
    why = "the segment is being written to, or the broker did not close it"
    assert index.note == f"zeros, preallocated and not yet used: {why}"
    log = open_file((LOGS / SEGMENTS[11][0]).read_bytes() + bytes(800), "log").children
    assert [(child.type, child.note) for child in log] == [
        ("batch", None),
        ("zeros", "zeros, preallocated and not yet used: log.preallocate is set, and the segment was not closed"),
    ]


@pytest.mark.parametrize(
    ("size", "note"),
    [
        (250, "a cut batch: 250 of 300 bytes; a broker cuts it off when it starts"),
        (5, "a cut batch: 5 bytes of its header; a broker cuts it off when it starts"),
    ],
)
def test_a_cut_batch_is_what_a_crash_leaves(size: int, note: str) -> None:
    last = open_file((LOGS / SEGMENTS[11][0]).read_bytes()[:size], "log").children[-1]
    assert (last.type, last.note) == (CUT, note)


@pytest.mark.parametrize(
    ("kind", "data", "note"),
    [
        ("index", pack(">ii", 56, 1) + b"\0\0\1", "a cut entry: 3 of 8 bytes"),
        ("timeindex", bytes(11), "a cut entry: 11 of 12 bytes"),
        ("txnindex", bytes(34 + 33), "a cut entry: 33 of 34 bytes"),
        ("txnindex", b"\0\7" + bytes(32), "AbortedTxn has versions 0, not 7"),
        ("snapshot", b"", "needs 2 bytes (version) at offset 0, has 0"),
        ("snapshot", b"\0", "needs 2 bytes (version) at offset 0, has 1"),
        ("snapshot", b"\0\2" + bytes(8), "ProducerSnapshot has versions 1, not 2"),
        ("snapshot", b"\0\1\0\0", "needs 4 bytes at offset 2, has 2"),
    ],
)
def test_bytes_that_are_no_entry_are_undecoded(kind: str, data: bytes, note: str) -> None:
    span = open_file(data, kind)
    broken = span.broken()
    assert broken is not None
    assert (broken[1].note, broken[1].end, span.end) == (note, len(data), len(data))
    assert gap([span], 0, len(data)) is None


def test_an_unknown_aborted_transaction_does_not_hide_the_next() -> None:
    data = b"\0\7" + bytes(32) + pack(">hqqqq", 0, 5, 1, 2, 3)
    span = open_file(data, "txnindex")
    assert [child.type for child in span.children] == [UNDECODED, "struct"]
    assert (span.children[1].text, span.text) == ("producer id 5 aborted offsets 1 to 2", "1 aborted transaction")


@pytest.mark.parametrize(
    ("kind", "data", "notes"),
    [
        ("index", pack(">4i", 56, 10, 56, 20), [None, "RelativeOffset 56 behind 56: entries ascend"]),
        ("index", pack(">4i", 56, 10, 57, 9), [None, "Position 9 behind 10: entries ascend"]),
        ("index", pack(">ii", -1, 10), ["RelativeOffset -1 is negative"]),
        ("timeindex", pack(">qiqi", 9, 5, 8, 6), [None, "Timestamp 8 behind 9: entries ascend"]),
        ("timeindex", pack(">qiqi", 9, 5, 10, 5), [None, None]),
    ],
)
def test_entries_out_of_order_are_noted(kind: str, data: bytes, notes: list[str | None]) -> None:
    assert [child.note for child in open_file(data, kind).children] == notes


def test_a_wrong_checksum_is_a_note() -> None:
    data = bytearray((LOGS / "share-jobs-1/00000000000000000032.snapshot").read_bytes())
    data[20] ^= 1
    crc = open_file(bytes(data), "snapshot").children[1]
    assert (crc.text, crc.note) == (
        "wrong: the bytes have e2316fac",
        "wrong checksum: it is 874e3648, the bytes have e2316fac; corrupt or changed; a broker deletes such a snapshot",
    )


def test_spans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vars(files)["MAX_SPANS"] == MAX_SPANS
    monkeypatch.setattr(files, "MAX_SPANS", 9)
    span = open_file(b"".join(pack(">ii", n, n) for n in range(1, 9)), "index")
    assert [(c.type, c.start, c.end) for c in span.children[2:]] == [("struct", 16, 24), (UNDECODED, 24, 64)]
    assert span.children[3].note == "stopped here: over 9 spans"


# ---------------------------------------------------------------- any bytes


@pytest.mark.parametrize("path", ALL)
def test_every_prefix_is_tiled(path: str) -> None:
    kind, topic = kind_of(path) or ("", None)
    data = (LOGS / path).read_bytes()[:1200]
    for size in range(0, len(data) + 1, max(1, len(data) // 120)):
        span = open_file(data[:size], kind, path, topic)
        assert span.end == size
        assert gap([span], 0, size) is None


@pytest.mark.parametrize("path", ALL)
def test_changed_bytes_are_tiled_too(path: str) -> None:
    kind, topic = kind_of(path) or ("", None)
    chance = random.Random(path)
    whole = (LOGS / path).read_bytes()[:2400]
    for _ in range(60):
        data = damaged(whole, chance)
        assert gap([open_file(data, kind, path, topic)], 0, len(data)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_any_file_may_be_taken_for_any_kind(kind: str) -> None:
    for path in ALL:
        data = (LOGS / path).read_bytes()[:5000]
        assert gap([open_file(data, kind, path, "__cluster_metadata")], 0, len(data)) is None
