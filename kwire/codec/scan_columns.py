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
from kwire.codec.thresholds import DEFAULT
from kwire.wire.columns import Columns, Ints
from kwire.wire.fixed import SIZES

Mask = NDArray[np.bool_]
REMEMBERED = 4096  # bytes; what messages up to this size hold is not looked at twice


class Scanned:
    """Of each message: ok (it ends where it should), the first error code that is not zero (0: none), how many."""

    def __init__(self, count: int) -> None:
        self.ok = np.zeros(count, bool)
        self.first = np.zeros(count, np.int64)
        self.errors = np.zeros(count, np.int64)


def scan_columns(
    plan: Plan, scan: Scan, buffer: bytes, data: Columns, starts: Ints, ends: Ints, few: int = DEFAULT.scans
) -> Scanned:
    """Scans the messages from starts to ends, offsets in buffer, of which data are the columns. few: up to so many are
    scanned one by one."""
    out = Scanned(len(starts))
    alone = np.ones(len(starts), bool)
    if len(starts) > few:
        walk = ColumnWalk(data, ends, out)
        reached = walk.step(plan.root, starts.copy(), np.arange(len(starts)))
        alone = walk.alone
        out.ok = (reached == ends) & ~walk.bad & ~alone
        out.first[alone] = 0
        out.errors[alone] = 0
    rows = np.flatnonzero(alone)
    known: dict[bytes, tuple[bool, int, int]] = {}  # brokers say the same to every client, as in ApiVersions
    for row, start, end in zip(rows.tolist(), starts[rows].tolist(), ends[rows].tolist(), strict=True):
        message = buffer[start:end]
        found = known.get(message) if len(message) <= REMEMBERED else None
        if found is None:
            found = _scanned(scan, message)
            if len(message) <= REMEMBERED:
                known[message] = found
        out.ok[row], out.first[row], out.errors[row] = found
    return out


def _scanned(scan: Scan, message: bytes) -> tuple[bool, int, int]:
    """As Scanned has them, of one message."""
    errors: list[int] = []
    try:
        ok = scan(message, 0, errors) == len(message)
    except (IndexError, ValueError, StructError):
        ok = False
    return ok, errors[0] if errors else 0, len(errors)


class ColumnWalk:
    """Positions of some messages, field by field. rows: which messages the positions belong to.

    bad: messages that do not parse; alone: those that are left to another reader; out: where error codes are
    counted. ratio: elements of arrays are walked together while there are so many messages for each."""

    ratio = 8.0
    careful = True  # whether nobody else looks at what is stepped over

    def __init__(self, data: Columns, ends: Ints, out: Scanned | None = None) -> None:
        self.data, self.ends, self._out = data, ends, out
        self.bad = np.zeros(len(ends), bool)
        self.alone = np.zeros(len(ends), bool)

    def step(self, plan: StructPlan, at: Ints, rows: Ints) -> Ints:
        """The positions behind a struct at these positions."""
        shift = 0  # what all positions still lack
        for slot in plan.slots:
            if slot.size is not None:
                if slot.field.error and self._out is not None:
                    self._error(self.data.u16(at + shift), rows, self._out)
                shift += slot.size
                continue
            if shift < 0:
                at, shift = at + shift, 0
            size = self._stride(slot) if slot.length_byte else None
            if size is not None:
                at, shift = self._short(slot, at, shift, rows, size)
                continue
            at, shift = self._value(slot, at + shift if shift else at, rows), 0
        if plan.flexible:
            if shift < 0:
                at, shift = at + shift, 0
            if self.careful:
                tags = self.data.bytes(at, shift)
                if tags.any():
                    self.alone[rows[tags != 0]] = True
            shift += 1
        return at + shift if shift else at

    def _stride(self, slot: Slot) -> int | None:
        """What a field of variable size takes for each unit of its length; None where that differs."""
        if not slot.array:
            return 1
        return None if self._out is not None and holds_errors(slot) else fixed_size(slot)

    def _short(self, slot: Slot, at: Ints, shift: int, rows: Ints, size: int) -> tuple[Ints, int]:
        """Over a field whose length is a varint, nearly always of one byte."""
        count = self.data.bytes(at, shift)
        if count.max(initial=0) > 127:
            length, at, _ = self.counted(slot, at + shift, rows, 4)
            return at + length * size, 0
        if (self.careful or slot.nullable) and not count.all():
            if not slot.nullable:
                self.bad[rows[count == 0]] = True
            count = np.maximum(count, 1)
        return at + (count if size == 1 else np.multiply(count, size, dtype=np.int64)), shift + 1 - size

    def tags(self, at: Ints, rows: Ints) -> Ints:
        """The positions behind a tag section; messages that have tagged fields are left alone."""
        tags = self.data.u8(at)
        if tags.any():
            self.alone[rows[tags != 0]] = True
        return at + 1

    def counted(self, slot: Slot, at: Ints, rows: Ints, width: int) -> tuple[Ints, Ints, Mask | None]:
        """The length or count at these positions, 0 for null, the positions behind it, and which are not null (None:
        none is)."""
        if slot.compact:
            count = self.data.u8(at)
            at = at + 1
            if count.max(initial=0) > 127:
                count, at = self._long(count, at, rows)
            if count.all():
                return count - 1, at, None
            null = count == 0
            count = np.maximum(count - 1, 0)
        else:
            raw = self.data.u16(at) if width == 2 else self.data.u32(at)
            top = 1 << (8 * width - 1)
            at = at + width
            null = raw >= top
            if not null.any():
                return raw, at, None
            if (raw[null] != 2 * top - 1).any():
                self.bad[rows[null & (raw != 2 * top - 1)]] = True
            count = np.where(null, 0, raw)
        if not slot.nullable:
            self.bad[rows[null]] = True
        return count, at, ~null

    def most(self, count: Ints, rows: Ints) -> int:
        """How many elements the longest array has; messages with arrays much longer than there are messages are left
        alone, and count as empty then."""
        most = int(count.max(initial=0))
        if most * self.ratio > len(rows) and most > 1:
            limit = max(1, int(len(rows) / self.ratio))
            long = count > limit
            if long.any():
                self.alone[rows[long]] = True
                count[long] = 0
                most = int(count.max(initial=0))
        return most

    def element(self, slot: Slot, at: Ints, rows: Ints) -> Ints:
        """The positions behind an element of an array."""
        if slot.struct:
            return self.step(slot.struct, at, rows)
        if slot.type in SIZES:
            if slot.field.error and self._out is not None:
                self._error(self.data.u16(at), rows, self._out)
            return at + SIZES[slot.type]
        plain = slot._replace(array=False, nullable=False)
        count, at, _ = self.counted(plain, at, rows, 2 if slot.type == "string" else 4)
        return at + count

    def _error(self, codes: Ints, rows: Ints, out: Scanned) -> None:
        """Counts error codes that are not zero; each row stands in rows once."""
        if not codes.any():
            return
        hit = np.flatnonzero(codes)
        hit_rows, found = rows[hit], codes[hit]
        found = np.where(found > 0x7FFF, found - 0x10000, found)
        fresh = out.errors[hit_rows] == 0
        out.first[hit_rows[fresh]] = found[fresh]
        out.errors[hit_rows] += 1

    def _value(self, slot: Slot, at: Ints, rows: Ints) -> Ints:
        if slot.array:
            count, at, _ = self.counted(slot, at, rows, 4)
            return self._array(slot, count, at, rows)
        if slot.struct:
            if not slot.nullable:
                return self.step(slot.struct, at, rows)
            there = self.data.u8(at) < 128
            at = at + 1
            if there.any():
                at[there] = self.step(slot.struct, at[there], rows[there])
            return at
        count, at, _ = self.counted(slot, at, rows, 2 if slot.type == "string" else 4)
        return at + count

    def _long(self, count: Ints, at: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Varints of two bytes, which are usual enough; longer ones are left alone."""
        long = count > 127
        second = self.data.u8(at)
        count = np.where(long, count - 128 + (second << 7), count)
        longer = long & (second > 127)
        if longer.any():
            self.alone[rows[longer]] = True
            count[longer] = 1
        return count, at + long

    def _array(self, slot: Slot, count: Ints, at: Ints, rows: Ints) -> Ints:
        size = fixed_size(slot)
        if size is not None and not (self._out is not None and holds_errors(slot)):
            return at + count * size
        least = max(slot.element_minimum, 1)
        too_many = count * least > self.ends[rows] - at
        if too_many.any():
            self.bad[rows[too_many]] = True
            count = np.where(too_many, 0, count)
        most, least = self.most(count, rows), int(count.min(initial=0))
        for number in range(most):
            if number < least:
                at = self.element(slot, at, rows)
            else:
                more = np.flatnonzero(count > number)
                at = at.copy()
                at[more] = self.element(slot, at[more], rows[more])
        return at
