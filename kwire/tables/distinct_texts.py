"""Finds the distinct texts in a column of slices, so that only these are decoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.tables.arrow import encoded, slices
from kwire.wire.columns import Ints


def distinct(
    buffer: bytes, starts: Ints, lengths: Ints, valid: NDArray[np.bool_] | None = None
) -> tuple[list[bytes], Ints]:
    """The distinct texts as bytes, in order of appearance, and for each slice the index of its text; -1: null."""
    return encoded(slices(buffer, starts, lengths, valid, pa.binary()))
