"""Walks over thousands of like messages at once: where each ends, and the error codes that it holds.

The plan's fields are taken one after the other, each for all messages together, as columns. What is rare (tagged
fields on the wire, long varints, arrays much longer than there are messages) is left to the scanner of scan_code.py,
message by message. Says the same as that one.
"""

from __future__ import annotations

from struct import error as StructError

import numpy as np
from numpy.typing import NDArray

from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.scan_code import Scan, fixed_size, holds_errors
from kwire.wire.columns import Columns, Ints
from kwire.wire.fixed import SIZES

Mask = NDArray[np.bool_]
FEW = 48  # messages that are not worth columns
RATIO = 8  # elements of an array are walked together while there are so many messages for each


class Scanned:
    """Of each message: ok (it ends where it should), the first error code that is not zero (0: none), how many."""

    def __init__(self, count: int) -> None:
        self.ok = np.zeros(count, bool)
        self.first = np.zeros(count, np.int64)
        self.errors = np.zeros(count, np.int64)


def scan_columns(plan: Plan, scan: Scan, buffer: bytes, data: Columns, starts: Ints, ends: Ints) -> Scanned:
    """Scans the messages from starts to ends, offsets in buffer, of which data are the columns."""
    out = Scanned(len(starts))
    alone = np.ones(len(starts), bool)
    if len(starts) >= FEW:
        walk = _Walk(data, ends, out)
        reached = walk.struct(plan.root, starts.copy(), np.arange(len(starts)))
        alone = walk.alone
        out.ok = (reached == ends) & ~walk.bad & ~alone
        out.first[alone] = 0
        out.errors[alone] = 0
    for row in np.flatnonzero(alone).tolist():
        errors: list[int] = []
        message = buffer[starts[row] : ends[row]]
        try:
            out.ok[row] = scan(message, 0, errors) == len(message)
        except (IndexError, ValueError, StructError):
            out.ok[row] = False
        if errors:
            out.first[row], out.errors[row] = errors[0], len(errors)
    return out


class _Walk:
    """Positions of some messages, field by field. rows: which messages the positions belong to."""

    def __init__(self, data: Columns, ends: Ints, out: Scanned) -> None:
        self.data, self.ends, self.out = data, ends, out
        self.bad = np.zeros(len(ends), bool)
        self.alone = np.zeros(len(ends), bool)  # left to the scanner

    def struct(self, plan: StructPlan, at: Ints, rows: Ints) -> Ints:
        """The positions behind a struct at these positions."""
        offset = 0
        for slot in plan.slots:
            if slot.size is not None:
                if slot.field.error:
                    self._error(self.data.u16(at + offset), rows)
                offset += slot.size
                continue
            if offset:
                at, offset = at + offset, 0
            at = self._value(slot, at, rows)
        if offset:
            at = at + offset
        if plan.flexible:
            tags = self.data.u8(at)
            at = at + 1
            if tags.any():
                self.alone[rows[tags != 0]] = True
        return at

    def _error(self, codes: Ints, rows: Ints) -> None:
        """Counts error codes that are not zero; each row stands in rows once."""
        if not codes.any():
            return
        hit = np.flatnonzero(codes)
        hit_rows, found = rows[hit], codes[hit]
        found = np.where(found > 0x7FFF, found - 0x10000, found)
        fresh = self.out.errors[hit_rows] == 0
        self.out.first[hit_rows[fresh]] = found[fresh]
        self.out.errors[hit_rows] += 1

    def _value(self, slot: Slot, at: Ints, rows: Ints) -> Ints:
        if slot.array:
            count, at = self._length(slot, at, rows, 4)
            return self._array(slot, count, at, rows)
        if slot.struct:
            if not slot.nullable:
                return self.struct(slot.struct, at, rows)
            there = self.data.u8(at) < 128
            at = at + 1
            if there.any():
                at[there] = self.struct(slot.struct, at[there], rows[there])
            return at
        count, at = self._length(slot, at, rows, 2 if slot.type == "string" else 4)
        return at + count

    def _length(self, slot: Slot, at: Ints, rows: Ints, width: int) -> tuple[Ints, Ints]:
        """The length or count at these positions, 0 for null, and the positions behind it."""
        if slot.compact:
            count = self.data.u8(at)
            long = count > 127
            at = at + 1
            if long.any():  # two bytes are usual enough, more are left alone
                second = self.data.u8(at)
                count = np.where(long, count - 128 + (second << 7), count)
                longer = long & (second > 127)
                if longer.any():
                    self.alone[rows[longer]] = True
                    count[longer] = 1
                at = at + long
            null = count == 0
            count = np.maximum(count - 1, 0)
        else:
            raw = self.data.u16(at) if width == 2 else self.data.u32(at)
            top = 1 << (8 * width - 1)
            count = np.where(raw >= top, raw - 2 * top, raw)
            at = at + width
            null = count == -1
            if (count < -1).any():
                self.bad[rows[count < -1]] = True
            count = np.maximum(count, 0)
        if not slot.nullable and null.any():
            self.bad[rows[null]] = True
        return count, at

    def _array(self, slot: Slot, count: Ints, at: Ints, rows: Ints) -> Ints:
        size = fixed_size(slot)
        if size is not None and not holds_errors(slot):
            return at + count * size
        least = max(slot.element_minimum, 1)
        too_many = count * least > self.ends[rows] - at
        if too_many.any():
            self.bad[rows[too_many]] = True
            count = np.where(too_many, 0, count)
        most = int(count.max(initial=0))
        if most * RATIO > len(rows) and most > 1:
            long = count > max(1, len(rows) // RATIO)
            self.alone[rows[long]] = True
            count = np.where(long, 0, count)
            most = int(count.max(initial=0))
        for number in range(most):
            more = count > number
            every = bool(more.all())
            here, some = (at, rows) if every else (at[more], rows[more])
            here = self._element(slot, here, some)
            if every:
                at = here
            else:
                at = at.copy()
                at[more] = here
        return at

    def _element(self, slot: Slot, at: Ints, rows: Ints) -> Ints:
        if slot.struct:
            return self.struct(slot.struct, at, rows)
        if slot.type in SIZES:
            if slot.field.error:
                self._error(self.data.u16(at), rows)
            return at + SIZES[slot.type]
        plain = slot._replace(array=False, nullable=False)
        count, at = self._length(plain, at, rows, 2 if slot.type == "string" else 4)
        return at + count
