"""share.auto.offset.reset: durations."""

from __future__ import annotations

import pytest

from kwire.coordinator.share.reset import milliseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1H", 3_600_000), ("P1DT2H3M4.5S", 93_784_500), ("PT0.001S", 1), ("P2D", 172_800_000),
     ("", None), ("P", None), ("PT", None), ("1h", None), ("PT1H" * 40, None)],
)  # fmt: skip
def test_durations(text: str, expected: int | None) -> None:
    assert milliseconds(text) == expected
