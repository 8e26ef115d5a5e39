"""Columns of integers as bytes, such that they compress well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kwire.capture.packets import Ints

Packed = tuple[int, int, bytes]  # least value, bytes of each, bytes of equal weight together


def packed(values: Sequence[int] | np.ndarray[Any, Any]) -> Packed:
    """Any integers of 64 bits."""
    numbers = np.asarray(values, np.int64)
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    width = next(size for size in (1, 2, 4, 8) if most - least < 1 << 8 * size)
    above = (numbers - least).astype(f"<u{width}")  # wraps around where it must
    return least, width, np.ascontiguousarray(above.view(np.uint8).reshape(-1, width).T).tobytes()


def unpacked(least: int, width: int, data: bytes) -> Ints:
    """The integers again."""
    above = np.frombuffer(data, np.uint8).reshape(width, -1).T.copy().view(f"<u{width}").reshape(-1)
    return above.astype(np.int64) + least
