"""Writes the Python that decodes a message: see values.py for the strategy."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from kwire.codec.code import SHORT, CodeWriter, packed_run, runs_of, short_arrays
from kwire.codec.plan import Slot, StructPlan
from kwire.wire import uuids
from kwire.wire.fixed import CODES
from kwire.wire.varint import read_uvarint

Message = dict[str, Any]


class DecodeWriter(CodeWriter):
    """Writes decode(b, p) -> (message, position): b is bytes, p the cursor, n a length, e an end.

    The byte behind a run of fixed fields, a compact length or the number of tags, is read with the run: ahead is true
    while n holds it already.
    """

    ahead = False
    null = "None"

    def write(self, plan: StructPlan) -> DecodeWriter:
        self.scope |= {
            "uv": read_uvarint,
            "uuid": uuids.from_bytes,
            "uuids": _uuid_array,
            "unknown_tags": unknown_tags,
            "unknown_tag": unknown_tag,
        }
        with self.block("def decode(b, p):"):
            made = self.struct(plan)
            self.put(f"return {made}, p")
        return self

    def struct(self, plan: StructPlan) -> str:
        """Code that reads a struct; gives the expression or name that then holds the dict."""
        items: list[str] = []
        runs = list(runs_of(plan.slots))
        for index, run in enumerate(runs):
            names = [self.name() for _ in run]
            values = names
            if run[0].size is None:
                self.value(run[0], names[0])
            else:
                follows = runs[index + 1][0] if index + 1 < len(runs) else None
                self.run(run, names, plan.flexible if follows is None else follows.length_byte)
                values = [self.fixed(slot, n) for n, slot in zip(names, run, strict=True)]
            items += [self.item(slot, value) for slot, value in zip(run, values, strict=True)]
        made = self.begun(items)
        if not plan.flexible:
            return self.made(made)
        out = self.name()
        self.byte()
        self.put(f"{out} = {made}")
        with self.block("if n:"):
            self.put("if n > 127: n, p = uv(b, p - 1)")
            self.begin_tags(out)
            if plan.tagged:
                self.tags(plan, out)
            else:
                self.put(f"p = unknown_tags(b, p, n, {self.unknowns(out)})")
            self.end_tags(out)
        return self.made(out)

    # what a value looks like: the only thing that differs for code that writes JSON

    def fixed(self, slot: Slot, value: str) -> str:
        """The expression for a value of fixed size."""
        return f"uuid({value})" if slot.type == "uuid" else value

    def leaf(self, slot: Slot) -> str:
        """The expression for a text or bytes, which are b[p:e]."""
        return f"b[p:e].decode({self.utf8})" if slot.type == "string" else "b[p:e]"

    def item(self, slot: Slot, value: str) -> str:
        """A field within the expression for a struct."""
        return f"{slot.name!r}: {value}"

    def begun(self, items: list[str]) -> str:
        """The expression for a struct whose tagged fields may follow."""
        return "{" + ", ".join(items) + "}"

    def made(self, struct: str) -> str:
        """The expression for the same when nothing follows."""
        return struct

    def tagged(self, out: str, slot: Slot, value: str) -> str:
        """The line that adds a tagged field."""
        return f"{out}[{slot.name!r}] = {value}"

    def unknowns(self, out: str) -> str:
        """The dict that takes unknown tagged fields, under "_tagged"."""
        return out

    def begin_tags(self, out: str) -> None:
        """Code in front of tagged fields."""

    def end_tags(self, out: str) -> None:
        """Code behind them."""

    def listed(self, _: Slot, elements: str) -> str:
        """The expression for an array of the elements that an expression gives."""
        return elements

    def run(self, run: list[Slot], names: list[str], ahead: bool) -> None:
        packed = packed_run(run, "B" if ahead else "")
        targets = [*names, "n"] if ahead else names
        self.put(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {self.bind(packed.unpack_from)}(b, p)")
        self.put(f"p += {packed.size}")
        self.ahead = ahead

    def byte(self) -> None:
        """Code that reads the byte at the cursor into n, unless n holds it."""
        if not self.ahead:
            self.put("n = b[p]; p += 1")
        self.ahead = False

    def tags(self, plan: StructPlan, out: str) -> None:
        tag, end = self.name(), self.name()
        with self.block("for _ in range(n):"):
            self.put(f"{tag}, p = uv(b, p)")
            word = "if"
            for number, slot in plan.tagged.items():
                with self.block(f"{word} {tag} == {number}:"):
                    self.put("n, p = uv(b, p)")
                    self.put(f"{end} = p + n")
                    value = self.name()
                    self.value(slot, value)
                    self.put(f"if p != {end}: bad()")
                    self.put(self.tagged(out, slot, value))
                word = "elif"
            with self.block("else:"):
                self.put(f"p = unknown_tag(b, p, {tag}, {self.unknowns(out)})")

    def length(self, slot: Slot, code: str, nullable: bool, target: str) -> None:
        """Code that reads a length into n and opens the branch for what is not null; closes nothing."""
        if slot.compact:
            self.byte()
            self.put("if n > 127: n, p = uv(b, p - 1)")
            null = "n == 0"
            self.less = " - 1"
        else:
            packed = Struct(">" + code)
            self.put(f"n, = {self.bind(packed.unpack_from)}(b, p); p += {packed.size}")
            null = "n < 0"
            self.less = ""
        with self.block(f"if {null}:"):
            if not nullable:
                self.put("bad()")
            else:
                if not slot.compact:
                    self.put("if n != -1: bad()")
                self.put(f"{target} = {self.null}")

    def value(self, slot: Slot, target: str) -> None:
        """Code that reads a field into target."""
        if slot.array:
            self.length(slot, "i", slot.nullable, target)
            with self.block("else:"):
                self.array(slot, target)
        elif slot.struct and slot.nullable:
            self.byte()
            with self.block("if n > 127 or not n:" if slot.tag is not None else "if n > 127:"):
                self.put(f"{target} = {self.null}")
            with self.block("else:"):
                self.put(f"{target} = {self.struct(slot.struct)}")
        elif slot.struct:
            self.put(f"{target} = {self.struct(slot.struct)}")
        else:
            self.scalar(slot, target, slot.nullable)

    def scalar(self, slot: Slot, target: str, nullable: bool) -> None:
        if slot.type in CODES or slot.type == "uuid":
            packed = packed_run([slot])
            self.put(f"{target}, = {self.bind(packed.unpack_from)}(b, p); p += {packed.size}")
            if self.fixed(slot, target) != target:
                self.put(f"{target} = {self.fixed(slot, target)}")
            return
        self.length(slot, "h" if slot.type == "string" else "i", nullable, target)
        with self.block("else:"):
            self.put(f"e = p + n{self.less}; {target} = {self.leaf(slot)}; p = e")

    def array(self, slot: Slot, target: str) -> None:
        if slot.type in CODES and not slot.struct:
            size = Struct(">" + CODES[slot.type]).size
            if slot.compact:
                self.put("n -= 1")
            runs = self.bind([packed.unpack_from for packed in short_arrays("", CODES[slot.type])])
            large = self.bind(_large_array(CODES[slot.type], size))
            elements = self.listed(slot, f"list({runs}[n](b, p) if n < {SHORT} else {large}(b, p, n))")
            self.put(f"{target} = {elements}; p += {size} * n")
            return
        if slot.type == "uuid":
            if slot.compact:
                self.put("n -= 1")
            self.put("if 16 * n > len(b) - p: bad()")
            self.put(f"{target} = {self.listed(slot, 'uuids(b, p, n)')}; p += 16 * n")
            return
        if not slot.element_minimum:
            self.put("if n > len(b) - p: bad()")
        self.put(f"{target} = []")
        element, append = self.name(), self.name()
        self.put(f"{append} = {target}.append")
        with self.block(f"for _ in range(n{' - 1' if slot.compact else ''}):"):
            if slot.struct:
                element = self.struct(slot.struct)
            else:
                self.scalar(slot, element, nullable=False)
            self.put(f"{append}({element})")
        if self.listed(slot, target) != target:
            self.put(f"{target} = {self.listed(slot, target)}")


def _large_array(code: str, size: int) -> Callable[[bytes, int, int], tuple[Any, ...]]:
    def read(data: bytes, pos: int, n: int) -> tuple[Any, ...]:
        if size * n > len(data) - pos:
            raise ValueError
        return Struct(f">{n}{code}").unpack_from(data, pos)

    return read


def _uuid_array(data: bytes, pos: int, n: int) -> list[object]:
    return [uuids.from_bytes(data[at : at + 16]) for at in range(pos, pos + 16 * n, 16)]


def unknown_tags(data: bytes, pos: int, n: int, out: Message) -> int:
    """Keeps n tagged fields that no definition knows; gives the position behind them."""
    for _ in range(n):
        tag, pos = read_uvarint(data, pos)
        pos = unknown_tag(data, pos, tag, out)
    return pos


def unknown_tag(data: bytes, pos: int, tag: int, out: Message) -> int:
    size, pos = read_uvarint(data, pos)
    end = pos + size
    if end > len(data):
        raise ValueError
    out.setdefault("_tagged", {})[tag] = data[pos:end]
    return end
