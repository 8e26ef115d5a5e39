"""Batches to spans: they tile every buffer, agree with the objects, say what is odd, and never raise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from struct import pack, pack_into

import pytest
from spans import gap
from vectors import IN_HEADERS, damaged, jsonl

from kwire.codec.span import UNDECODED, Span
from kwire.records import Record, build, compression, read_records
from kwire.records.annotate import annotate_records, open_message
from kwire.records.compression import Budget, compress
from kwire.wire.varint import write_varint

ROWS = {row["what"]: row for row in jsonl("vectors/records")}


def raw_of(what: str) -> bytes:
    return bytes.fromhex(ROWS[what]["hex"])


def records_of(spans: tuple[Span, ...]) -> Iterator[Span]:
    """Record spans, of compressed messages those inside."""
    for span in spans:
        inner = list(records_of(span.children))
        if span.type == "record" and not inner:
            yield span
        yield from inner


def child(span: Span, *path: str) -> Span:
    for name in path:
        (span,) = (one for one in span.children if one.name == name)
    return span


def notes(spans: tuple[Span, ...]) -> list[tuple[str, str]]:
    """Name and note of every span that has one."""
    every = [one for span in spans for one in (span, *span.below())]
    return [(span.name, span.note) for span in every if span.note]


# ---------------------------------------------------------------- official vectors


@pytest.mark.parametrize("what", ROWS)
def test_spans_tile_every_vector_and_its_buffers(what: str) -> None:
    raw = raw_of(what)
    spans = annotate_records(raw)
    assert gap(spans, 0, len(raw)) is None
    broken = [span for span in spans if span.broken()]
    assert bool(broken) == (what == "v2 wrong crc")  # whose last record does not parse


@pytest.mark.parametrize("what", [what for what in ROWS if "crc" not in what])
def test_spans_hold_what_the_objects_hold(what: str) -> None:
    raw = raw_of(what)
    found = list(records_of(annotate_records(raw)))
    objects = [record for batch in read_records(raw) for record in batch.records]
    assert len(found) == len(objects)
    for span, record in zip(found, objects, strict=True):
        assert (child(span, "Key").value, child(span, "Value").value) == (record.key, record.value)
        if span.children[0].name == "Length":  # magic 2
            assert span.text == f"offset {record.offset}"
            headers = child(span, "Headers").children
            assert [(one.children[0].value, one.children[1].value) for one in headers] == record.headers


def test_the_official_reading_is_in_the_texts() -> None:
    row = ROWS["v2 gzip LogAppendTime"]
    (batch,) = annotate_records(raw_of(row["what"]))
    assert batch.type == "batch"
    assert batch.text == "offset 1000, 5 records, gzip"
    assert (child(batch, "Crc").text, child(batch, "Crc").note) == ("right", None)
    assert child(batch, "Attributes").text == "gzip, log append time"
    assert child(batch, "LastOffsetDelta").text == "last offset 1004"
    assert child(batch, "MaxTimestamp").value == row["batches"][0]["maxTimestamp"]
    packed = child(batch, "Records")
    assert packed.buffer is not None
    assert packed.text == f"gzip: {packed.end - packed.start} bytes, {len(packed.buffer)} inside"
    times = {child(span, "TimestampDelta").text for span in packed.children}
    assert times == {child(batch, "MaxTimestamp").text}  # the broker's time counts, not the records' own


def test_a_batch_in_the_middle_of_bytes() -> None:
    raw = build([(b"k", b"v")])
    spans = annotate_records(b"junk" + raw + b"more", 4, 4 + len(raw))
    assert gap(spans, 4, 4 + len(raw)) is None
    assert [span.type for span in spans] == ["batch"]


@pytest.mark.parametrize(
    ("what", "name", "kind", "fields"),
    [
        ("v2 control ABORT", "EndTxnMarker v0", 0, ["version", "CoordinatorEpoch"]),
        ("v2 control COMMIT", "EndTxnMarker v0", 1, ["version", "CoordinatorEpoch"]),
        ("v2 control LeaderChangeMessage", "LeaderChangeMessage v0", 2, ["Version", "LeaderId", "Voters"]),
        ("v2 control SnapshotHeaderRecord", "SnapshotHeaderRecord v0", 3, ["Version", "LastContainedLogTimestamp"]),
        ("v2 control SnapshotFooterRecord", "SnapshotFooterRecord v0", 4, ["Version"]),
        ("v2 control KRaftVersionRecord", "KRaftVersionRecord v0", 5, ["Version", "KRaftVersion"]),
        ("v2 control VotersRecord", "VotersRecord v0", 6, ["Version", "Voters"]),
    ],
)
def test_control_records_are_opened(what: str, name: str, kind: int, fields: list[str]) -> None:
    (batch,) = annotate_records(raw_of(what))
    assert batch.text is not None
    assert batch.text.endswith(", control batch")
    (record,) = child(batch, "Records").children
    assert [(span.name, span.value) for span in child(record, "Key").children] == [("version", 0), ("Type", kind)]
    value = child(record, "Value")
    assert value.text == name
    assert [span.name for span in value.children if span.type != "tagged"][: len(fields)] == fields


# ---------------------------------------------------------------- what is odd is said


def changed(raw: bytes, at: int, form: str, value: int) -> bytes:
    out = bytearray(raw)
    pack_into(form, out, at, value)
    return bytes(out)


def batch_of(body: bytes, count: int = 1, attributes: int = 0) -> bytes:
    """A batch of magic 2 around body."""
    return pack(">qiibIhiqqqhii", 7, len(body) + 49, 0, 2, 0, attributes, 0, 0, 0, -1, -1, -1, count) + body


def record(key: int, value: bytes, headers: bytes = b"\0") -> bytes:
    body = b"\0\0\0" + write_varint(key) + value + headers
    return write_varint(len(body)) + body


ONE = build([(b"k", b"v")])
MESSAGE = build([(b"k", b"v")], magic=1)
WRAPPED = build([(b"k", b"v")], magic=1, compression="gzip")
VALUE = b"\x02v"


@pytest.mark.parametrize(
    ("raw", "name", "note"),
    [
        (
            changed(ONE, 17, ">I", 5),
            "Crc",
            "wrong checksum: it is 00000005, the bytes have fe917cab; corrupt or changed",
        ),
        (changed(MESSAGE, 12, ">I", 5), "Crc", "wrong checksum: it is 00000005, the bytes have "),
        (ONE[:16], "[0]", "a cut batch: 16 bytes of its header; a Fetch response may end so"),
        (ONE[:1], "[0]", "a cut batch: 1 byte of its header; a Fetch response may end so"),
        (ONE[:-1], "[0]", "a cut batch: 69 of 70 bytes; a Fetch response may end so"),
        (ONE + ONE[:20], "[1]", "a cut batch: 20 of 70 bytes; a Fetch response may end so"),
        (bytes(16) + b"\x05", "[0]", "magic 5: there are 0, 1 and 2"),
        (changed(ONE, 8, ">i", 48), "[0]", "a batch length of 48 is too small"),
        (changed(MESSAGE, 8, ">i", -1), "[0]", "a batch length of -1 is too small"),
        (batch_of(record(-1, VALUE), 2), "Records", "claims 2 records, 1 could be read"),
        (batch_of(record(-1, VALUE), 2), "[1]", "the length at offset 69: the varint does not end"),
        (batch_of(record(-1, VALUE), 0), "trailing", "8 bytes left over behind the last record"),
        (batch_of(record(-1, VALUE), -4), "Records", "a number of records of -4"),
        (batch_of(b"\x0f" + bytes(9)), "[0]", "the record claims -8 bytes, 9 are left"),
        (batch_of(b"\x7e" + bytes(9)), "[0]", "the record claims 63 bytes, 9 are left"),
        (batch_of(b"\0"), "[0]", "the timestamp delta at offset 63: the varint does not end"),
        (batch_of(record(9, VALUE)), "[0]", "Key needs 9 bytes at offset 66, has 3"),
        (batch_of(record(-2, VALUE)), "Key", "a length of -2, read as null"),
        (batch_of(record(-1, VALUE, b"\0\0")), "trailing", "the record says 8 bytes and has 1 too many"),
        (batch_of(record(-1, VALUE, b"\x01")), "[0]", "a number of headers of -1"),
        (batch_of(record(-1, VALUE, b"\x04\x02a")), "[0]", "the Value length at offset 71: the varint does not end"),
        (batch_of(b"garbage", attributes=5), "Records", "unknown compression codec 5"),
        (batch_of(compress("zstd", ONE)[:-1], attributes=4), "Records", "does not decompress as zstd: "),
        (changed(MESSAGE, 26, ">i", 99), "[0]", "records: [0].Key: needs 99 bytes at offset 30, has 6"),
        (build([(b"k", WRAPPED)], magic=1, compression="gzip"), "", ""),
    ],
)
def test_notes(raw: bytes, name: str, note: str) -> None:
    spans = annotate_records(raw)
    assert gap(spans, 0, len(raw)) is None
    found = notes(spans)
    if not name:
        assert found == []
    else:
        assert any(one == name and text.startswith(note) for one, text in found), found


@pytest.mark.parametrize(
    ("inner", "bits", "name", "note"),
    [
        (
            build([(b"k", b"v")], magic=1, compression="gzip"),
            1,
            "Value",
            "a compressed message inside a compressed one",
        ),
        (build([(b"k", b"v")], magic=0), 1, "[0]", "no whole message of magic 1"),
        (MESSAGE + MESSAGE[:-1], 1, "[1]", "no whole message of magic 1"),
        (MESSAGE + b"rest", 1, "[1]", "a cut message"),
        (MESSAGE, 7, "Value", "unknown compression codec 7"),
    ],
)
def test_notes_inside_a_compressed_message(inner: bytes, bits: int, name: str, note: str) -> None:
    packed = compress("gzip", inner)
    raw = bytearray(build([(None, packed)], magic=1))
    raw[17] = bits
    spans = annotate_records(bytes(raw))
    assert gap(spans, 0, len(raw)) is None
    assert (name, note) in notes(spans)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\0\0\0\0\x07data", "perhaps Confluent wire format, schema id 7"),
        (b"\0\0\0\0\x07d", "perhaps Confluent wire format, schema id 7"),
        (b"\0\0\0\0\x07", None),
        (b"\0\0\0\0\0data", None),
        (b"\0\x01\0\0\0data", None),
        (b"\0\0\0\0\x07dat", None),  # eight bytes: rather a number
        (b"\x01\0\0\0\x07data", None),
    ],
)
def test_confluent_s_wire_format_is_named(value: bytes, text: str | None) -> None:
    (batch,) = annotate_records(build([(b"k", value)]))
    assert child(batch, "Records", "[0]", "Value").text == text


# ---------------------------------------------------------------- a field that is a message


END_TXN = bytes.fromhex("0000 00000005")


@pytest.mark.parametrize(
    ("content", "name", "prefixed", "version", "text", "note"),
    [
        (END_TXN, "EndTxnMarker", True, None, "EndTxnMarker v0", None),
        (b"\0\x07" + END_TXN[2:], "EndTxnMarker", True, 0, "EndTxnMarker v0", None),  # read as the given version
        (END_TXN[2:], "EndTxnMarker", False, 0, "EndTxnMarker v0", None),
        (b"\0\0\0\x01\0", "KRaftVersionRecord", False, None, "KRaftVersionRecord v0", None),
        (b"", "EndTxnMarker", True, None, None, "too short for EndTxnMarker"),
        (b"\0", "EndTxnMarker", True, 0, None, "too short for EndTxnMarker"),
        (b"\0\x09", "EndTxnMarker", True, None, None, "EndTxnMarker has versions 0, not 9"),
        (END_TXN[:-1], "EndTxnMarker", True, None, None, "not EndTxnMarker v0: needs 4 bytes at offset 9, has 3"),
        (END_TXN + b"x", "EndTxnMarker", True, None, None, "not EndTxnMarker v0: 1 byte left over behind the message"),
    ],
)
def test_open_message(
    content: bytes, name: str, prefixed: bool, version: int | None, text: str | None, note: str | None
) -> None:
    data = b"before" + b"\x0c" + content  # a length of one byte is the span's own
    span = Span("Value", "bytes", 6, len(data), content)
    opened = open_message(span, data, name, prefixed=prefixed, version=version)
    assert (opened.text, opened.note) == (text, note)
    assert bool(opened.children) == (note is None)
    if opened.children:
        assert gap(opened.children, 7, len(data)) is None


# ---------------------------------------------------------------- hostile bytes


def small() -> list[str]:
    return [what for what in ROWS if "one record" in what or "control" in what or "empty" in what]


@pytest.mark.parametrize("what", small())
def test_every_prefix_is_tiled(what: str) -> None:
    raw = raw_of(what)
    for size in range(len(raw)):
        spans = annotate_records(raw[:size])
        assert gap(spans, 0, size) is None
        assert [span.type for span in spans] == ["cut batch"] * (size > 0)


@pytest.mark.parametrize("what", ["v2 none CreateTime", "v2 control VotersRecord", "v1 none LogAppendTime"])
def test_records_cut_inside_a_batch_that_says_otherwise_are_tiled(what: str) -> None:
    raw = raw_of(what)
    for size in range(61, len(raw)):
        cut = changed(raw[:size], 8, ">i", size - 12)
        spans = annotate_records(cut)
        assert gap(spans, 0, size) is None
        assert what.startswith("v1") or spans[0].broken() is not None


def test_mutations_are_tiled() -> None:
    draw = random.Random(30)
    raws = [raw_of(what) for what in ROWS if 0 < len(raw_of(what)) < 2000]
    broken = 0
    for _ in range(4000):
        data = damaged(draw.choice(raws), draw, IN_HEADERS)
        spans = annotate_records(data)
        assert gap(spans, 0, len(data)) is None
        broken += any(span.broken() for span in spans)
    assert broken > 500


@pytest.mark.parametrize("raw", [ONE * 40, MESSAGE * 40, build([(b"k", b"v")] * 40), WRAPPED * 40])
def test_spans_are_bounded(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(compression, "MAX_SPANS", 100)
    spans = annotate_records(raw)
    assert gap(spans, 0, len(raw)) is None
    assert sum(1 for span in spans for _ in (span, *span.below())) < 300
    assert notes(spans)[-1][1] == "stopped here: over 1,000,000 spans"


def test_headers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_SPANS", 100)
    raw = build([Record(0, 0, b"k", b"v", [("h", b"x")] * 200)])
    spans = annotate_records(raw)
    assert gap(spans, 0, len(raw)) is None
    assert notes(spans)[-1] == ("[0]", "stopped here: over 1,000,000 spans")


def test_messages_inside_one_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_SPANS", 100)
    raw = build([(b"k", b"v")] * 40, magic=0, compression="gzip")
    spans = annotate_records(raw)
    assert gap(spans, 0, len(raw)) is None
    assert notes(spans)[-1] == ("[9]", "stopped here: over 1,000,000 spans")


def test_the_limit_is_each_batch_s_and_all_have_a_few_together() -> None:
    raw = build([(b"k", bytes(1000))], compression="gzip")
    assert notes(annotate_records(raw, limit=1500)) == []
    assert notes(annotate_records(raw, limit=900)) == [("Records", "decompresses to more than 900 bytes, the limit")]
    found = notes(annotate_records(raw * 8, limit=1500, budget=Budget(6000)))
    assert len(found) == 8 - 6000 // 1010
    assert set(found) == {("Records", "not opened: these bytes would decompress to more than 6,000 bytes in all")}


def test_a_budget_is_shared_and_spent_once() -> None:
    raw = build([(b"k", bytes(1000))], compression="gzip")
    whole = Budget(3000)
    assert notes(annotate_records(raw * 2, budget=whole)) == []
    assert [note for _, note in notes(annotate_records(raw * 2, budget=whole))] == [
        "not opened: these bytes would decompress to more than 3,000 bytes in all"
    ] * 2
    read = read_records(raw * 8, total=6000)
    assert [len(batch.records) for batch in read] == [1] * 5 + [0] * 3
    assert read[7].note == "not opened: these bytes would decompress to more than 6,000 bytes in all"


def test_small_records_count_for_what_their_objects_take() -> None:
    raw = build([(None, None)] * 10_000, compression="zstd")
    assert read_records(raw, total=1 << 20)[0].note is not None
    assert len(read_records(raw, total=1 << 21)[0].records) == 10_000


def test_wrappers_in_wrappers_do_not_recurse() -> None:
    raw = MESSAGE
    for _ in range(500):
        raw = build([(None, compress("gzip", raw))], magic=1)
        raw = raw[:17] + b"\x01" + raw[18:]
    spans = annotate_records(raw)
    assert gap(spans, 0, len(raw)) is None
    assert ("Value", "a compressed message inside a compressed one") in notes(spans)
    assert UNDECODED not in {span.type for span in spans}
