"""What the two code generators share: lines of Python in the making, and how fields are joined into one struct call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from struct import Struct
from typing import Any

from kwire.codec.plan import Plan, Slot
from kwire.wire.fixed import CODES

SHORT = 32  # arrays of fewer numbers are read and written by a Struct made beforehand


@cache
def short_arrays(prefix: str, code: str) -> list[Struct]:
    """Structs for arrays of 0, 1, 2, … numbers, with a count of type prefix in front."""
    return [Struct(f">{prefix}{n}{code}") for n in range(SHORT)]


def _bad() -> None:
    raise ValueError


class CodeWriter:
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


def runs_of(slots: tuple[Slot, ...]) -> Iterator[list[Slot]]:
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


def packed_run(run: list[Slot], behind: str = "") -> Struct:
    return Struct(">" + "".join(CODES.get(slot.type, "16s") for slot in run) + behind)


def compile_code(writer: CodeWriter, name: str, plan: Plan) -> Any:
    scope = writer.scope
    exec(compile("\n".join(writer.lines), f"<{name} {plan.title}>", "exec"), scope)
    return scope[name]
