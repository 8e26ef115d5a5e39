"""Writes the Python that encodes a message: see values.py for the strategy."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from kwire.codec.code import SHORT, CodeWriter, packed_run, runs_of, short_arrays
from kwire.codec.encode_checks import MAX_UVARINT
from kwire.codec.plan import Slot, StructPlan
from kwire.wire.fixed import CODES
from kwire.wire.varint import write_uvarint

Message = dict[str, Any]


class EncodeWriter(CodeWriter):
    """Writes encode(m) -> bytes: m is the message, w appends a piece, s is a string's bytes, n a length.

    fitting: the message may lack any field, and fields that the plan does not have are left out.
    """

    def __init__(self, escape: bool, fitting: bool = False) -> None:
        super().__init__(escape)
        self.fitting = fitting

    def write(self, plan: StructPlan) -> EncodeWriter:
        self.scope |= {
            "uvarint": write_uvarint,
            "small": [bytes((n,)) for n in range(128)],
            "join": b"".join,
            "truth": {False: False, True: True},
        }
        with self.block("def encode(m):"):
            self.put("o = []; w = o.append")
            self.struct(plan, "m")
            self.put("return join(o)")
        return self

    def struct(self, plan: StructPlan, source: str) -> None:
        """Code that writes the dict named source."""
        tags = self.name() if plan.flexible else ""
        if tags:
            self.put(f"{tags} = 0")
        if not self.fitting:  # its fields must be exactly the untagged ones, or it is completed
            with self.block(f"if len({source}) != {len(plan.slots)}:"):
                self.put(f"{source}{f', {tags}' if tags else ''} = {self.bind(_Completer(plan))}({source})")
        elif plan.tagged:
            with self.block(f"if {' or '.join(f'{slot.name!r} in {source}' for slot in plan.tagged.values())}:"):
                names = self.bind([(tag, slot.name) for tag, slot in plan.tagged.items()])
                self.put(f"{tags} = {{tag: {source}[name] for tag, name in {names} if name in {source}}}")
        for run in runs_of(plan.slots):
            if run[0].size is not None:
                parts = [self.packable(slot, self.field(slot, source)) for slot in run]
                self.put(f"w({self.bind(packed_run(run).pack)}({', '.join(parts)}))")
            else:
                value = self.name()
                self.put(f"{value} = {self.field(run[0], source)}")
                self.value(run[0], value)
        if not tags:
            return
        if not plan.tagged:
            self.put(f"w({tags} or b'\\0')")
            return
        # known tagged fields: completed as {tag: writer's input}; unknown ones are bytes already
        with self.block(f"if {tags}:"):
            item, outer = self.name(), self.name()
            self.put(f"w(uvarint(len({tags})))")
            with self.block(f"for {item} in sorted({tags}):"):
                value = self.name()
                self.put(f"{value} = {tags}[{item}]")
                self.put(f"{outer} = o; o = []; w = o.append")
                word = "if"
                for number, slot in plan.tagged.items():
                    with self.block(f"{word} {item} == {number}:"):
                        self.value(slot, value)
                    word = "elif"
                with self.block("else:"):
                    self.put(f"w({value})")
                self.put(f"s = join(o); o = {outer}; w = o.append")
                self.put(f"w(uvarint({item})); w(uvarint(len(s))); w(s)")
        with self.block("else:"):
            self.put("w(b'\\0')")

    def field(self, slot: Slot, source: str) -> str:
        """The value of a field of the dict named source."""
        if not self.fitting:
            return f"{source}[{slot.name!r}]"
        default = slot.default()
        plain = default is None or isinstance(default, bool | int | str | bytes)
        return f"{source}.get({slot.name!r}, {repr(default) if plain else self.bind(default)})"

    def length(self, slot: Slot, code: str, expression: str) -> None:
        if slot.compact:
            self.put(f"n = {expression} + 1")
            self.put("w(small[n] if n < 128 else uvarint(n))")
        else:
            self.put(f"w({self.bind(Struct('>' + code).pack)}({expression}))")

    def null(self, slot: Slot, code: str, value: str, nullable: bool) -> None:
        with self.block(f"if {value} is None:"):
            if not nullable:
                self.put("bad()")
            else:
                null = bytes(1) if slot.compact else Struct(">" + code).pack(-1)
                self.put(f"w({null!r})")

    def value(self, slot: Slot, value: str) -> None:
        if slot.array:
            self.null(slot, "i", value, slot.nullable)
            with self.block("else:"):
                self.array(slot, value)
        elif slot.struct and slot.nullable:
            with self.block(f"if {value} is None:"):
                self.put("w(b'\\0')" if slot.tag is not None else "w(b'\\xff')")
            with self.block("else:"):
                self.put("w(b'\\x01')")
                self.struct(slot.struct, value)
        elif slot.struct:
            self.struct(slot.struct, value)
        else:
            self.scalar(slot, value, slot.nullable)

    def scalar(self, slot: Slot, value: str, nullable: bool) -> None:
        if slot.type in CODES or slot.type == "uuid":
            self.put(f"w({self.bind(packed_run([slot]).pack)}({self.packable(slot, value)}))")
            return
        code = "h" if slot.type == "string" else "i"
        self.null(slot, code, value, nullable)
        with self.block("else:"):
            if slot.type == "string":
                self.put(f"s = {value}.encode({self.utf8})")
            else:
                self.put(f"s = memoryview({value})")
                self.put("if s.itemsize != 1: bad()")
            self.length(slot, code, "len(s)")
            self.put("w(s)")

    def packable(self, slot: Slot, expression: str) -> str:
        """What pack() takes for a value of fixed size. As a bool it would take anything, hence the look-up."""
        if slot.type == "uuid":
            return f"{expression}.bytes"
        return f"truth[{expression}]" if slot.type == "bool" else expression

    def array(self, slot: Slot, value: str) -> None:
        self.put(f"if type({value}) is not list and type({value}) is not tuple: bad()")
        if slot.type in CODES and slot.type != "bool":
            packs = self.bind([packed.pack for packed in short_arrays("B" if slot.compact else "i", CODES[slot.type])])
            self.put(f"n = len({value})")
            with self.block(f"if n < {SHORT}:"):
                self.put(f"w({packs}[n](n{' + 1' if slot.compact else ''}, *{value}))")
            with self.block("else:"):
                self.length(slot, "i", "n")
                self.put(f"w({self.bind(_pack_array(CODES[slot.type]))}({value}))")
            return
        self.length(slot, "i", f"len({value})")
        element = self.name()
        with self.block(f"for {element} in {value}:"):
            if slot.struct:
                self.struct(slot.struct, element)
            else:
                self.scalar(slot, element, nullable=False)


def _pack_array(code: str) -> Callable[[list[Any]], bytes]:
    def pack(values: list[Any]) -> bytes:
        return Struct(f">{len(values)}{code}").pack(*values)

    return pack


class _Completer:
    """Fills in what a struct's dict lacks and takes its tagged fields out: (fields, {tag: value} or 0).

    Of a struct without known tagged fields, the tag section comes back as bytes. A name that the struct does not have
    is an exception, and so is a tag under "_tagged" that is a field's, or too large.
    """

    def __init__(self, plan: StructPlan) -> None:
        self.plan = plan
        self.tags = {slot.name: tag for tag, slot in plan.tagged.items()}
        self.names = {slot.name for slot in plan.slots}

    def __call__(self, given: Message) -> Any:
        fields = {slot.name: given[slot.name] if slot.name in given else slot.default() for slot in self.plan.slots}
        if not self.plan.flexible:
            if given.keys() - self.names:
                raise KeyError
            return fields
        tags = {int(tag): raw for tag, raw in given.get("_tagged", {}).items()}
        if any(tag in self.plan.tagged or tag > MAX_UVARINT for tag in tags):
            raise KeyError
        for name in given.keys() - self.names - {"_tagged"}:
            tags[self.tags[name]] = given[name]
        if self.plan.tagged:
            return fields, tags or 0
        if not tags:
            return fields, 0
        pieces = [write_uvarint(tag) + write_uvarint(len(raw)) + raw for tag, raw in sorted(tags.items())]
        return fields, write_uvarint(len(tags)) + b"".join(pieces)
