"""Bytes to spans: the plan interpreted, every byte accounted for.

The strategy: a cursor walks the plan. A read that fails closes the tree: what is left becomes one undecoded span, named
after the field that failed, with a note that says what was needed and what there was; every parent ends there. Inside a
tagged field the damage ends with the field, whose size is known. Lengths are claims: nothing is allocated for them.
What is odd but readable (a varint longer than needed, tags out of order, text that is not UTF-8) gets a note.
"""

from __future__ import annotations

from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.span import TAG, TAGGED, UNDECODED, Span
from kwire.counted import counted
from kwire.errors import DecodeError
from kwire.wire import uuids
from kwire.wire.fixed import PACKED, SIZES
from kwire.wire.varint import VarintError, canonical_size, read_uvarint

MAX_SPANS = 1_000_000  # bounds memory on hostile input: about 200 bytes a span


class Effort:
    """What trying layouts on bytes may still cost. left: spans; below one nothing more is tried."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class _Stop(Exception):
    """The bytes at the cursor are not what the plan needs; carries the note."""


class Cursor:
    """Walks a buffer; broken is set by the first failure, and nothing is read after it."""

    __slots__ = ("broken", "data", "end", "most", "pos", "spans")

    def __init__(self, data: bytes | memoryview, pos: int = 0, end: int | None = None, most: int = MAX_SPANS) -> None:
        self.data = data
        self.pos = pos
        self.end = len(data) if end is None else end
        self.broken = False
        self.spans = 0
        self.most = most

    def struct(self, plan: StructPlan) -> tuple[Span, ...]:
        """The fields of a struct and its tag section, as far as they can be read."""
        spans = []
        for slot in plan.slots:
            spans.append(self.field(slot, slot.name))
            if self.broken:
                return tuple(spans)
        if plan.flexible:
            spans.append(self._tag_section(plan))
        return tuple(spans)

    def field(self, slot: Slot, name: str) -> Span:
        """A field, or an element of an array when name is [0] and the like."""
        start = self.pos
        self.spans += 1
        try:
            if self.spans > self.most:
                raise _Stop(f"stopped here: over {self.most:,} spans")
            if slot.array and not name.startswith("["):
                return self._array(slot, name, start)
            if slot.struct:
                return self._struct_field(slot, name, start)
            return self._scalar(slot, name, start)
        except _Stop as stop:
            return self._undecoded(name, start, str(stop), slot)

    def _undecoded(self, name: str, start: int, note: str, slot: Slot | None = None) -> Span:
        self.broken = True
        self.pos = self.end
        return Span(name, UNDECODED, start, self.end, None, (), note, slot)

    # ------------------------------------------------------------ pieces

    def _need(self, count: int, what: str = "") -> None:
        have = self.end - self.pos
        if count > have:
            raise _Stop(f"needs {count_bytes(count)}{what} at offset {self.pos}, has {have:,}")

    def _uvarint(self, what: str) -> tuple[int, str | None]:
        start = self.pos
        try:
            value, self.pos = read_uvarint(self.data, start, self.end)
        except VarintError as error:
            if error.short:
                raise _Stop(f"needs {what} at offset {start}, and {count_bytes(self.end - start)} hold none") from None
            raise _Stop(f"{what} at offset {start}: {error}") from None
        spare = self.pos - start - canonical_size(value)
        return value, f"{what} is {count_bytes(spare)} longer than needed" if spare else None

    def _int(self, kind: str, what: str) -> int:
        self._need(SIZES[kind], f" ({what})")
        (value,) = PACKED[kind].unpack_from(self.data, self.pos)
        self.pos += SIZES[kind]
        return int(value)

    def _length(self, slot: Slot, kind: str, what: str, nullable: bool) -> tuple[int | None, str | None]:
        """A length or a count; None for null. kind is the type of the length where it is not compact."""
        if slot.compact:
            raw, note = self._uvarint(f"the {what}")
            length = raw - 1
        else:
            length, note = self._int(kind, what), None
        if length >= 0:
            return length, note
        if length != -1:
            raise _Stop(f"the {what} is {length:,}")
        if not nullable:
            raise _Stop("is null, and this field must not be")
        return None, note

    def _scalar(self, slot: Slot, name: str, start: int) -> Span:
        kind, note = slot.type, None
        packed = PACKED.get(kind)
        if packed:
            size = packed.size
            if start + size > self.end:
                self._need(size)
            (value,) = packed.unpack_from(self.data, start)
            self.pos = start + size
            if kind == "bool" and self.data[start] > 1:
                note = f"a bool of {self.data[start]}: neither 0 nor 1, read as true"
            return Span(name, kind, start, self.pos, value, (), note, slot)
        if kind == "uuid":
            self._need(16)
            self.pos += 16
            return Span(
                name, kind, start, self.pos, uuids.from_bytes(bytes(self.data[start : start + 16])), (), None, slot
            )
        nullable = slot.nullable and not slot.array  # of an array, the array itself; never its elements
        length, note = self._length(slot, "int16" if kind == "string" else "int32", "length", nullable)
        if length is None:
            return Span(name, kind, start, self.pos, None, (), note, slot)
        self._need(length)
        raw = bytes(self.data[self.pos : self.pos + length])
        self.pos += length
        if kind != "string":
            return Span(name, kind, start, self.pos, raw, (), note, slot)
        text = raw.decode("utf-8", "surrogateescape")
        if not text.isascii() and any("\udc80" <= char <= "\udcff" for char in text):
            note = _both(note, "not valid UTF-8")
        return Span(name, kind, start, self.pos, text, (), note, slot)

    def _array(self, slot: Slot, name: str, start: int) -> Span:
        count, note = self._length(slot, "int32", "count", slot.nullable)
        if count is None:
            return Span(name, slot.label, start, self.pos, None, (), note, slot)
        if slot.type in SIZES and not slot.struct:
            return self._fixed_array(slot, name, start, count, note)
        least = slot.element_minimum
        if not least and count > self.end - self.pos:
            raise _Stop(f"claims {counted(count, 'element')} of no size")
        elements = []
        for index in range(count):
            elements.append(self.field(slot, f"[{index}]"))
            if self.broken:
                if elements[-1].type == UNDECODED:
                    note = _both(note, f"claims {counted(count, 'element')}, {index:,} could be read")
                break
        return Span(name, slot.label, start, self.pos, count, tuple(elements), note, slot)

    def _fixed_array(self, slot: Slot, name: str, start: int, count: int, note: str | None) -> Span:
        """Numbers and uuids lie in one span: its value is the list."""
        size = SIZES[slot.type]
        self._need(count * size, f" for {counted(count, 'element')}")
        raw = bytes(self.data[self.pos : self.pos + count * size])
        self.pos += len(raw)
        if slot.type == "uuid":
            values: list[object] = [uuids.from_bytes(raw[at : at + 16]) for at in range(0, len(raw), 16)]
        else:
            values = [value for (value,) in PACKED[slot.type].iter_unpack(raw)]
        return Span(name, slot.label, start, self.pos, values, (), note, slot)

    def _struct_field(self, slot: Slot, name: str, start: int) -> Span:
        assert slot.struct
        note = None
        if slot.nullable and not slot.array:
            marker = self._int("int8", "null marker")
            null = 0 if slot.tag is not None else -1  # inside a tag, official code writes a varint 0
            if marker <= null:
                note = None if marker == null else f"null marker {marker}: not {null}, read as null"
                return Span(name, "struct", start, self.pos, None, (), note, slot)
            if marker != 1:
                note = f"null marker {marker}: not 1, read as present"
        children = self.struct(slot.struct)
        return Span(name, "struct", start, self.pos, len(children), children, note, slot)

    # ------------------------------------------------------------ tagged fields

    def _tag_section(self, plan: StructPlan) -> Span:
        start = self.pos
        try:
            count, note = self._uvarint("the number of tagged fields")
        except _Stop as stop:
            return self._undecoded(TAGGED, start, str(stop))
        spans: list[Span] = []
        last = -1
        for _ in range(count):
            span = self._tagged_field(plan, last)
            spans.append(span)
            if self.broken:
                break
            last = span.value if isinstance(span.value, int) else last
        return Span(TAGGED, TAGGED, start, self.pos, count, tuple(spans), note)

    def _tagged_field(self, plan: StructPlan, last: int) -> Span:
        start = self.pos
        self.spans += 1
        try:
            if self.spans > self.most:
                raise _Stop(f"stopped here: over {self.most:,} spans")
            tag, note = self._uvarint("the tag")
            size, size_note = self._uvarint(f"the size of tag {tag}")
            self._need(size, f" for tag {tag}")
        except _Stop as stop:
            return self._undecoded(TAGGED, start, str(stop))
        note = _both(note, size_note)
        if tag <= last:
            note = _both(note, f"tag {tag} after tag {last}: tags must ascend")
        end, slot = self.pos + size, plan.tagged.get(tag)
        if slot is None:
            raw = bytes(self.data[self.pos : end])
            child = Span(f"tag {tag}", "bytes", self.pos, end, raw)
            self.pos = end
            return Span(f"tag {tag}", TAG, start, end, tag, (child,), _both(note, "unknown tag"))
        outer, self.end = self.end, end
        children = [self.field(slot, slot.name)]
        if self.pos < end and not self.broken:
            left = f"tag {tag} says {count_bytes(size)}, the field takes {self.pos - children[0].start:,}"
            children.append(Span(slot.name, UNDECODED, self.pos, end, None, (), left, slot))
        self.pos, self.end, self.broken = end, outer, self.spans > self.most
        return Span(slot.name, TAG, start, end, tag, tuple(children), note, slot)


def annotate(
    plan: Plan, data: bytes | memoryview, pos: int = 0, end: int | None = None, whole: bool = True,
    effort: Effort | None = None,
) -> Span:  # fmt: skip
    """The span tree of a message that lies in data from pos to end; offsets count from data's start.

    Never raises on bad bytes. With whole, bytes left behind the message are an undecoded span; without, the tree ends
    where the message does. effort: bounds the spans, and loses as many.
    """
    cursor = Cursor(data, pos, end, MAX_SPANS if effort is None else min(max(effort.left, 0), MAX_SPANS))
    children = cursor.struct(plan.root)
    if effort is not None:
        effort.left -= cursor.spans
    if whole and cursor.pos < cursor.end:
        note = f"{count_bytes(cursor.end - cursor.pos)} left over behind the message"
        children += (Span("trailing", UNDECODED, cursor.pos, cursor.end, None, (), note),)
        cursor.pos = cursor.end
    return Span(plan.title, "message", pos, cursor.pos, None, children)


def decode_error(plan: Plan, data: bytes | memoryview, pos: int = 0) -> DecodeError:
    """What is wrong with the bytes from pos that values.py could not read, with its place in data."""
    broken = annotate(plan, data, pos).broken()
    if broken is None:
        return DecodeError(plan.title, "", pos, "could not be read")
    path, span = broken
    return DecodeError(plan.title, path, span.start, span.note or "could not be read")


def count_bytes(count: int) -> str:
    """1 byte, 4,096 bytes."""
    return counted(count, "byte")


def _both(one: str | None, other: str | None) -> str | None:
    return f"{one}; {other}" if one and other else one or other
