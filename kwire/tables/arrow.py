"""Makes Arrow arrays from numpy columns: integers without a copy, texts from slices of a buffer, values by index.

Arrow's functions are called by name, because importing pyarrow.compute builds a documented wrapper for each of them, a
tenth of the start-up time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.session.record import error_name
from kwire.wire.columns import Ints, repeat

try:
    from pyarrow._compute import call_function
except ImportError:
    from pyarrow.compute import call_function

LIMIT = (1 << 31) - 1  # bytes that 32-bit offsets can address


Mask = NDArray[np.bool_]


def numbers(values: NDArray[Any], kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
    """An array of signed integers (which must fit kind) or booleans; null where valid is False."""
    if kind == pa.bool_():
        data = np.packbits(values, bitorder="little")
    else:
        data = np.ascontiguousarray(values, f"i{kind.bit_width // 8}")
    made: pa.Array = pa.Array.from_buffers(kind, len(values), [_bits(valid), pa.py_buffer(data)])
    return made


def take(column: pa.Array, which: Ints, valid: Mask | None = None) -> pa.Array:
    """The column's values at the indexes which; null where valid is False."""
    return call_function("take", [column, numbers(which, pa.int64(), valid)])


def chosen(values: Sequence[Any], which: Ints | Mask, kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
    """An array of values[which], of texts a coded one, with surrogate escapes replaced; null where valid is False, or
    the value None."""
    if kind == pa.string():
        return _coded_texts(values, which.astype(np.int64), valid)
    if len(values) == 1 and valid is None:
        return pa.repeat(pa.scalar(values[0], kind), len(which))
    return take(pa.array(values, kind), which.astype(np.int64), valid)


def _coded_texts(values: Sequence[str | None], which: Ints, valid: Mask | None) -> pa.DictionaryArray:
    known: dict[str, int] = {}
    codes = np.array([-1 if value is None else known.setdefault(value, len(known)) for value in values], np.int32)
    found = codes[which] if len(codes) else np.full(len(which), -1, np.int32)
    if valid is not None or (codes < 0).any() or not len(codes):
        there = found >= 0
        valid = there if valid is None else there & valid
    try:
        texts = pa.array(list(known), pa.string())
    except UnicodeEncodeError:
        return _coded_texts([None if value is None else mended(value) for value in values], which, valid)
    return pa.DictionaryArray.from_arrays(numbers(np.maximum(found, 0), pa.int32(), valid), texts, safe=False)


def coded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Texts as indices into their distinct values, as Parquet keeps them; any other column as it is."""
    return call_function("dictionary_encode", [column]) if column.type == pa.string() else column


def plain(column: pa.Array) -> pa.Array:
    """The opposite of coded."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def first_of(*columns: pa.Array) -> pa.Array:
    """For each row the first value that is not null."""
    return call_function("coalesce", list(columns))


def error_names(codes: NDArray[Any], valid: Mask) -> pa.Array:
    """The names of error codes; null where valid is False."""
    rows, which = np.flatnonzero(valid), np.zeros(len(codes), np.int64)
    if not len(rows):
        return pa.nulls(len(codes), pa.string())
    known, which[rows] = np.unique(codes[rows], return_inverse=True)
    return chosen([error_name(code) for code in known.tolist()], which, pa.string(), valid)


def encoded(column: pa.Array) -> tuple[list[Any], Ints]:
    """The distinct values of a column, in order of appearance, and for each row the index of its value; -1: null."""
    coded = call_function("dictionary_encode", [column])
    which = first_of(coded.indices, pa.scalar(-1, coded.indices.type))
    return coded.dictionary.to_pylist(), which.to_numpy().astype(np.int64)


def _bits(valid: Mask | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def mended(text: str) -> str:
    """Text as valid UTF-8, as Arrow demands: surrogate escapes are replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def slices(
    buffer: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64], valid: NDArray[np.bool_] | None,
    kind: pa.DataType,
) -> pa.Array:  # fmt: skip
    """An array of texts or bytes at these places in the buffer; invalid UTF-8 is replaced. Raises OverflowError beyond
    2 GiB."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places = repeat(starts - (ends - lengths), lengths) + np.arange(total)
    data = np.frombuffer(buffer, np.uint8)[places]
    if pa.types.is_fixed_size_binary(kind):
        made: pa.Array = pa.FixedSizeBinaryArray.from_buffers(kind, len(starts), [None, pa.py_buffer(data.tobytes())])
        return made
    if total > LIMIT:
        raise OverflowError(f"{total:,} bytes in a column; an array takes {LIMIT:,}")
    offsets = np.zeros(len(starts) + 1, np.int32)
    offsets[1:] = ends
    made = pa.Array.from_buffers(kind, len(starts), [_bits(valid), pa.py_buffer(offsets), pa.py_buffer(data)])
    if kind == pa.string():
        try:
            made.validate(full=True)
        except pa.ArrowInvalid:
            raw = made.cast(pa.binary()).to_pylist()
            return pa.array([None if text is None else text.decode("utf-8", "replace") for text in raw], kind)
    return made
