"""A frame ready to be shown: the lines of its diagram, its bytes, and which of them belong to which field.

Made in the process that reads, so that what is withheld never leaves it and the one that draws stays free for keys.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.codec.annotate import count_bytes
from kwire.codec.secrets import Withheld, withheld
from kwire.codec.span import UNDECODED, Span
from kwire.records.compression import Budget
from kwire.render.bodies import shown_span
from kwire.render.diagram import DiagramOptions, diagram_rows
from kwire.render.exchange_diagrams import packet_marks, title_lines
from kwire.render.hexdump import pieces
from kwire.render.lines import Line, clean
from kwire.session.exchange import Exchange, Message

MOST_LINES = 20_000  # of a diagram
MOST_BYTES = 1 << 20  # of a frame
INFLATE = 64 << 20  # bytes that a frame may decompress to
NO_FIELD = -1


class Area(NamedTuple):
    """Bytes from start to end in the frame, and the first and the last line that tell of them; bad: an error code, or
    they could not be read."""

    name: str

    start: int
    end: int
    line: int
    last: int
    bad: bool


class Picture(NamedTuple):
    """lines: title and diagram; owners: of each line the number of its field, NO_FIELD: none. fields lie in the order
    of lines. data: the frame's bytes, at most MOST_BYTES, of size in all; hidden: ranges of them that are withheld,
    and zero in data. tiles: every run of bytes with whether it could not be read."""

    lines: list[Line]
    owners: list[int]
    fields: list[Area]
    data: bytes
    size: int
    hidden: list[tuple[int, int]]
    tiles: list[tuple[int, int, bool]]


class FrameViews(NamedTuple):
    """How frames are shown: columns, elements of an array (0: all), whether what is withheld is, and times of day."""

    width: int
    elements: int
    secrets: bool
    utc: bool = False


def picture(message: Message, exchange: Exchange, views: FrameViews, start: int | None) -> Picture:
    """start: what times count from, ns."""
    head = [*title_lines(message, views.width, None if views.utc else start, exchange), []]
    if message.token and not views.secrets:
        size = len(message.data)
        said: Line = [(f"{count_bytes(size - 4)} withheld (--show-secrets)", "note")]
        return Picture(
            [*head, said], [NO_FIELD] * (len(head) + 1), [], message.data[:4], size, [(4, size)], [(0, 4, False)],
        )  # fmt: skip
    span = shown_span(message, views.secrets, Budget(INFLATE))
    options = DiagramOptions(views.width, False, False, views.elements, packets=packet_marks(message))
    made = Picture(head, [NO_FIELD] * len(head), [], *_bytes(span, message.data))
    last, owner = None, NO_FIELD
    within: dict[int, int] = {}  # of what was decompressed, by identity, the field that holds it
    for line, row, inside in diagram_rows(span, message.data, options):
        if row is None:
            owner = NO_FIELD
        elif row is not last:
            owner = within.get(id(inside), NO_FIELD)
            if inside is message.data:
                owner = len(made.fields)
                here, name = len(made.lines), clean(row.span.name)
                made.fields.append(Area(name, row.span.start, row.end, here, here, _is_bad(row.span)))
            if row.span.buffer is not None:
                within[id(row.span.buffer)] = owner
            last = row
        elif row.span.start == made.fields[owner].start and inside is message.data:
            made.fields[owner] = made.fields[owner]._replace(last=len(made.lines))
        made.lines.append(line)
        made.owners.append(owner)
        if len(made.lines) >= MOST_LINES:
            made.lines.append([(f"… only the first {MOST_LINES:,} lines are shown", "note")])
            made.owners.append(NO_FIELD)
            break
    return made


def _is_bad(span: Span) -> bool:
    """Whether it is what somebody looks for first: an error, or what could not be read."""
    if isinstance(span.value, Withheld):
        return False
    error = span.slot is not None and span.slot.field.error and isinstance(span.value, int) and span.value != 0
    return error or span.type == UNDECODED


def _bytes(span: Span, data: bytes) -> tuple[bytes, int, list[tuple[int, int]], list[tuple[int, int, bool]]]:
    hidden = sorted((start, end) for start, end in withheld(span) if start < MOST_BYTES)
    shown = bytearray(data[:MOST_BYTES])
    for start, end in hidden:
        end = min(end, len(shown))
        shown[start:end] = bytes(end - start)
    tiles = [(start, end, kind == UNDECODED) for start, end, _, kind in pieces(span) if start < MOST_BYTES]
    return bytes(shown), len(data), hidden, tiles
