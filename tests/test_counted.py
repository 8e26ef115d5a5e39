"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from kwire.counted import counted


@pytest.mark.parametrize(
    ("given", "text"),
    [((0, "exchange"), "0 exchanges"), ((1, "exchange"), "1 exchange"), ((-1, "byte"), "-1 bytes"),
     ((1204, "byte"), "1,204 bytes"), ((2, "batch", "batches"), "2 batches"), ((1, "batch", "batches"), "1 batch")],
)  # fmt: skip
def test_one_has_the_singular(given: tuple[int, str], text: str) -> None:
    assert counted(*given) == text
