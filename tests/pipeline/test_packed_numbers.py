"""Columns of integers are the same after packing, and regular ones compress to next to nothing."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from kwire.pipeline.packed_numbers import packed, unpacked


@pytest.mark.parametrize(
    "values",
    [
        [], [0], [7] * 5, [0, 255], [0, 256], [-1, 254], [-1, 255], [-(1 << 31), 1 << 31], [1_790_000_000 * 10**9, -3],
        [-(1 << 63), (1 << 63) - 1, 0],
    ],
)  # fmt: skip
def test_what_is_packed_comes_out_again(values: list[int]) -> None:
    assert unpacked(*packed(values)).tolist() == values


def test_the_width_is_that_of_the_spread() -> None:
    far = 1_790_000_000 * 10**9
    assert packed([far + 3, far, far + 255])[:2] == (far, 1)
    assert packed([-1, 255])[1] == 2
    many = np.arange(10_000) % 3 + far
    assert len(zlib.compress(packed(many)[2])) < 100
