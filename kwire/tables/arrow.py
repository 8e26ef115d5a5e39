"""Texts of columns as Arrow arrays, gathered from where they lie in a buffer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.wire.columns import repeat

LIMIT = (1 << 31) - 1  # bytes that offsets of 32 bits reach


def mended(text: str) -> str:
    """Text that Arrow takes: what is no UTF-8, kept by surrogate escapes elsewhere, is replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def slices(
    buffer: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64], valid: NDArray[np.bool_] | None,
    kind: pa.DataType,
) -> pa.Array:  # fmt: skip
    """Texts or bytes from where they lie in the buffer; text that is no UTF-8 is mended, as Arrow demands."""
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
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    made = pa.Array.from_buffers(kind, len(starts), [bits, pa.py_buffer(offsets), pa.py_buffer(data)])
    if kind == pa.string():
        try:
            made.validate(full=True)
        except pa.ArrowInvalid:
            raw = made.cast(pa.binary()).to_pylist()
            return pa.array([None if text is None else text.decode("utf-8", "replace") for text in raw], kind)
    return made
