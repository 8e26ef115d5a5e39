"""Bytes to plain values and back, as fast as pure Python gets: the plan compiled to Python functions.

The strategy: one function a message and version, everything inlined; adjacent fields of fixed size are joined into one
struct call; nested arrays become nested loops over local variables. The code checks little. A slice beyond the end is
silent, but every read after it fails and a message must end exactly where the bytes do; so bad bytes always end in an
exception, whatever kind, and then annotate.py, which is slow and exact, says what is wrong. Writing goes the same way:
the code takes a complete, well-typed message, and on any exception encode_checks.py finds the path and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from struct import Struct
from typing import Any

from kwire.codec import annotate, encode_checks
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.wire import uuids
from kwire.wire.fixed import CODES
from kwire.wire.varint import read_uvarint, write_uvarint

Message = dict[str, Any]
Decoder = Callable[[bytes, int], tuple[Message, int]]
Encoder = Callable[[Message], bytes]

SHORT = 32  # arrays of fewer numbers are read and written by a Struct made beforehand


@cache
def _short(prefix: str, code: str) -> list[Struct]:
    """Structs for arrays of 0, 1, 2, … numbers, with a count of type prefix in front."""
    return [Struct(f">{prefix}{n}{code}") for n in range(SHORT)]


class Codec:
    """The compiled reader and writer of a plan, each made when it is first used.

    Text that is not UTF-8 is kept by surrogate escapes; only messages that hold such text take the slower code for it.
    """

    __slots__ = ("_decode", "_encode", "_escaping_decode", "_escaping_encode", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._decode: Decoder | None = None
        self._encode: Encoder | None = None
        self._escaping_decode: Decoder | None = None
        self._escaping_encode: Encoder | None = None

    def decode(self, data: bytes | bytearray | memoryview) -> Message:
        """The message; the whole of data must be used. Raises DecodeError."""
        raw = data if type(data) is bytes else bytes(data)
        try:
            message, pos = (self._decode or self._compile_decode())(raw, 0)
        except Exception as error:
            message, pos = self._decode_escaped(raw, 0, error)
        if pos != len(raw):
            raise annotate.decode_error(self.plan, raw)
        return message

    def decode_at(self, data: bytes, pos: int) -> tuple[Message, int]:
        """The message that begins at pos, and where it ends. Raises DecodeError, with an offset in data."""
        try:
            message, end = (self._decode or self._compile_decode())(data, pos)
        except Exception as error:
            message, end = self._decode_escaped(data, pos, error)
        if end > len(data):
            raise annotate.decode_error(self.plan, data, pos)
        return message, end

    def encode(self, message: Message) -> bytes:
        """The bytes. Missing fields get their defaults. Raises EncodeError with the path of what does not fit."""
        try:
            return (self._encode or self._compile_encode())(message)
        except Exception:
            # text with escapes, or a struct that lacks a field and has a tagged one: as long as a complete one
            try:
                if self._escaping_encode is None:
                    self._escaping_encode = _compile(_EncodeWriter(True).write(self.plan.root), "encode", self.plan)
                return self._escaping_encode(encode_checks.complete(self.plan, message))
            except Exception as error:
                raise encode_checks.encode_error(self.plan, message) from error

    def _decode_escaped(self, data: bytes, pos: int, error: Exception) -> tuple[Message, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise annotate.decode_error(self.plan, data, pos) from error
        try:
            if self._escaping_decode is None:
                self._escaping_decode = _compile(_DecodeWriter(True).write(self.plan.root), "decode", self.plan)
            return self._escaping_decode(data, pos)
        except Exception as again:
            raise annotate.decode_error(self.plan, data, pos) from again

    def _compile_decode(self) -> Decoder:
        made: Decoder = _compile(_DecodeWriter(False).write(self.plan.root), "decode", self.plan)
        self._decode = made
        return made

    def _compile_encode(self) -> Encoder:
        made: Encoder = _compile(_EncodeWriter(False).write(self.plan.root), "encode", self.plan)
        self._encode = made
        return made


def _compile(writer: _Writer, name: str, plan: Plan) -> Any:
    scope = writer.scope
    exec(compile("\n".join(writer.lines), f"<{name} {plan.title}>", "exec"), scope)
    return scope[name]


def _uuid_array(data: bytes, pos: int, n: int) -> list[object]:
    return [uuids.from_bytes(data[at : at + 16]) for at in range(pos, pos + 16 * n, 16)]


def _unknown_tags(data: bytes, pos: int, n: int, out: Message) -> int:
    """Keeps n tagged fields that no definition knows; gives the position behind them."""
    for _ in range(n):
        tag, pos = read_uvarint(data, pos)
        pos = _unknown_tag(data, pos, tag, out)
    return pos


def _unknown_tag(data: bytes, pos: int, tag: int, out: Message) -> int:
    size, pos = read_uvarint(data, pos)
    end = pos + size
    if end > len(data):
        raise ValueError
    out.setdefault("_tagged", {})[tag] = data[pos:end]
    return end


def _bad() -> None:
    raise ValueError


class _Writer:
    """Lines of Python with indentation, fresh local names, and the objects that the code refers to."""

    def __init__(self, escape: bool) -> None:
        self.utf8 = '"utf-8", "surrogateescape"' if escape else ""
        self.lines: list[str] = []
        self.depth = 0
        self.names = count()
        self.scope: dict[str, Any] = {"bad": _bad}

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.put(head)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self) -> str:
        return f"v{next(self.names)}"

    def bind(self, value: object) -> str:
        """A global of the generated code for value."""
        name = f"g{next(self.names)}"
        self.scope[name] = value
        return name


def _runs(slots: tuple[Slot, ...]) -> Iterator[list[Slot]]:
    """Adjacent slots of fixed size together, every other slot alone."""
    run: list[Slot] = []
    for slot in slots:
        if slot.size is not None:
            run.append(slot)
            continue
        if run:
            yield run
            run = []
        yield [slot]
    if run:
        yield run


def _pack(run: list[Slot], behind: str = "") -> Struct:
    return Struct(">" + "".join(CODES.get(slot.type, "16s") for slot in run) + behind)


# ---------------------------------------------------------------- reading


class _DecodeWriter(_Writer):
    """Writes decode(b, p) -> (message, position): b is bytes, p the cursor, n a length, e an end.

    The byte behind a run of fixed fields, a compact length or the number of tags, is read with the run: ahead is true
    while n holds it already.
    """

    ahead = False

    def write(self, plan: StructPlan) -> _DecodeWriter:
        self.scope |= {
            "uv": read_uvarint,
            "uuid": uuids.from_bytes,
            "uuids": _uuid_array,
            "unknown_tags": _unknown_tags,
            "unknown_tag": _unknown_tag,
        }
        with self.block("def decode(b, p):"):
            made = self.struct(plan)
            self.put(f"return {made}, p")
        return self

    def struct(self, plan: StructPlan) -> str:
        """Code that reads a struct; gives the expression or name that then holds the dict."""
        items: list[str] = []
        runs = list(_runs(plan.slots))
        for index, run in enumerate(runs):
            names = [self.name() for _ in run]
            values = names
            if run[0].size is None:
                self.value(run[0], names[0])
            else:
                follows = runs[index + 1][0] if index + 1 < len(runs) else None
                self.run(run, names, plan.flexible if follows is None else follows.length_byte)
                values = [f"uuid({n})" if slot.type == "uuid" else n for n, slot in zip(names, run, strict=True)]
            items += [f"{slot.name!r}: {value}" for slot, value in zip(run, values, strict=True)]
        made = "{" + ", ".join(items) + "}"
        if not plan.flexible:
            return made
        out = self.name()
        self.byte()
        self.put(f"{out} = {made}")
        with self.block("if n:"):
            self.put("if n > 127: n, p = uv(b, p - 1)")
            if plan.tagged:
                self.tags(plan, out)
            else:
                self.put(f"p = unknown_tags(b, p, n, {out})")
        return out

    def run(self, run: list[Slot], names: list[str], ahead: bool) -> None:
        packed = _pack(run, "B" if ahead else "")
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
                    self.put(f"{out}[{slot.name!r}] = {value}")
                word = "elif"
            with self.block("else:"):
                self.put(f"p = unknown_tag(b, p, {tag}, {out})")

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
                self.put(f"{target} = None")

    def value(self, slot: Slot, target: str) -> None:
        """Code that reads a field into target."""
        if slot.array:
            self.length(slot, "i", slot.nullable, target)
            with self.block("else:"):
                self.array(slot, target)
        elif slot.struct and slot.nullable:
            self.byte()
            with self.block("if n > 127 or not n:" if slot.tag is not None else "if n > 127:"):
                self.put(f"{target} = None")
            with self.block("else:"):
                self.put(f"{target} = {self.struct(slot.struct)}")
        elif slot.struct:
            self.put(f"{target} = {self.struct(slot.struct)}")
        else:
            self.scalar(slot, target, slot.nullable)

    def scalar(self, slot: Slot, target: str, nullable: bool) -> None:
        if slot.type in CODES or slot.type == "uuid":
            packed = _pack([slot])
            self.put(f"{target}, = {self.bind(packed.unpack_from)}(b, p); p += {packed.size}")
            if slot.type == "uuid":
                self.put(f"{target} = uuid({target})")
            return
        self.length(slot, "h" if slot.type == "string" else "i", nullable, target)
        text = f".decode({self.utf8})" if slot.type == "string" else ""
        with self.block("else:"):
            self.put(f"e = p + n{self.less}; {target} = b[p:e]{text}; p = e")

    def array(self, slot: Slot, target: str) -> None:
        if slot.type in CODES and not slot.struct:
            size = Struct(">" + CODES[slot.type]).size
            if slot.compact:
                self.put("n -= 1")
            runs = self.bind([packed.unpack_from for packed in _short("", CODES[slot.type])])
            large = self.bind(_large_array(CODES[slot.type], size))
            self.put(f"{target} = list({runs}[n](b, p) if n < {SHORT} else {large}(b, p, n)); p += {size} * n")
            return
        if slot.type == "uuid":
            if slot.compact:
                self.put("n -= 1")
            self.put("if 16 * n > len(b) - p: bad()")
            self.put(f"{target} = uuids(b, p, n); p += 16 * n")
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


def _large_array(code: str, size: int) -> Callable[[bytes, int, int], tuple[Any, ...]]:
    def read(data: bytes, pos: int, n: int) -> tuple[Any, ...]:
        if size * n > len(data) - pos:
            raise ValueError
        return Struct(f">{n}{code}").unpack_from(data, pos)

    return read


# ---------------------------------------------------------------- writing


class _EncodeWriter(_Writer):
    """Writes encode(m) -> bytes: m is the message, w appends a piece, s is a string's bytes, n a length."""

    def write(self, plan: StructPlan) -> _EncodeWriter:
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
        """Code that writes the dict named source. Its fields must be exactly the untagged ones, or it is completed."""
        complete = self.bind(_Completer(plan))
        tags = self.name() if plan.flexible else ""
        if tags:
            self.put(f"{tags} = 0")
        with self.block(f"if len({source}) != {len(plan.slots)}:"):
            self.put(f"{source}{f', {tags}' if tags else ''} = {complete}({source})")
        for run in _runs(plan.slots):
            if run[0].size is not None:
                parts = [self.packable(slot, f"{source}[{slot.name!r}]") for slot in run]
                self.put(f"w({self.bind(_pack(run).pack)}({', '.join(parts)}))")
            else:
                value = self.name()
                self.put(f"{value} = {source}[{run[0].name!r}]")
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
            self.put(f"w({self.bind(_pack([slot]).pack)}({self.packable(slot, value)}))")
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
            packs = self.bind([packed.pack for packed in _short("B" if slot.compact else "i", CODES[slot.type])])
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
        if any(tag in self.plan.tagged or tag > encode_checks.MAX_UVARINT for tag in tags):
            raise KeyError
        for name in given.keys() - self.names - {"_tagged"}:
            tags[self.tags[name]] = given[name]
        if self.plan.tagged:
            return fields, tags or 0
        if not tags:
            return fields, 0
        pieces = [write_uvarint(tag) + write_uvarint(len(raw)) + raw for tag, raw in sorted(tags.items())]
        return fields, write_uvarint(len(tags)) + b"".join(pieces)
