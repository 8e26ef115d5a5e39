"""Many messages of one version to columns at once: the plan's third reader.

Each field is read for all messages together; arrays become offsets and one flat column of all their elements, as Arrow
lays lists out. Where elements differ in size, the k-th element of all arrays is stepped over together, which gives
every element's place; then the elements' fields are read like those of a message. A message that does not parse, or
that carries tagged fields, is not among the columns: the values codec reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.scan_code import fixed_size
from kwire.codec.scan_columns import ColumnWalk
from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.wire import uuids
from kwire.wire.columns import Columns, Ints, repeat
from kwire.wire.fixed import SIZES

Mask = NDArray[np.bool_]
SMALL = 64  # elements of an array that are read without a look at how many bytes are left
MOST_PLANS = 4096  # whose runs are kept
DTYPES = {
    "bool": "?", "int8": "i1", "int16": ">i2", "uint16": ">u2", "int32": ">i4", "uint32": ">u4", "int64": ">i8",
    "float64": ">f8",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Values in the machine's own byte order."""

    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    def to_list(self, _: bytes) -> list[Any]:
        out: list[Any] = self.values.tolist()
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Texts or bytes, by where they lie in the buffer. kind is string, bytes, records or uuid; valid: which are not
    null (None: all)."""

    kind: str
    starts: Ints
    lengths: Ints
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def to_list(self, buffer: bytes) -> list[Any]:
        raw = [buffer[at : at + size] for at, size in zip(self.starts.tolist(), self.lengths.tolist(), strict=True)]
        out: list[Any] = raw
        if self.kind == "string":
            out = [text.decode("utf-8", "surrogateescape") for text in raw]
        elif self.kind == "uuid":
            out = [uuids.from_bytes(data) for data in raw]
        return _nulled(out, self.valid)


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Element i's values are those from offsets[i] to offsets[i + 1] of the flat column."""

    offsets: Ints
    flat: Column
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_list(self, buffer: bytes) -> list[Any]:
        flat, ends = self.flat.to_list(buffer), self.offsets.tolist()
        return _nulled([flat[low:high] for low, high in pairwise(ends)], self.valid)


@dataclass(frozen=True, slots=True, eq=False)
class Structs:
    """Fields by name, all of one length; of a nullable struct only for the rows that are valid."""

    fields: dict[str, Column]
    count: int
    valid: Mask | None = None

    def __len__(self) -> int:
        return self.count if self.valid is None else len(self.valid)

    def to_list(self, buffer: bytes) -> list[Any]:
        columns = [column.to_list(buffer) for column in self.fields.values()]
        rows: list[Any] = [dict(zip(self.fields, row, strict=True)) for row in zip(*columns, strict=True)]
        rows = rows if columns else [{} for _ in range(self.count)]
        if self.valid is None:
            return rows
        found = iter(rows)
        return [next(found) if there else None for there in self.valid.tolist()]


Column = Numbers | Slices | Lists | Structs


def decode_columns(
    plan: Plan, buffer: bytes, starts: Ints, ends: Ints, thresholds: Thresholds = DEFAULT, whole: bool = True
) -> tuple[Structs, Mask]:
    """The messages that lie in buffer from starts to ends, and which of them are among the columns, in their order.
    whole: whether the plan must take all of a message's bytes."""
    data = Columns(buffer)
    mean = max(int((ends - starts).mean()), 1) if len(starts) else 1
    size = max(thresholds.chunk // mean, thresholds.least)
    chunks = max(round(len(starts) / size), 1)  # of equal size: a small one costs as much
    bounds = [len(starts) * number // chunks for number in range(chunks + 1)]
    parts = [_decode(plan, data, starts[low:high], ends[low:high], whole) for low, high in pairwise(bounds)]
    if len(parts) == 1:
        return parts[0]
    columns = joined([part for part, _ in parts])
    assert isinstance(columns, Structs)
    return columns, np.concatenate([fine for _, fine in parts])


def _decode(plan: Plan, data: Columns, starts: Ints, ends: Ints, whole: bool) -> tuple[Structs, Mask]:
    fine = np.ones(len(starts), bool)
    while True:  # what is left alone depends on how many there are, so again until all are fine
        chosen = np.flatnonzero(fine)
        read = _Read(data, ends[chosen])
        columns, reached = read.struct(plan.root, starts[chosen], np.arange(len(chosen)))
        good = (reached == read.ends if whole else reached <= read.ends) & ~read.bad & ~read.alone
        if good.all():
            return columns, fine
        fine[chosen[~good]] = False


def joined(parts: Sequence[Column]) -> Column:
    """Columns one after the other."""
    first = parts[0]
    if isinstance(first, Numbers):
        return Numbers(np.concatenate([part.values for part in parts if isinstance(part, Numbers)]))
    if isinstance(first, Slices):
        slices = [part for part in parts if isinstance(part, Slices)]
        starts, lengths = (np.concatenate([getattr(part, name) for part in slices]) for name in ("starts", "lengths"))
        return Slices(first.kind, starts, lengths, _valid(slices))
    if isinstance(first, Lists):
        lists = [part for part in parts if isinstance(part, Lists)]
        ends = np.cumsum([0, *(len(part.flat) for part in lists)])
        offsets = [part.offsets[:-1] + end for part, end in zip(lists, ends.tolist(), strict=False)]
        return Lists(np.concatenate([*offsets, ends[-1:]]), joined([part.flat for part in lists]), _valid(lists))
    structs = [part for part in parts if isinstance(part, Structs)]
    fields = {name: joined([part.fields[name] for part in structs]) for name in first.fields}
    return Structs(fields, sum(part.count for part in structs), _valid(structs))


def _valid(parts: Sequence[Slices | Lists | Structs]) -> Mask | None:
    if all(part.valid is None for part in parts):
        return None
    return np.concatenate([np.ones(len(part), bool) if part.valid is None else part.valid for part in parts])


class NumberRun(NamedTuple):
    """Numbers that follow each other: what they are as one record, and of each its name and the machine's own type."""

    dtype: np.dtype[Any]
    fields: list[tuple[str, np.dtype[Any]]]


def runs(plan: StructPlan) -> list[NumberRun | Slot]:
    """A struct's slots, numbers that follow each other as one."""
    known = _runs.get(id(plan))
    if known is None or known[0] is not plan:
        if len(_runs) > MOST_PLANS:
            _runs.clear()
        known = _runs[id(plan)] = plan, _find_runs(plan)
    return known[1]


def _find_runs(plan: StructPlan) -> list[NumberRun | Slot]:
    out: list[NumberRun | Slot] = []
    for numbers, slots in groupby(plan.slots, lambda slot: slot.type in DTYPES and not slot.array):
        if numbers:
            kinds = [(slot.name, np.dtype(DTYPES[slot.type])) for slot in slots]
            out.append(NumberRun(np.dtype(kinds), [(name, kind.newbyteorder("=")) for name, kind in kinds]))
        else:
            out += slots
    return out


_runs: dict[int, tuple[StructPlan, list[NumberRun | Slot]]] = {}  # by identity: plans hold dicts and have no hash


class _Read(ColumnWalk):
    """Walks as scan_columns does, and reads on its way. rows: which message each position belongs to."""

    careful = False  # each element is read after it was stepped over
    ratio = 0.5  # making values of a message one by one costs much more than walking over it

    def struct(self, plan: StructPlan, at: Ints, rows: Ints) -> tuple[Structs, Ints]:
        """The columns of a struct that begins at these positions, and the positions behind it."""
        fields: dict[str, Column] = {}
        offset = 0
        for run in runs(plan):
            if isinstance(run, NumberRun):
                records = self.data.records(run.dtype, at + offset if offset else at)
                for name, native in run.fields:
                    fields[name] = Numbers(records[name].astype(native))
                offset += run.dtype.itemsize
            elif run.size is not None:
                fields[run.name] = self._fixed(run, at + offset if offset else at)
                offset += run.size
            else:
                if offset:
                    at, offset = at + offset, 0
                fields[run.name], at = self._field(run, at, rows)
        if offset:
            at = at + offset
        return Structs(fields, len(rows)), self.tags(at, rows) if plan.flexible else at

    def _fixed(self, slot: Slot, at: Ints) -> Column:
        if slot.type == "uuid":
            return Slices("uuid", at, np.full(len(at), 16, np.int64))
        return Numbers(self.data.numbers(DTYPES[slot.type], at))

    def _field(self, slot: Slot, at: Ints, rows: Ints) -> tuple[Column, Ints]:
        if slot.array:
            count, at, valid = self.counted(slot, at, rows, 4)
            return self._list(slot, count, at, rows, valid)
        if slot.struct and slot.nullable:
            there = self.data.u8(at) < 128
            at = at + 1
            inner, behind = self.struct(slot.struct, at[there], rows[there])
            at[there] = behind
            return Structs(inner.fields, inner.count, there), at
        if slot.struct:
            return self.struct(slot.struct, at, rows)
        length, at, valid = self.counted(slot, at, rows, 2 if slot.type == "string" else 4)
        return Slices(slot.type, at, length, valid), at + length

    def _list(self, slot: Slot, count: Ints, at: Ints, rows: Ints, valid: Mask | None) -> tuple[Lists, Ints]:
        size = fixed_size(slot)
        least = size if size is not None else max(slot.element_minimum, 1)
        high = int(count.max(initial=0))
        # small arrays that reach beyond their message are noticed where it ends
        if high > SMALL:
            too_many = count * least > self.ends[rows] - at
            if too_many.any():
                self.bad[rows[too_many]] = True
                count = np.where(too_many, 0, count)
        most = self.most(count, rows) if size is None else 0  # first: it empties arrays that are too long
        offsets = np.zeros(len(count) + 1, np.int64)
        np.cumsum(count, out=offsets[1:])
        if slot.type in DTYPES and 0 < high <= SMALL and (count == high).all():  # all alike, which is the rule
            kind = np.dtype(DTYPES[slot.type])
            block = self.data.records(np.dtype((kind, high)), at)
            return Lists(offsets, Numbers(block.reshape(-1).astype(kind.newbyteorder("="))), valid), at + block[
                0
            ].nbytes
        if size is None:
            places, behind = self._places(slot, count, most, at, rows, offsets)
        elif high <= SMALL and (count == high).all():
            places = (at[:, None] + np.arange(0, high * size, size)).reshape(-1)
            behind = at + high * size
        else:
            places = repeat(at - offsets[:-1] * size, count) + np.arange(0, offsets[-1] * size, size)
            behind = at + count * size
        flat: Column
        if slot.type in SIZES:
            flat = self._fixed(slot, places)
        elif slot.struct:
            flat = self.struct(slot.struct, places, repeat(rows, count))[0]
        else:
            plain = slot._replace(array=False, nullable=False)
            width = 2 if slot.type == "string" else 4
            length, begin, _ = self.counted(plain, places, repeat(rows, count), width)
            flat = Slices(slot.type, begin, length)
        return Lists(offsets, flat, valid), behind

    def _places(self, slot: Slot, count: Ints, most: int, at: Ints, rows: Ints, offsets: Ints) -> tuple[Ints, Ints]:
        """Where each element begins, and the positions behind the arrays; most: elements of the longest."""
        places = np.zeros(offsets[-1], np.int64)
        at = at.copy()
        least = int(count.min(initial=0))
        for number in range(most):
            if number < least:
                places[offsets[:-1] + number] = at
                at = self.element(slot, at, rows)
                continue
            more = np.flatnonzero(count > number)
            here = at[more]
            places[offsets[more] + number] = here
            at[more] = self.element(slot, here, rows[more])
        return places, at


def _nulled(values: list[Any], valid: Mask | None) -> list[Any]:
    if valid is None:
        return values
    return [value if there else None for value, there in zip(values, valid.tolist(), strict=True)]
