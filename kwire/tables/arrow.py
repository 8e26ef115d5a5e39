"""The columnar codec's columns as Arrow arrays: numbers without a copy, texts gathered from where they lie.

The type of a message's array follows from its plan alone. Tagged fields are nullable, null where they are not on the
wire; uuids are their 16 bytes. What the columnar codec leaves alone comes from the values codec, in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.codec.columnar import Column, Lists, Numbers, Slices, Structs, decode_columns
from kwire.codec.library import Library, builtin_library
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.errors import DecodeError

SCALARS = {
    "bool": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "uint16": pa.uint16(), "int32": pa.int32(),
    "uint32": pa.uint32(), "int64": pa.int64(), "float64": pa.float64(), "uuid": pa.binary(16), "string": pa.string(),
    "bytes": pa.binary(), "records": pa.binary(),
}  # fmt: skip
LIMIT = (1 << 31) - 1  # bytes that offsets of 32 bits reach


def struct_type(plan: StructPlan) -> pa.StructType:
    """The Arrow type of a struct."""
    return pa.struct([pa.field(slot.name, _type(slot)) for slot in (*plan.slots, *plan.tagged.values())])


def _type(slot: Slot) -> pa.DataType:
    kind = struct_type(slot.struct) if slot.struct else SCALARS[slot.type]
    return pa.list_(kind) if slot.array else kind


def decode_arrow(
    name: str, version: int, messages: Sequence[bytes], library: Library | None = None
) -> tuple[pa.StructArray, list[str | None]]:
    """Bodies of one message and version as an array of structs, in their order, with a note for each: None, or why it
    could not be decoded, and is null. Raises UnknownName."""
    library = library or builtin_library()
    plan = library.plan(name, version)
    sizes = np.array([len(message) for message in messages], np.int64)
    ends = np.cumsum(sizes)
    buffer = b"".join(messages)
    columns, fine = decode_columns(plan, buffer, ends - sizes, ends)
    return merged(plan, library, buffer, ends - sizes, ends, columns, fine)


def merged(
    plan: Plan, library: Library, buffer: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], columns: Structs,
    fine: NDArray[np.bool_],
) -> tuple[pa.StructArray, list[str | None]]:  # fmt: skip
    """What decode_columns gave, with the messages that it left alone in their places."""
    notes: list[str | None] = [None] * len(fine)
    array = to_arrow(columns, buffer, struct_type(plan.root))
    if fine.all():
        return array, notes
    codec, rows = library.codec(plan.message.name, plan.version), np.flatnonzero(~fine).tolist()
    values: list[dict[str, Any] | None] = []
    for row in rows:
        try:
            values.append(_plain(codec.decode(buffer[starts[row] : ends[row]])))
        except DecodeError as error:
            values.append(None)
            notes[row] = str(error)
    both = pa.concat_arrays([array, pa.array(values, array.type)])
    order = np.empty(len(fine), np.int64)
    order[fine] = np.arange(len(array))
    order[~fine] = len(array) + np.arange(len(rows))
    return both.take(pa.array(order)), notes


def _plain(value: Any) -> Any:
    """A value as Arrow takes it."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name != "_tagged"}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, UUID):
        return value.bytes
    return mended(value) if isinstance(value, str) else value


def mended(text: str) -> str:
    """Text that Arrow takes: what is no UTF-8, kept by surrogate escapes elsewhere, is replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def to_arrow(column: Column, buffer: bytes, kind: pa.DataType) -> pa.Array:
    """An array of this type; buffer is what the column's offsets count in."""
    if isinstance(column, Numbers):
        return pa.array(column.values, kind)
    if isinstance(column, Slices):
        return slices(buffer, column.starts, column.lengths, column.valid, kind)
    if isinstance(column, Lists):
        flat = to_arrow(column.flat, buffer, kind.value_type)
        mask = None if column.valid is None else pa.array(~column.valid)
        return pa.ListArray.from_arrays(pa.array(column.offsets, pa.int32()), flat, type=kind, mask=mask)
    return _structs(column, buffer, kind)


def _structs(column: Structs, buffer: bytes, kind: pa.StructType) -> pa.Array:
    arrays = []
    for field in kind:
        inner = column.fields.get(field.name)
        arrays.append(pa.nulls(column.count, field.type) if inner is None else to_arrow(inner, buffer, field.type))
    made = pa.StructArray.from_arrays(arrays, fields=list(kind)) if arrays else pa.array([{}] * column.count, kind)
    if column.valid is None:
        return made
    places = np.where(column.valid, np.cumsum(column.valid) - 1, 0)
    return made.take(pa.array(places, mask=~column.valid))


def slices(
    buffer: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64], valid: NDArray[np.bool_] | None,
    kind: pa.DataType,
) -> pa.Array:  # fmt: skip
    """Texts or bytes from where they lie in the buffer; text that is no UTF-8 is mended, as Arrow demands."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places = np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
    data = np.frombuffer(buffer, np.uint8)[places]
    if pa.types.is_fixed_size_binary(kind):
        made: pa.Array = pa.FixedSizeBinaryArray.from_buffers(kind, len(starts), [None, pa.py_buffer(data.tobytes())])
        return made
    if total > LIMIT:
        raise OverflowError(f"{total:,} bytes in a column; an array takes {LIMIT:,}")
    offsets = np.zeros(len(starts) + 1, np.int32)
    offsets[1:] = ends
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    made = pa.Array.from_buffers(kind, len(starts), [bits, pa.py_buffer(offsets), pa.py_buffer(data)])
    if kind == pa.string():
        try:
            made.validate(full=True)
        except pa.ArrowInvalid:
            raw = made.cast(pa.binary()).to_pylist()
            return pa.array([None if text is None else text.decode("utf-8", "replace") for text in raw], kind)
    return made
