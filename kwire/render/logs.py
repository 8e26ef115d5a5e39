"""A broker's files as lists: of a log a line for each record, its batches marked; of indexes and snapshots a row for
each entry. What internal topics hold is told in the words of its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.codec.secrets import Withheld
from kwire.codec.span import TAG, TAGGED, UNDECODED, WRONG_CHECKSUM, Span
from kwire.counted import counted
from kwire.records.annotate import BATCH, CUT, RECORD
from kwire.render.cells import scalar, value_cell
from kwire.render.lines import Line, Piece, clean, cut, flowing, quoted

FRONT = ("version", "Version", "record_type", "frame_version")  # of what is opened: no fields of its own
KEY = 24  # columns of a key, at most
ELEMENTS = 3  # of an array of structs, in a line
BYTES = 48  # of what is no text, in hex
NONE = -1  # what numbers are that are not there: producer id, sequence, epoch


def file_lines(span: Span, width: int | None, most: int = 0) -> list[Line]:
    """The lines of a file's tree. width: where lines are cut, None cuts nothing. most: so many entries, 0 all."""
    if any(child.type in (BATCH, RECORD, CUT) for child in span.children):
        lines = _Log(span, most).lines()
    else:
        lines = _entries(span, most, width)
    return lines if width is None else [_cut_line(line, width) for line in lines]


def is_list(span: Span) -> bool:
    """Whether a file's tree has entries that can be listed."""
    return any(child.type in (BATCH, RECORD, CUT) or _fields(child) for child in _listed(span))


def _cut_line(line: Line, width: int) -> Line:
    out: Line = []
    for text, style in line:
        out.append((cut(text, width), style))
        width -= len(text)
        if width <= 0:
            break
    return out


# ---------------------------------------------------------------- logs


class _Entry(NamedTuple):
    """A record as it is shown. said: key and value in one, of what was opened."""

    offset: str
    day: str
    time: str
    key: str
    value: Piece
    said: bool


class _Log:
    """A log segment's lines: offsets, times and keys in columns."""

    def __init__(self, span: Span, most: int) -> None:
        self._parts: list[tuple[Span, int, list[_Entry]]] = []  # with how many records there are in all
        self._left = 0  # records beyond most
        shown = 0
        for child in span.children:
            entries, count = [], 0
            for count, record in enumerate(_records(child), 1):  # noqa: B007 (the last one counts)
                if most and shown == most:
                    self._left += 1
                else:
                    entries.append(_entry(record))
                    shown += 1
            if entries or not self._left:
                self._parts.append((child, count, entries))
        every = [entry for *_, entries in self._parts for entry in entries]
        self._offset = max([6, *(len(entry.offset) for entry in every)])
        self._key = min(max([3, *(len(entry.key) for entry in every if not entry.said)]), KEY)
        self._pairs = any(not entry.said for entry in every)

    def lines(self) -> list[Line]:
        head = f"   {'offset':>{self._offset}}  {'time':<12}  "
        lines: list[Line] = [[(head + (f"{'key':<{self._key}}  value" if self._pairs else "what"), "head")]]
        day = ""
        for span, count, entries in self._parts:
            marked = _batch(span, count)
            if marked:
                mark = "┌  " if entries else "   " if span.type == BATCH else "!  "
                lines.append([(mark, "dim"), *marked])
            for number, entry in enumerate(entries, 1):
                if entry.day != day:
                    day = entry.day
                    mark = "│  " if marked else "   "
                    lines.append([(f"{mark}{'':>{self._offset}}  {day}", "dim")])
                mark = "   " if not marked else "│  " if number < len(entries) else "└  "
                lines.append(self._line(mark, entry))
        if self._left:
            lines.append([(f"   … {counted(self._left, 'more record')}", "dim")])
        return lines

    def _line(self, mark: str, entry: _Entry) -> Line:
        front: Line = [(mark, "dim"), (f"{entry.offset:>{self._offset}}  ", "offset"), (f"{entry.time:<12}  ", "dim")]
        if not entry.said:
            front.append((f"{cut(entry.key, self._key):<{self._key}}  ", "name"))
        return [*front, entry.value]


def _records(span: Span) -> Iterator[Span]:
    """The records below, of a compressed message set those inside."""
    inner = [child for child in span.children if child.type in (BATCH, RECORD) or child.type == "array"]
    found = [record for child in inner for record in _records(child)]
    if found or span.type != RECORD:
        yield from found
    else:
        yield span


def _batch(span: Span, count: int) -> Line:
    """What is to be said of a batch; nothing of one record alone that is neither compressed nor special."""
    if span.type not in (BATCH, RECORD):  # cut, preallocated, or not to be read
        note = clean(span.note or span.type)
        return [(f"at byte {span.start:,}: {note}", "note" if span.type in (CUT, "zeros") else "error")]
    values = {child.name: child.value for child in span.children}
    texts = {child.name: child.text or "" for child in span.children}
    parts = [f"batch at byte {span.start:,}"]
    if count != 1:
        parts.append(counted(count, "record"))
    words = [word for word in texts.get("Attributes", "").split(", ") if word not in USUAL]
    special = bool(words)
    packed = next((child.text for child in span.children if child.buffer is not None), None)
    if packed and words and packed.startswith(words[0]):
        words[0] = packed
    parts += words
    if values.get("ProducerId", NONE) != NONE:
        sequence = values.get("BaseSequence", NONE)
        numbered = f" sequence {sequence}" if sequence != NONE else ""
        parts.append(f"producer {values['ProducerId']} epoch {values.get('ProducerEpoch')}{numbered}")
    wrong = next((child.note for child in span.below() if (child.note or "").startswith(WRONG_CHECKSUM)), None)
    broken = next((child.note for child in span.below() if child.type == UNDECODED), None)
    line: Line = [(" · ".join(map(clean, parts)), "dim")]
    line += [(f" · {clean(note)}", "error") for note in (wrong, broken) if note]
    return line if special or count != 1 or len(line) > 1 else []


USUAL = ("", "not compressed", "create time", "unused")


def _entry(record: Span) -> _Entry:
    parts = {child.name: child for child in record.children}
    when = next((child for child in record.children if child.name.startswith("Timestamp")), None)
    text = (when.text or "") if when is not None else ""
    day, _, time = text.partition(" ") if text[:1].isdecimal() else ("", "", text)
    key, value = parts.get("Key"), parts.get("Value")
    headers = parts.get("Headers")
    more = counted(len(headers.children), "header") if headers is not None and headers.children else ""
    opened = any(part is not None and part.children and part.text for part in (key, value))
    if opened and key is not None and value is not None:
        said = _said(key, value)
    else:
        said = (_raw(value), "value" if value is not None and value.value is not None else "dim")
    if more:
        said = (f"{said[0]}  +{more}", said[1])
    return _Entry(str(record.value), day, time.rstrip("Z"), _raw(key), said, opened)


def _raw(span: Span | None) -> str:
    """Bytes as text where they are text, else in hex."""
    if span is None or span.value is None:
        return "null"
    if not isinstance(span.value, bytes):
        return value_cell(span)[0]
    raw = span.value
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "".join(text.split()).isprintable():
        return quoted(text)
    return raw[:BYTES].hex(" ") + (f" … {counted(len(raw), 'byte')}" if len(raw) > BYTES else "")


# ---------------------------------------------------------------- what internal topics and control batches hold


def _said(key: Span, value: Span) -> Piece:
    """A record of an internal topic or of a control batch in a line."""
    name = (key.text or value.text or "").partition(" ")[0]
    teller = TELLERS.get(name)
    if value.value is None:
        kind = name.removesuffix("Key")
        return f"{kind} {_flat(key)} deleted", "note"
    if teller is not None and value.children:
        return teller(_values(key), _values(value), key, value), ""
    if not key.text:  # metadata and control records are told by their values
        name = _values(key).get("Type") or (value.text or "").partition(" ")[0]
        return f"{name} {_flat(value)}", ""
    shown = _flat(value) if value.children else _raw(value)
    return f"{name.removesuffix('Key')} {_flat(key)} → {shown or 'nothing'}", ""


def _values(span: Span) -> dict[str, str]:
    """The fields of an opened key or value as short texts."""
    return {child.name: _short(child) for child in _fields(span)}


def _fields(span: Span) -> list[Span]:
    """The fields that are there; those of tag sections too."""
    out: list[Span] = []
    for child in span.children:
        if child.type == TAGGED:
            out += [
                tag.children[0] for tag in child.children if tag.type == TAG and tag.slot is not None and tag.children
            ]
        elif child.name not in FRONT and child.type != UNDECODED:
            out.append(child)
    return out


def _flat(span: Span) -> str:
    """Name and value of each field that says something."""
    out = []
    for child in _fields(span):
        text = _short(child)
        if text and "Timestamp" not in child.name:
            out.append(f"{child.name} {text}")
    return " ".join(out)


def _short(span: Span) -> str:
    """A field's value in a word or a few; empty where it says nothing."""
    value, slot = span.value, span.slot
    if isinstance(value, Withheld):
        return str(value)
    if value is None or value in ("", b"", []):
        return ""
    if isinstance(value, list):
        return "[" + ", ".join(_word(scalar(one, slot)[0]) for one in value) + "]"
    if span.is_list:
        texts = [text for text in (_element(child) for child in span.children[:ELEMENTS]) if text]
        more = [f"+{len(span.children) - ELEMENTS}"] if len(span.children) > ELEMENTS else []
        return "[" + ", ".join([*texts, *more]) + "]"
    if span.children:
        inner = _flat(span)
        return f"({inner})" if inner else ""
    if slot is not None and slot.array and not span.name.startswith("["):
        return ""
    if value == NONE and slot is not None and slot.type.startswith("int"):
        return ""
    text = scalar(value, slot)[0]
    meanings = slot.field.meanings if slot is not None else ()
    named = next((meaning.name for meaning in meanings if meaning.value == value), None)
    return named or _word(text)


def _element(span: Span) -> str:
    return f"({_flat(span)})" if span.children else _short(span)


def _word(text: str) -> str:
    """A quoted text without its quotes, where it is one word."""
    bare = text[1:-1]
    plain = text.startswith('"') and text.endswith('"') and bare and not set(bare) & set(' "\\()[],')
    return bare if plain else text


def _offset_commit(key: dict[str, str], value: dict[str, str], *_: Span) -> str:
    metadata = f" metadata {value['Metadata']}" if value.get("Metadata") else ""
    epoch = f" leader epoch {value['LeaderEpoch']}" if value.get("LeaderEpoch") else ""
    partition = f"{key.get('Topic', '')}-{key.get('Partition', '')}"
    return f"group {key.get('Group', '')} commits {partition} at {value.get('Offset', '')}{epoch}{metadata}"


def _group(key: dict[str, str], value: dict[str, str], _: Span, span: Span) -> str:
    members = next((child for child in span.children if child.name == "Members"), None)
    names = [_values(member).get("MemberId", "") for member in members.children] if members is not None else []
    who = counted(len(names), "member") + (f": {', '.join(names)}" if names else "")
    parts = [
        f"group {key.get('Group', '')}",
        f"gen {value.get('Generation', '')}",
        value.get("Protocol", ""),
        who,
    ]
    return " · ".join(filter(None, parts))


def _transaction(key: dict[str, str], value: dict[str, str], _: Span, span: Span) -> str:
    topics = next((child for child in span.children if child.name == "TransactionPartitions"), None)
    there = []
    for topic in topics.children if topics is not None else ():
        given = _values(topic)
        there.append(f"{given.get('Topic', '')}-{given.get('PartitionIds', '').strip('[]').replace(' ', '')}")
    producer = f"producer {value.get('ProducerId', '')} epoch {value.get('ProducerEpoch', '')}"
    name = f"txn {key.get('TransactionalId', '')}"
    parts = [name, value.get("TransactionStatus", ""), producer, " ".join(there)]
    return " · ".join(filter(None, parts))


TELLERS: dict[str, Callable[[dict[str, str], dict[str, str], Span, Span], str]] = {
    "OffsetCommitKey": _offset_commit,
    "GroupMetadataKey": _group,
    "TransactionLogKey": _transaction,
}


# ---------------------------------------------------------------- indexes and snapshots


def _listed(span: Span) -> tuple[Span, ...]:
    """The entries of an index, or of the array in a snapshot."""
    array = next((child for child in span.children if child.is_list), None)
    return array.children if array is not None else span.children


def _entries(span: Span, most: int, width: int | None) -> list[Line]:
    rows = [child for child in _listed(span) if child.type != UNDECODED and child.children]
    shown = rows[: most or None]
    cells = [[_cell(field) for field in _fields(row)] for row in shown]
    lines: list[Line] = []
    if cells:
        heads = [_head(field) for field in _fields(shown[0])]
        wide = [max(len(row[at]) for row in [heads, *cells]) for at in range(len(heads))]
        if width is not None and sum(wide) + 2 * len(wide) > width:
            for row in cells:
                lines += flowing(
                    [(f"{head} {cell}", "value") for head, cell in zip(heads, row, strict=True)], width, "  "
                )
            heads, cells = [], []
        for number, row in enumerate([heads, *cells] if heads else []):
            text = "  ".join(f"{cell:>{size}}" for cell, size in zip(row, wide, strict=True))
            lines.append([("  " + text, "value" if number else "head")])
            note = shown[number - 1].note if number else None
            if note:
                lines.append([(f"    ╰ {clean(note)}", "error")])
    if len(shown) < len(rows):
        lines.append([(f"  … {len(rows) - len(shown):,} more", "dim")])
    for child in span.children:
        if child.type in (UNDECODED, "zeros"):
            text = f"  at byte {child.start:,}: {clean(child.note or '')}"
            lines.append([(text, "error" if child.type == UNDECODED else "dim")])
        elif (child.note or "").startswith(WRONG_CHECKSUM):
            lines.append([(f"  {clean(child.note or '')}", "error")])
    return lines


def _head(span: Span) -> str:
    return "Offset" if span.name == "RelativeOffset" and (span.text or "").startswith("offset ") else span.name


def _cell(span: Span) -> str:
    text = span.text or value_cell(span)[0].partition(" · ")[2] or value_cell(span)[0]
    return clean(text.removeprefix("offset "))
