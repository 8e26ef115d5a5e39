"""Record batches to spans: every header field with what it means, every record, and what lies behind compression.

The strategy is annotate.py's of the codec: a cursor walks, a failure closes the tree with an undecoded span, nothing is
allocated for what is only claimed. Compressed records decompress into a buffer of their own; the span over the
compressed bytes holds that buffer, and the records' offsets count in it. Checksums are checked and said, never a stop.
"""

from __future__ import annotations

from struct import Struct, unpack_from

from kwire.codec.annotate import MAX_SPANS, annotate, count_bytes
from kwire.codec.library import builtin_library
from kwire.codec.span import UNDECODED, WRONG_CHECKSUM, Span
from kwire.errors import KwireError
from kwire.records import batch as v2
from kwire.records import legacy
from kwire.records.compression import LIMIT, Budget, name_of
from kwire.wire.fixed import PACKED
from kwire.wire.times import moment
from kwire.wire.varint import VarintError, read_uvarint

ARRAY, BATCH, RECORD = "array", "batch", "record"
CUT = "cut batch"  # a last batch that does not end: normal, so not undecoded
FULL = f"stopped here: over {MAX_SPANS:,} spans"
CONTROL_VALUES = {  # by the type in a control record's key; whether an int16 version stands in front
    0: ("EndTxnMarker", True),
    1: ("EndTxnMarker", True),
    2: ("LeaderChangeMessage", False),
    3: ("SnapshotHeaderRecord", False),
    4: ("SnapshotFooterRecord", False),
    5: ("KRaftVersionRecord", False),
    6: ("VotersRecord", False),
}
V2_FIELDS = (
    ("BaseOffset", "int64"), ("BatchLength", "int32"), ("PartitionLeaderEpoch", "int32"), ("Magic", "int8"),
    ("Crc", "uint32"), ("Attributes", "int16"), ("LastOffsetDelta", "int32"), ("BaseTimestamp", "int64"),
    ("MaxTimestamp", "int64"), ("ProducerId", "int64"), ("ProducerEpoch", "int16"), ("BaseSequence", "int32"),
)  # fmt: skip

LEGACY_FIELDS = (
    ("Offset", "int64"), ("MessageSize", "int32"), ("Crc", "uint32"), ("Magic", "int8"), ("Attributes", "int8"),
    ("Timestamp", "int64"),  # magic 1 alone
)  # fmt: skip


class _Stop(Exception):
    """A record that does not parse; carries the note."""


def annotate_records(
    data: bytes, start: int = 0, end: int | None = None, limit: int = LIMIT, budget: Budget | None = None
) -> tuple[Span, ...]:
    """Spans for the batches in data from start to end; together they cover all of it. Never raises for bad bytes.

    limit bounds what one batch may decompress to, bytes, budget what all of them may together with others.
    """
    walker = _Walker(limit, budget or Budget())
    spans = walker.batches(data, start, len(data) if end is None else end)
    walker.budget.spans = max(walker.left, 0)
    return spans


class _Walker:
    """Counts spans and decompressed bytes over all batches, so that memory stays bounded."""

    def __init__(self, limit: int, budget: Budget) -> None:
        self.limit, self.budget = limit, budget
        self.left = budget.spans

    def decompress(self, codec: str, data: bytes, magic: int = 2) -> bytes:
        """The plain bytes, which the tree will hold. Raises CompressionError."""
        return self.budget.decompress(codec, data, self.limit, magic)

    def batches(self, data: bytes, pos: int, end: int) -> tuple[Span, ...]:
        spans: list[Span] = []
        while pos < end:
            name = f"[{len(spans)}]"
            if end - pos <= v2.MAGIC_AT:
                note = f"a cut batch: {count_bytes(end - pos)} of its header; a Fetch response may end so"
                spans.append(Span(name, CUT, pos, end, None, (), note))
                break
            (length,) = unpack_from(">i", data, pos + 8)
            magic = data[pos + v2.MAGIC_AT]
            stop = pos + v2.LOG_OVERHEAD + length
            least = v2.SIZE if magic == 2 else legacy.MIN_SIZE[min(magic, 1)]
            if magic > 2 or stop - pos < least:
                unknown, small = f"magic {magic}: there are 0, 1 and 2", f"a batch length of {length:,} is too small"
                spans.append(Span(name, UNDECODED, pos, end, None, (), unknown if magic > 2 else small))
                break
            if stop > end:
                note = f"a cut batch: {end - pos:,} of {stop - pos:,} bytes; a Fetch response may end so"
                spans.append(Span(name, CUT, pos, end, None, (), note))
                break
            self.left -= 16
            if self.left < 0:
                spans.append(Span(name, UNDECODED, pos, end, None, (), FULL))
                break
            spans.append(self._v2(data, pos, stop, name) if magic == 2 else self._legacy(data, pos, stop, name))
            pos = stop
        return tuple(spans)

    # ------------------------------------------------------------ magic 2

    def _v2(self, data: bytes, start: int, end: int, name: str) -> Span:
        header = v2.read_header(data, start)
        crc = v2.crc32c(memoryview(data)[start + v2.CRC_START : end])
        texts = {
            "Crc": "right" if crc == header.crc else None,
            "Attributes": v2.attribute_words(header.attributes, 2),
            "LastOffsetDelta": f"last offset {header.base_offset + header.last_offset_delta}",
            "BaseTimestamp": moment(header.base_timestamp) if header.base_timestamp >= 0 else None,
            "MaxTimestamp": moment(header.max_timestamp) if header.max_timestamp >= 0 else None,
            "ProducerId": "none" if header.producer_id == -1 else None,
            "BaseSequence": "none" if header.base_sequence == -1 else None,
        }
        spans, pos = [], start
        for field, kind in V2_FIELDS:
            spans.append(_leaf(data, pos, field, kind, texts.get(field)))
            pos = spans[-1].end
        if crc != header.crc:
            spans[4] = spans[4]._replace(note=_wrong(header.crc, crc))
        spans += self._payload(data, pos, end, header)
        count = header.record_count
        codec = "" if header.compression == "none" else f", {header.compression}"
        text = f"{count} record{'' if count == 1 else 's'}{codec}" if count else "no records left"
        if header.is_control:
            text = "control batch"
        if crc != header.crc:
            text += ", wrong checksum"
        return Span(name, BATCH, start, end, None, tuple(spans), None, None, f"offset {header.base_offset}, {text}")

    def _payload(self, data: bytes, pos: int, end: int, header: v2.Header) -> list[Span]:
        """The count and the records; behind compression, in their buffer."""
        count = header.record_count
        body = pos + 4
        if header.compression == "none":
            children, note = self._records(data, body, end, header)
            return [Span("Records", ARRAY, pos, end, count, children, note)]
        leaf = Span("RecordCount", "int32", pos, body, count)
        try:
            buffer = self.decompress(header.compression, data[body:end])
        except KwireError as error:
            return [leaf, Span("Records", UNDECODED, body, end, None, (), str(error))]
        children, note = self._records(buffer, 0, len(buffer), header)
        text = f"{header.compression}: {count_bytes(end - body)}, {len(buffer):,} inside"
        return [leaf, Span("Records", ARRAY, body, end, count, children, note, None, text, False, buffer)]

    def _records(self, data: bytes, pos: int, end: int, header: v2.Header) -> tuple[tuple[Span, ...], str | None]:
        spans: list[Span] = []
        for number in range(header.record_count):
            self.left -= 8
            try:
                if self.left < 0:
                    raise _Stop(FULL)
                span = self._record(data, pos, end, header, f"[{number}]")
            except _Stop as stop:
                spans.append(Span(f"[{number}]", UNDECODED, pos, end, None, (), str(stop)))
                return tuple(spans), f"claims {header.record_count:,} records, {number:,} could be read"
            spans.append(span)
            pos = span.end
        if pos < end:
            note = f"{count_bytes(end - pos)} left over behind the last record"
            spans.append(Span("trailing", UNDECODED, pos, end, None, (), note))
        return tuple(spans), f"a number of records of {header.record_count:,}" if header.record_count < 0 else None

    def _record(self, data: bytes, start: int, end: int, header: v2.Header, name: str) -> Span:
        length, pos = _varint(data, start, end, "length")
        spans = [Span("Length", "varint", start, pos, length)]
        stop = pos + length
        if length < 0 or stop > end:
            raise _Stop(f"the record claims {length:,} bytes, {end - pos:,} are left")
        if pos < stop:
            spans.append(_leaf(data, pos, "Attributes", "int8", "unused"))
        pos += 1
        delta, at = _varint(data, pos, stop, "timestamp delta")
        time = header.max_timestamp if header.log_append_time else header.base_timestamp + delta
        spans.append(Span("TimestampDelta", "varlong", pos, at, delta, (), None, None, moment(time)))
        delta, pos = _varint(data, at, stop, "offset delta")
        offset = header.base_offset + delta
        spans.append(Span("OffsetDelta", "varint", at, pos, delta, (), None, None, f"offset {offset}"))
        key, value = self._sized(data, pos, stop, "Key"), None
        value = self._sized(data, key.end, stop, "Value")
        if header.is_control:
            key, value = control(key, value, data)
        spans += [key, value, self._headers(data, value.end, stop)]
        pos = spans[-1].end
        if pos < stop:
            note = f"the record says {length:,} bytes and has {stop - pos:,} too many"
            spans.append(Span("trailing", UNDECODED, pos, stop, None, (), note))
        return Span(name, RECORD, start, stop, offset, tuple(spans), None, None, f"offset {offset}")

    def _sized(self, data: bytes, start: int, stop: int, name: str, kind: str = "bytes") -> Span:
        size, pos = _varint(data, start, stop, f"{name} length")
        if size < 0:
            note = None if size == -1 else f"a length of {size}, read as null"
            return Span(name, f"{kind} (varint)", start, pos, None, (), note)
        if size > stop - pos:
            raise _Stop(f"{name} needs {count_bytes(size)} at offset {pos}, has {stop - pos:,}")
        raw = data[pos : pos + size]
        shown: object = raw.decode("utf-8", "surrogateescape") if kind == "string" else raw
        return Span(name, f"{kind} (varint)", start, pos + size, shown, text=_confluent(raw))

    def _headers(self, data: bytes, start: int, stop: int) -> Span:
        count, pos = _varint(data, start, stop, "number of headers")
        if count < 0:
            raise _Stop(f"a number of headers of {count}")
        spans = []
        for number in range(count):
            self.left -= 3
            if self.left < 0:
                raise _Stop(FULL)
            key = self._sized(data, pos, stop, "Key", "string")
            value = self._sized(data, key.end, stop, "Value")
            spans.append(Span(f"[{number}]", "struct", pos, value.end, None, (key, value)))
            pos = value.end
        return Span("Headers", ARRAY, start, pos, count, tuple(spans))

    # ------------------------------------------------------------ magic 0 and 1

    def _legacy(self, data: bytes, start: int, end: int, name: str, inside: bool = False) -> Span:
        try:
            message = legacy.read_message(data, start, name)
        except KwireError as error:
            return Span(name, UNDECODED, start, end, None, (), str(error))
        crc = v2.crc32(memoryview(data)[start + 16 : end])
        texts = {
            "Crc": "right" if crc == message.crc else None,
            "Attributes": v2.attribute_words(message.attributes, message.magic),
            "Timestamp": None if message.timestamp is None or message.timestamp < 0 else moment(message.timestamp),
            "Offset": "relative to the wrapper" if inside and message.magic == 1 else None,
        }
        spans, pos = [], start
        for field, kind in LEGACY_FIELDS[: 5 + message.magic]:
            spans.append(_leaf(data, pos, field, kind, texts.get(field)))
            pos = spans[-1].end
        if crc != message.crc:
            spans[2] = spans[2]._replace(note=_wrong(message.crc, crc))
        middle = pos + 4 + len(message.key or b"")
        spans.append(Span("Key", "bytes", pos, middle, message.key))
        spans.append(self._value(message, middle, middle + 4 + len(message.value or b""), inside))
        if spans[-1].end < end:
            note = f"{count_bytes(end - spans[-1].end)} left over behind the message"
            spans.append(Span("trailing", UNDECODED, spans[-1].end, end, None, (), note))
        text = f"offset {message.offset}" + (f", {name_of(message.attributes)}" if message.attributes & 7 else "")
        return Span(name, RECORD, start, end, message.offset, tuple(spans), None, None, text)

    def _value(self, message: legacy.LegacyMessage, start: int, end: int, inside: bool) -> Span:
        """The value; of a compressed message, the message set inside."""
        plain = Span("Value", "bytes", start, end, message.value)
        if not message.attributes & 7 or message.value is None:
            return plain
        if inside:
            return plain._replace(note="a compressed message inside a compressed one")
        codec = name_of(message.attributes)
        try:
            buffer = self.decompress(codec, message.value, message.magic)
        except KwireError as error:
            return plain._replace(note=str(error))
        spans: list[Span] = []
        pos = 0
        while pos < len(buffer):
            name = f"[{len(spans)}]"
            if len(buffer) - pos <= v2.MAGIC_AT:
                spans.append(Span(name, UNDECODED, pos, len(buffer), None, (), "a cut message"))
                break
            stop = pos + v2.LOG_OVERHEAD + int(unpack_from(">i", buffer, pos + 8)[0])
            self.left -= 9
            if self.left < 0:
                spans.append(Span(name, UNDECODED, pos, len(buffer), None, (), FULL))
                break
            whole = pos + legacy.MIN_SIZE[message.magic] <= stop <= len(buffer)
            if buffer[pos + v2.MAGIC_AT] != message.magic or not whole:
                note = f"no whole message of magic {message.magic}"
                spans.append(Span(name, UNDECODED, pos, len(buffer), None, (), note))
                break
            spans.append(self._legacy(buffer, pos, stop, name, inside=True))
            pos = stop
        text = f"{codec}, {count_bytes(len(buffer))} inside"
        return Span("Value", ARRAY, start, end, len(spans), tuple(spans), None, None, text, False, buffer)


def _wrong(claimed: int, crc: int) -> str:
    return f"{WRONG_CHECKSUM}: it is {claimed:08x}, the bytes have {crc:08x}; corrupt or changed"


def _confluent(raw: bytes) -> str | None:
    """Confluent's wire format: a zero byte and an int32 schema id in front of the serialized data.

    Eight bytes are taken for a number: a long begins so too.
    """
    if len(raw) < 6 or raw[0] or len(raw) == 8:
        return None
    (schema,) = unpack_from(">i", raw, 1)
    return f"perhaps Confluent wire format, schema id {schema}" if 0 < schema < 1 << 24 else None


def control(key: Span, value: Span, data: bytes) -> tuple[Span, Span]:
    """The key and the value of a control record, opened by their own schemas."""
    library = builtin_library()
    if not isinstance(key.value, bytes) or len(key.value) < 4:
        return key, value
    at = key.end - len(key.value)
    version = _leaf(data, at, "version", "int16", None)
    body = annotate(library.plan("ControlRecordTypeSchema", 0), data, at + 2, key.end)
    opened = key._replace(children=(version, *body.children))
    (kind,) = unpack_from(">h", key.value, 2)
    known = CONTROL_VALUES.get(kind)
    if known is None or not isinstance(value.value, bytes):
        return opened, value
    return opened, open_message(value, data, known[0], prefixed=known[1])


def open_message(span: Span, data: bytes, name: str, prefixed: bool, version: int | None = None) -> Span:
    """A bytes span whose content is a message of our schema, an int16 version in front when prefixed.

    The version is the given one, else the int16 in front, which unprefixed is the message's own first field. The span
    stays as it is, with a note, where the content is not that.
    """
    assert isinstance(span.value, bytes)
    at = span.end - len(span.value)
    front: tuple[Span, ...] = ()
    if prefixed or version is None:
        if len(span.value) < 2:
            return span._replace(note=f"too short for {name}")
        (own,) = unpack_from(">h", span.value)
        version = own if version is None else version
        if prefixed:
            front = (_leaf(data, at, "version", "int16", None),)
            at += 2
    message = builtin_library().message(name)
    assert version is not None
    if version not in message.versions:
        return span._replace(note=f"{name} has versions {message.versions}, not {version}")
    body = annotate(builtin_library().plan(name, version), data, at, span.end)
    broken = body.broken()
    if broken:
        return span._replace(note=f"not {name} v{version}: {broken[1].note}")
    return span._replace(children=(*front, *body.children), text=f"{name} v{version}")


def _leaf(data: bytes, pos: int, name: str, kind: str, text: str | None) -> Span:
    packed: Struct = PACKED[kind]
    (value,) = packed.unpack_from(data, pos)
    return Span(name, kind, pos, pos + packed.size, value, (), None, None, text)


def _varint(data: bytes, pos: int, end: int, what: str) -> tuple[int, int]:
    try:
        raw, at = read_uvarint(data, pos, end, 64)
    except VarintError as error:
        raise _Stop(f"the {what} at offset {pos}: {error}") from None
    return (raw >> 1) ^ -(raw & 1), at
