"""Writes the Python that walks over a message without making values: where it ends, and the error codes it holds.

It is what a listing of a capture needs of most messages, and takes a fraction of the time of decoding. What decode_code
finds malformed this finds too, but for text that is no UTF-8, which both let pass.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from kwire.codec.code import CodeWriter, compile_code, runs_of
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.wire.fixed import SIZES
from kwire.wire.varint import read_uvarint

Scan = Callable[[bytes, int, list[int]], int]


def scanner(plan: Plan) -> Scan:
    """scan(data, position, errors) -> position: the message that begins there is walked over, and the error codes in
    it that are not zero are added to errors, in the order of the fields. Raises ValueError, IndexError or struct.error
    for bytes that are not the message; errors then has those found until there. The position may lie behind the end of
    data: that too means that the message is cut."""
    writer = ScanWriter(False)
    writer.scope |= {"uv": read_uvarint, "h": Struct(">h").unpack_from, "i": Struct(">i").unpack_from}
    writer.scope |= {"skip_tags": _skip_tags}
    with writer.block("def scan(b, p, errors):"):
        writer.struct(plan.root)
        writer.put("return p")
    made: Scan = compile_code(writer, "scan", plan)
    return made


class ScanWriter(CodeWriter):
    """Writes scan(b, p, errors): b is bytes, p the cursor, n a length."""

    def struct(self, plan: StructPlan) -> None:
        """Code that walks over a struct."""
        for run in runs_of(plan.slots):
            if run[0].size is None:
                self.value(run[0])
            else:
                self.run(run)
        if not plan.flexible:
            return
        self.put("n = b[p]; p += 1")
        with self.block("if n:"):
            self.put("if n > 127: n, p = uv(b, p - 1)")
            if plan.tagged:
                self.tags(plan)
            else:
                self.put("p = skip_tags(b, p, n)")

    def run(self, run: list[Slot]) -> None:
        """Fixed fields: only error codes among them are looked at."""
        offset = 0
        for slot in run:
            if slot.field.error:
                self.put(f"n, = h(b, p + {offset})" if offset else "n, = h(b, p)")
                self.put("if n: errors.append(n)")
            offset += SIZES[slot.type]
        self.put(f"p += {offset}")

    def tags(self, plan: StructPlan) -> None:
        tag, end = self.name(), self.name()
        with self.block("for _ in range(n):"):
            self.put(f"{tag}, p = uv(b, p)")
            self.put("n, p = uv(b, p)")
            self.put(f"{end} = p + n")
            word = "if"
            for number, slot in plan.tagged.items():
                with self.block(f"{word} {tag} == {number}:"):
                    if slot.size is not None:
                        self.run([slot])
                    else:
                        self.value(slot)
                    self.put(f"if p != {end}: bad()")
                word = "elif"
            with self.block("else:"):
                self.put(f"p = {end}")
                self.put("if p > len(b): bad()")

    def length(self, slot: Slot, code: str, nullable: bool) -> str:
        """Code that reads a length into n; gives the condition under which there is something."""
        if slot.compact:
            self.put("n = b[p]; p += 1")
            self.put("if n > 127: n, p = uv(b, p - 1)")
            if not nullable:
                self.put("if n == 0: bad()")
            self.put("n -= 1")
        else:
            self.put(f"n, = {code}(b, p); p += {2 if code == 'h' else 4}")
            self.put("if n < -1: bad()" if nullable else "if n < 0: bad()")
        return "n > 0"

    def value(self, slot: Slot) -> None:
        """Code that walks over a field of variable size."""
        if slot.array:
            with self.block(f"if {self.length(slot, 'i', slot.nullable)}:"):
                self.array(slot)
        elif slot.struct and slot.nullable:
            self.put("n = b[p]; p += 1")
            with self.block("if 0 < n < 128:" if slot.tag is not None else "if n < 128:"):
                self.struct(slot.struct)
        elif slot.struct:
            self.struct(slot.struct)
        elif slot.size is not None:
            self.run([slot])
        else:
            self.text(slot, slot.nullable)

    def text(self, slot: Slot, nullable: bool) -> None:
        with self.block(f"if {self.length(slot, 'h' if slot.type == 'string' else 'i', nullable)}:"):
            self.put("p += n")

    def array(self, slot: Slot) -> None:
        """Code for n elements, n above 0."""
        size = fixed_size(slot)
        if size is not None and not holds_errors(slot):
            self.put(f"p += {size} * n")
            return
        self.put(f"if {max(slot.element_minimum, 1)} * n > len(b) - p: bad()")
        with self.block("for _ in range(n):"):
            if slot.struct:
                self.struct(slot.struct)
            elif slot.type in SIZES:
                self.run([slot._replace(array=False)])
            else:
                self.text(slot, False)


def fixed_size(slot: Slot) -> int | None:
    """The bytes of an array's element when all elements have the same."""
    if slot.struct is None:
        return SIZES.get(slot.type)
    if slot.struct.flexible or any(inner.size is None for inner in slot.struct.slots):
        return None
    return sum(inner.size or 0 for inner in slot.struct.slots)


def holds_errors(slot: Slot) -> bool:
    """Whether an error code stands in the elements of an array, tagged fields aside."""
    if slot.struct is None:
        return slot.field.error
    return any(inner.field.error or holds_errors(inner) for inner in slot.struct.slots)


def _skip_tags(data: bytes, pos: int, n: int) -> int:
    for _ in range(n):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        pos += size
        if pos > len(data):
            raise ValueError
    return pos
