"""The span tree: named pieces of a frame. Diagram, tree, JSON, hex, SVG and HTML only read it.

A span's children lie in order and without holes up to its end; bytes before the first child are the span's own (an
array's count, a tag and its size). So leaves and own bytes tile the frame: no byte is unaccounted for, none is twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.codec.plan import Slot

UNDECODED = "undecoded"  # the type of a span that could not be read; its note says why
NOT_OPENED = "not opened"  # how the note of what was left compressed, to bound memory, begins
TAG = "tag"  # the type of a span around a tagged field's value; its own bytes are the tag and the size
WRONG_CHECKSUM = "wrong checksum"  # how the note of a checksum that does not fit begins
TAGGED = "tagged"  # the type of a struct's tag section


class Span(NamedTuple):
    """start and end are byte offsets in the frame. An element of an array is named [0], [1], …

    value is what a leaf holds; of an array how many elements it claims (None: null); of a tagged field its tag;
    of a tag section how many it holds. slot is the field's plan, where there is one; text says what the value means
    where no plan does. secret: not to be shown unless asked for. buffer: what the span's bytes decompress to; the
    children's offsets, and all below them, then count in it and no longer in the frame.
    """

    name: str
    type: str
    start: int
    end: int
    value: object = None
    children: tuple[Span, ...] = ()
    note: str | None = None
    slot: Slot | None = None
    text: str | None = None
    secret: bool = False
    buffer: bytes | None = None

    @property
    def own_end(self) -> int:
        """Where the span's own bytes end: at its first child, or at its end; children in a buffer take none of them."""
        return self.children[0].start if self.children and self.buffer is None else self.end

    @property
    def is_list(self) -> bool:
        """Whether the children are elements, [0], [1], …, rather than fields."""
        return bool(self.children) and self.children[0].name.startswith("[")

    def walk(self, path: str = "") -> Iterator[tuple[str, Span]]:
        """Every span below this one with its path (Topics[0].Name), parents first. Tag sections add no name."""
        for child in self.children:
            if child.type in (TAGGED, "message", "header") or (self.type == TAG and child.name == self.name):
                here = path
            elif child.name.startswith("["):
                here = path + child.name
            else:
                here = f"{path}.{child.name}" if path else child.name
            yield here, child
            yield from child.walk(here)

    def below(self) -> Iterator[Span]:
        """Every span below this one, parents first, without its path."""
        for child in self.children:
            yield child
            if child.children:
                yield from child.below()

    def wrong_checksums(self) -> int:
        """How many checksums below do not fit their bytes."""
        return sum(span.note is not None and span.note.startswith(WRONG_CHECKSUM) for span in self.below())

    def broken(self) -> tuple[str, Span] | None:
        """The first span that could not be read, with its path; None when all could."""
        if self.type == UNDECODED:
            return "", self
        if not any(span.type == UNDECODED for span in self.below()):
            return None
        return next((path, span) for path, span in self.walk() if span.type == UNDECODED)


def plain(span: Span) -> object:
    """The plain value (kwire.decode's form) that a span stands for; of a broken one, what could be read."""
    slot = span.slot
    if isinstance(span.value, tuple):  # what stands for something withheld
        return span.value
    if slot and slot.array and not span.name.startswith("["):
        if span.value is None:
            return None
        return span.value if isinstance(span.value, list) else [plain(c) for c in span.children if c.type != UNDECODED]
    if span.type in ("message", "header") or (slot and slot.struct):
        if slot and slot.nullable and span.value is None:
            return None
        return fields(span)
    return span.value


def opened(span: Span) -> object:
    """The same, but fields that hold formats of their own give what is in them, where that was opened."""
    if not span.children:
        return [] if span.type == "array" and span.slot is None else plain(span)
    if span.is_list:
        return [opened(child) for child in span.children if child.type != UNDECODED]
    return fields(span, opened)


def fields(span: Span, of: Callable[[Span], object] = plain) -> dict[str, object]:
    """The fields of a struct, a message or a header as plain values; what could not be read is absent."""
    out: dict[str, object] = {}
    if of is not plain and span.text and isinstance(span.value, bytes):
        out["_type"] = span.text  # what was opened, as FeatureLevelRecord v0
    if of is not plain and span.type == "record" and isinstance(span.value, int):
        out["_offset"] = span.value
        out["_timestamp"] = next((child.text for child in span.children if child.name.startswith("Timestamp")), None)
    for child in span.children:
        if child.type == TAGGED:
            for tag in child.children:
                if tag.type == TAG and tag.slot is None:
                    unknown = out.setdefault("_tagged", {})
                    assert isinstance(unknown, dict)
                    unknown[tag.value] = tag.children[0].value if tag.children else b""
                elif tag.type == TAG and tag.children and tag.children[0].type != UNDECODED:
                    out[tag.name] = of(tag.children[0])
        elif child.type != UNDECODED:
            out[child.name] = of(child)
        elif of is not plain and child.note and child.note.startswith(NOT_OPENED):
            out[child.name] = child.note
    return out
