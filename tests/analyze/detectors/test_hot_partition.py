"""One key for most records."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("hot-partition", "hot-partition")
    assert found.about["topic"] == "hot-partition-t"
    assert "gets 91% of what is written to the topic's 4 partitions" in found.what
