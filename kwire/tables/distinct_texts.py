"""Distinct texts among thousands: by their bytes where they lie, so that only distinct ones are looked at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.tables.arrow import slices
from kwire.wire.columns import Ints


def distinct(
    buffer: bytes, starts: Ints, lengths: Ints, valid: NDArray[np.bool_] | None = None
) -> tuple[list[bytes], Ints]:
    """The texts as bytes, in the order in which they come, and of each place which of them is there; -1: null."""
    coded = slices(buffer, starts, lengths, valid, pa.binary()).dictionary_encode()
    which: Ints = coded.indices.fill_null(-1).to_numpy().astype(np.int64)
    found: list[bytes] = coded.dictionary.to_pylist()
    return found, which
