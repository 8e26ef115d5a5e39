"""The files that a broker keeps in a partition's folder, as span trees: an entry of the file is a child span.

    .log         record batches; .checkpoint too, a snapshot of the metadata log
    .index       int32 relative offset, int32 position in the log
    .timeindex   int64 timestamp, int32 relative offset
    .txnindex    AbortedTxn, an int16 version in front: 34 bytes
    .snapshot    ProducerSnapshot, an int16 version in front

A file's name is the offset that it begins at, which the indexes count from; its folder is named topic-partition. While
they are written to, .index and .timeindex are files of full size, with zeros behind the last entry; a clean close cuts
those off (Kafka's OffsetIndex, TimeIndex, TransactionIndex, ProducerStateManager). Bad bytes never raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from struct import unpack_from

from kwire.codec.annotate import MAX_SPANS, annotate, count_bytes
from kwire.codec.library import builtin_library
from kwire.codec.secrets import METADATA
from kwire.codec.span import UNDECODED, WRONG_CHECKSUM, Span
from kwire.errors import UnknownName
from kwire.payloads.open import open_topic
from kwire.records.annotate import CUT, annotate_records, open_message
from kwire.records.batch import CRC_START, LOG_OVERHEAD, MAGIC_AT, SIZE, crc32c
from kwire.records.compression import Budget
from kwire.wire.fixed import PACKED, SIZES
from kwire.wire.times import moment

FILE = re.compile(r"[0-9]+\.(log|index|timeindex|txnindex|snapshot)(?:\.(?:deleted|cleaned|swap))?")
CHECKPOINT = re.compile(r"(?:bootstrap|[0-9]{20}-[0-9]{10}(?:-[0-9]+)?)\.checkpoint(?:\.(?:part|deleted))?")
FOLDER = re.compile(r"([A-Za-z0-9._-]+?)-[0-9]+(?:\.[A-Za-z0-9]+-(?:delete|future|stray))?")
OFFSET = re.compile(r"([0-9]{20})\D")  # what a name must begin with to say an offset

OFFSET_INDEX = (("RelativeOffset", "int32"), ("Position", "int32"))
TIME_INDEX = (("Timestamp", "int64"), ("RelativeOffset", "int32"))
ABORTED_SIZE = 34
CRC_FROM = 6  # a producer snapshot's checksum covers what is behind version and checksum

Fields = tuple[tuple[str, str], ...]
Entry = Callable[[int, str], Span]


def kind_of(path_name: str) -> tuple[str, str | None] | None:
    """What open_file needs for a path, ("index", "orders") for …/orders-3/00000000000000000000.index.

    The topic is None where the folder does not name one. None for a path that is none of these files.
    """
    folder, name = _split(path_name)
    if CHECKPOINT.fullmatch(name):
        return "log", METADATA
    file, partition = FILE.fullmatch(name), FOLDER.fullmatch(folder)
    if file is None:
        return None
    return file[1], partition[1] if partition else None


def begins_with_batch(data: bytes) -> bool:
    """Whether the bytes begin with a whole batch of magic 2 whose checksum is right: nothing else does by chance."""
    if len(data) < SIZE or data[MAGIC_AT] != 2:
        return False
    end = LOG_OVERHEAD + int(unpack_from(">i", data, 8)[0])
    return SIZE <= end <= len(data) and crc32c(memoryview(data)[CRC_START:end]) == unpack_from(">I", data, 17)[0]


def open_file(
    data: bytes, kind: str, name: str | None = None, topic: str | None = None, budget: Budget | None = None
) -> Span:
    """The span tree of a file's bytes, all of them; kind is one of KINDS, else UnknownName is raised.

    name is the file's name or path: its 20 digits are the offset that relative offsets count from. topic is that of a
    log; where it is not given, the path may say it. The records of internal topics are opened too.
    """
    if kind not in KINDS:
        raise UnknownName("kind of log file", kind, KINDS)
    found = OFFSET.match(_split(name)[1]) if name else None
    base = int(found[1]) if found else None
    if kind == "log":
        known = kind_of(name) if name else None
        return _log(data, topic or (known[1] if known else None), name, budget)
    return READERS[kind](data, base)


def _split(path_name: str) -> tuple[str, str]:
    """The last folder and the name; Windows' separators too."""
    parts = ["", *re.split(r"[/\\]", path_name)]
    return parts[-2], parts[-1]


def _file(title: str, data: bytes, children: list[Span], text: str) -> Span:
    return Span(title, "message", 0, len(data), None, tuple(children), None, None, text if data else "empty")


def _counted(count: int, one: str, many: str) -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {many}"


# ---------------------------------------------------------------- log segments


def _log(data: bytes, topic: str | None, name: str | None, budget: Budget | None) -> Span:
    batches = annotate_records(data, budget=budget)
    last = batches[-1] if batches else None
    if last and last.type == UNDECODED and last.end - last.start > MAGIC_AT and not data[last.start :].lstrip(b"\0"):
        unused = _unused(last.start, last.end, "log.preallocate is set, and the segment was not closed")
        batches = (*batches[:-1], unused)
    elif last and last.type == CUT and last.note:
        note = last.note.partition(";")[0] + "; a broker cuts it off when it starts"  # annotate_records speaks of Fetch
        batches = (*batches[:-1], last._replace(note=note))
    batches = open_topic(batches, data, topic)
    whole = [span for span in batches if span.type in ("batch", "record")]
    title = "metadata snapshot" if name and CHECKPOINT.fullmatch(_split(name)[1]) else "log segment"
    text = _counted(len(whole), "batch", "batches") + (f" of {topic}" if topic else "")
    return _file(title, data, list(batches), text)


def _unused(start: int, end: int, why: str) -> Span:
    note = f"zeros, preallocated and not yet used: {why}"
    return Span("preallocated", "zeros", start, end, end - start, (), note, None, count_bytes(end - start))


# ---------------------------------------------------------------- indexes


def _offset_index(data: bytes, base: int | None) -> Span:
    def text(values: Sequence[int]) -> str:
        return f"{_offset(values[0], base)}, position {values[1]}"

    return _index("offset index", data, base, OFFSET_INDEX, text)


def _time_index(data: bytes, base: int | None) -> Span:
    def text(values: Sequence[int]) -> str:
        return f"{moment(values[0])}, {_offset(values[1], base)}"

    return _index("time index", data, base, TIME_INDEX, text)


def _offset(relative: int, base: int | None) -> str:
    return f"offset {base + relative}" if base is not None else f"base offset + {relative}"


def _meaning(field: str, value: int, base: int | None) -> str | None:
    if field == "RelativeOffset":
        return _offset(value, base)
    return moment(value) if field == "Timestamp" else None


def _index(title: str, data: bytes, base: int | None, fields: Fields, text: Callable[[Sequence[int]], str]) -> Span:
    size = sum(SIZES[kind] for _, kind in fields)
    before: Sequence[int] = ()

    def entry(pos: int, name: str) -> Span:
        nonlocal before
        leaves: list[Span] = []
        values: list[int] = []
        at = pos
        for field, kind in fields:
            (value,) = PACKED[kind].unpack_from(data, at)
            end = at + SIZES[kind]
            leaves.append(Span(field, kind, at, end, value, (), None, None, _meaning(field, value, base)))
            values.append(value)
            at = end
        note, before = _disorder(fields, before, values), values
        return Span(name, "struct", pos, at, len(leaves), tuple(leaves), note, None, text(values))

    written = _written(data, size)
    spans = _entries(written, size, 1 + len(fields), entry)
    count = sum(span.type == "struct" for span in spans)
    if written < len(data):
        spans.append(_unused(written, len(data), "the segment is being written to, or the broker did not close it"))
    return _file(title, data, spans, _counted(count, "entry", "entries") + _beginning(base))


def _beginning(base: int | None) -> str:
    return f", from offset {base}" if base is not None else ""


def _written(data: bytes, size: int) -> int:
    """Where the zeros behind the entries begin, a whole entry of them at least; a single entry may be zero itself."""
    end = -(-len(data.rstrip(b"\0")) // size) * size
    return end if len(data) >= max(end + size, 2 * size) else len(data)


def _disorder(fields: Fields, before: Sequence[int], values: Sequence[int]) -> str | None:
    """What a broker would never write: the first number grows with every entry, the second never falls."""
    for number, ((field, _), value) in enumerate(zip(fields, values, strict=True)):
        if value < 0:
            return f"{field} {value} is negative"
        if before and (value < before[number] or (number == 0 and value == before[number])):
            return f"{field} {value} behind {before[number]}: entries ascend"
    return None


def _entries(end: int, size: int, cost: int, entry: Entry) -> list[Span]:
    """Entries of one size up to end; cost is how many spans each takes."""
    spans: list[Span] = []
    for pos in range(0, end, size):
        name = f"[{len(spans)}]"
        full = (len(spans) + 1) * cost > MAX_SPANS
        if full or pos + size > end:
            note = f"stopped here: over {MAX_SPANS:,} spans" if full else f"a cut entry: {end - pos} of {size} bytes"
            return [*spans, Span(name, UNDECODED, pos, end, None, (), note)]
        spans.append(entry(pos, name))
    return spans


def _transaction_index(data: bytes, base: int | None) -> Span:
    def entry(pos: int, name: str) -> Span:
        end = pos + ABORTED_SIZE
        span = open_message(Span(name, "struct", pos, end, data[pos:end]), data, "AbortedTxn", prefixed=True)
        if not span.children:
            return Span(name, UNDECODED, pos, end, None, (), span.note)
        values = {child.name: child.value for child in span.children}
        text = f"producer id {values['ProducerId']} aborted offsets {values['FirstOffset']} to {values['LastOffset']}"
        return span._replace(value=len(span.children), text=text)

    spans = _entries(len(data), ABORTED_SIZE, 6, entry)
    count = sum(span.type == "struct" for span in spans)
    text = _counted(count, "aborted transaction", "aborted transactions")
    return _file("transaction index", data, spans, text + _beginning(base))


# ---------------------------------------------------------------- producer snapshots


def _producer_snapshot(data: bytes, base: int | None) -> Span:
    where = f" at offset {base}" if base is not None else ""
    if len(data) < 2:
        return _broken_snapshot(data, 0, f"needs 2 bytes (version) at offset 0, has {len(data)}", [])
    (version,) = unpack_from(">h", data)
    front = Span("version", "int16", 0, 2, version)
    message = builtin_library().message("ProducerSnapshot")
    if version not in message.versions:
        return _broken_snapshot(data, 2, f"ProducerSnapshot has versions {message.versions}, not {version}", [front])
    body = annotate(builtin_library().plan("ProducerSnapshot", version), data, 2)
    children = [front, *(_checked(child, data) for child in body.children)]
    count = sum(len(child.children) for child in children if child.name == "ProducerEntries")
    return _file("producer snapshot", data, children, _counted(count, "producer", "producers") + where)


def _broken_snapshot(data: bytes, start: int, note: str, children: list[Span]) -> Span:
    rest = Span("entries", UNDECODED, start, len(data), None, (), note)
    return _file("producer snapshot", data, [*children, rest], "not read")


def _checked(span: Span, data: bytes) -> Span:
    """The checksum, with what it is of the bytes."""
    if span.name != "Crc" or not isinstance(span.value, int):
        return span
    crc = crc32c(memoryview(data)[CRC_FROM:])
    if crc == span.value:
        return span._replace(text="right")
    note = f"{WRONG_CHECKSUM}: it is {span.value:08x}, the bytes have {crc:08x}; corrupt or changed"
    return span._replace(text=f"wrong: the bytes have {crc:08x}", note=f"{note}; a broker deletes such a snapshot")


READERS: dict[str, Callable[[bytes, int | None], Span]] = {
    "index": _offset_index,
    "timeindex": _time_index,
    "txnindex": _transaction_index,
    "snapshot": _producer_snapshot,
}
KINDS = ("log", *READERS)
