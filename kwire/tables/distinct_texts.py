"""Distinct texts among thousands: by their bytes where they lie, so that only distinct ones are looked at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.tables.arrow import encoded, slices
from kwire.wire.columns import Ints


def distinct(
    buffer: bytes, starts: Ints, lengths: Ints, valid: NDArray[np.bool_] | None = None
) -> tuple[list[bytes], Ints]:
    """The texts as bytes, in the order in which they come, and of each place which of them is there; -1: null."""
    return encoded(slices(buffer, starts, lengths, valid, pa.binary()))
