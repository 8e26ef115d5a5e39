"""Sixteen bytes a line (eight where it is narrow), each field in a color of its own.

Beside the bytes stand their text and the names of the fields that begin in the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.codec.secrets import withheld
from kwire.codec.span import UNDECODED, Span
from kwire.render.lines import Line, clean

COLORS = ("c0", "c1", "c2", "c3", "c4")
NARROW = 100  # below it, the fields' names need the room of eight bytes


def hexdump(span: Span, data: bytes, width: int = 100) -> Iterator[Line]:
    """The whole of data. The legend at the right names each field at the offset where it begins."""
    tiles = list(pieces(span))
    hidden = [False] * len(data)
    for start, end in withheld(span):
        hidden[start:end] = [True] * (end - start)
    digits = max(4, len(f"{len(data):x}"))
    size = 16 if width >= NARROW else 8
    room = width - digits - 2 - 4 * size - 3
    colors: list[str] = [""] * len(data)
    begins: dict[int, list[tuple[str, str]]] = {}
    for number, (start, end, name, kind) in enumerate(tiles):
        color = "error" if kind == UNDECODED else COLORS[number % len(COLORS)]
        colors[start:end] = [color] * (end - start)
        if end > start:
            begins.setdefault(start // size, []).append((name, color))
    for at in range(0, len(data), size):
        line: Line = [(f"{at:0{digits}x}  ", "offset")]
        row = range(at, min(at + size, len(data)))
        for index in row:
            line.append((f"{'··' if hidden[index] else f'{data[index]:02x}'} ", colors[index]))
        line.append(("   " * (size - len(row)) + " ", ""))
        for index in row:
            line.append((_char(data[index], hidden[index]), colors[index]))
        line.append((" " * (size - len(row)) + "  ", ""))
        yield from _legend(line, begins.get(at // size, []), width - room, room)


def _char(byte: int, hidden: bool) -> str:
    return "·" if hidden else chr(byte) if 32 <= byte < 127 else "."


def _legend(line: Line, names: list[tuple[str, str]], indent: int, room: int) -> Iterator[Line]:
    used = 0
    for name, color in names:
        if used and used + len(name) + 1 > room:
            yield line
            line, used = [(" " * indent, "")], 0
        line.append((name + " ", color))
        used += len(name) + 1
    yield line


def pieces(span: Span) -> Iterator[tuple[int, int, str, str]]:
    """Every run of bytes with the name of what it belongs to: leaves, and the own bytes of what has children."""
    for child in span.children:
        if child.type not in ("header", "message") and child.own_end > child.start:
            yield child.start, child.own_end, _name(child), child.type
        if child.children and child.buffer is None:
            yield from pieces(child)


def _name(span: Span) -> str:
    return f"undecoded:{clean(span.name)}" if span.type == UNDECODED else clean(span.name)
