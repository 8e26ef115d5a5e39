"""A large answer's bytes, a few elements at a time: what stands before its array, the elements, what stands behind it.

Pieces puts an answer together from the answers to slices of its request; in_steps writes a body that is there already.
Both give the bytes that the codec would give for the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from struct import pack
from typing import Any, NamedTuple

from kwire.broker.context import Body, Hangup, Request, Work
from kwire.codec.library import builtin_library
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.values import Codec
from kwire.wire.varint import write_uvarint

AT_ONCE = 200  # things that are written at a step


def weight(item: Any) -> int:
    """How many things an element names."""
    if type(item) is not dict:
        return 1
    return 1 + sum(len(value) + _inner(value) for value in item.values() if type(value) is list)


def _inner(items: list[Any]) -> int:
    return sum(weight(item) - 1 for item in items) if items and type(items[0]) is dict else 0


class Layout(NamedTuple):
    """A struct around one array of structs. inner: the layout of the array's elements, if they have such an array."""

    head: Codec
    array: Slot
    element: Codec
    tail: Codec
    inner: Layout | None

    def length(self, number: int) -> bytes:
        """The array's length on the wire; -1: it is null."""
        return write_uvarint(number + 1) if self.array.compact else pack(">i", number)


@cache
def layout_of(api: str, version: int, answered: str = "") -> Layout | None:
    """An answer's layout around the array of this name, or around its first array of structs."""
    plan = builtin_library().plan(f"{api}Response", version)
    return _layout(plan, plan.root, answered)


def _layout(plan: Plan, struct: StructPlan, name: str) -> Layout | None:
    named = (n for n, slot in enumerate(struct.slots) if slot.array and slot.struct and name in ("", slot.name))
    at = next(named, None)
    if at is None:
        return None
    array = struct.slots[at]
    assert array.struct is not None
    before = StructPlan(struct.name, struct.slots[:at], {}, False, 0)
    behind = StructPlan(struct.name, struct.slots[at + 1 :], struct.tagged, struct.flexible, 0)
    head, element, tail = (Codec(Plan(plan.message, plan.version, part)) for part in (before, array.struct, behind))
    return Layout(head, array, element, tail, _layout(plan, array.struct, ""))


def _written(codec: Codec, body: Body) -> bytes:
    return codec.encode_fitted(body)


def in_steps(layout: Layout, body: Body) -> Work[bytes]:
    """The body's bytes, some elements at every step. Raises EncodeError."""
    out: list[bytes] = []
    written = 0
    for data, things in _elements(layout, body):
        out.append(data)
        written += things
        if written >= AT_ONCE:
            written = 0
            yield
    return b"".join(out)


def _elements(layout: Layout, body: Body) -> Iterator[tuple[bytes, int]]:
    """The pieces, and how many things are in each."""
    rows = body.get(layout.array.name, [])
    yield _written(layout.head, body) + layout.length(-1 if rows is None else len(rows)), 1
    for row in rows or ():
        things = weight(row)
        if things > AT_ONCE and layout.inner is not None:
            yield from _elements(layout.inner, row)
        else:
            yield _written(layout.element, row), things
    yield _written(layout.tail, body), 1


class Pieces:
    """An answer from the answers to slices of its request. Raises Hangup when it is larger than most bytes."""

    def __init__(self, request: Request, answered: str, most: int) -> None:
        layout = layout_of(request.api, request.version, answered)
        assert layout is not None
        self.title, self.most, self.layout = request.api, most, layout
        self.first: Body | None = None
        self._elements: list[bytes] = []
        self._open: Body | None = None
        self._size = 0

    def take(self, body: Body, goes_on: bool) -> None:
        """A slice's answer."""
        self.first = self.first or body
        rows = body[self.layout.array.name]
        if goes_on and self._open is not None and rows:
            for name, value in rows[0].items():
                if type(value) is list:
                    self._open[name].extend(value)
            rows = rows[1:]
        for row in rows:
            self._close()
            self._open = row

    def _close(self) -> None:
        if self._open is None:
            return
        data = _written(self.layout.element, self._open)
        self._open = None
        self._size += len(data)
        if self._size > self.most:
            raise Hangup(f"the answer to {self.title} is larger than {self.most:,} bytes")
        self._elements.append(data)

    def whole(self) -> bytes:
        self._close()
        first = self.first or {}
        head, tail = _written(self.layout.head, first), _written(self.layout.tail, first)
        return b"".join((head, self.layout.length(len(self._elements)), *self._elements, tail))
