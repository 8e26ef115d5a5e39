"""How many elements the arrays of a request hold, counted before anything of it is made.

A byte on the wire may become a hundred in memory: what is too much is refused before it is decoded. Kafka only asks
that an array's length be covered by bytes that are there; its limit is the heap.
"""

from __future__ import annotations

from struct import error as StructError
from struct import unpack_from

from kwire.broker.context import Work
from kwire.codec.plan import Slot, StructPlan
from kwire.wire.varint import VarintError, read_uvarint

AT_ONCE = 2_000  # elements that are counted at a step


class TooMany(Exception):
    """More elements than were allowed."""


class Unreadable(Exception):
    """The bytes do not hold the message."""


def count(plan: StructPlan, data: bytes, pos: int, most: int) -> Work[int]:
    """The elements of all arrays of the struct at pos, in all depths. Raises TooMany beyond most, Unreadable."""
    walk = ElementWalk(data, most)
    try:
        yield from walk.root(plan, pos)
    except (VarintError, IndexError, StructError) as error:
        raise Unreadable(str(error)) from error
    return walk.count


class ElementWalk:
    """Positions in, positions out, in data; most: elements that are gone through before TooMany is raised."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.most, self.count = data, most, 0

    def root(self, plan: StructPlan, pos: int) -> Work[None]:
        """The message, with a pause now and then in its arrays of structs."""
        for slot in plan.slots:
            if not slot.array or slot.struct is None:
                pos = pos + slot.size if slot.size is not None else self.value(slot, pos)
                continue
            size, pos = self.begun(slot, pos)
            before = self.count
            for number in range(size):
                pos = self.struct(slot.struct, pos)
                if number % AT_ONCE == AT_ONCE - 1 or self.count - before > AT_ONCE:
                    before = self.count
                    yield
        self.tags(plan, pos)

    def struct(self, plan: StructPlan, pos: int) -> int:
        for slot in plan.slots:
            size = slot.size
            pos = pos + size if size is not None else self.value(slot, pos)
        return self.tags(plan, pos)

    def tags(self, plan: StructPlan, pos: int) -> int:
        if plan.flexible:
            tags, pos = read_uvarint(self.data, pos)
            for _ in range(tags):
                self.more(1)
                tag, pos = read_uvarint(self.data, pos)
                size, pos = read_uvarint(self.data, pos)
                known = plan.tagged.get(tag)
                if known is not None:
                    self.value(known, pos)
                pos += size
        if pos > len(self.data):
            raise Unreadable("it ends too early")
        return pos

    def value(self, slot: Slot, pos: int) -> int:
        if slot.array:
            return self.array(slot, pos)
        if slot.struct is not None:
            if not slot.nullable:
                return self.struct(slot.struct, pos)
            there = self.data[pos]
            return self.struct(slot.struct, pos + 1) if there == 1 else pos + 1
        if slot.size is not None:
            return pos + slot.size
        return self.text(slot, pos)

    def text(self, slot: Slot, pos: int) -> int:
        size, pos = self.length(slot, pos, short=slot.type == "string")
        return pos + max(size, 0)

    def length(self, slot: Slot, pos: int, short: bool) -> tuple[int, int]:
        if slot.compact:
            size, pos = read_uvarint(self.data, pos)
            return size - 1, pos
        (size,) = unpack_from(">h" if short else ">i", self.data, pos)
        return size, pos + (2 if short else 4)

    def array(self, slot: Slot, pos: int) -> int:
        size, pos = self.begun(slot, pos)
        if slot.struct is not None:
            inner = slot.struct
            for _ in range(size):
                pos = self.struct(inner, pos)
            return pos
        if slot.type not in ("string", "bytes", "records"):
            return pos + slot.element_minimum * size
        for _ in range(size):
            pos = self.text(slot, pos)
        return pos

    def begun(self, slot: Slot, pos: int) -> tuple[int, int]:
        """An array's elements, which are counted, and where the first is."""
        size, pos = self.length(slot, pos, short=False)
        if size <= 0:
            return 0, pos
        if slot.element_minimum * size > len(self.data) - pos:
            raise Unreadable("an array goes on beyond the end")
        self.more(size)
        return size, pos

    def more(self, size: int) -> None:
        self.count += size
        if self.count > self.most:
            raise TooMany
