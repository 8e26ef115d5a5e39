"""Which splits a task reads."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from kwire.pipeline.job import OPENED, TASK, packed
from kwire.pipeline.splits import Split


def test_small_files_share_tasks_and_splits_do_not() -> None:
    small = [Split(f"{number}.pcap", 0, 10, 10) for number in range(100)]
    cut = [Split("big.pcap", start, start + 10, 30, start // 10) for start in (0, 10, 20)]
    large = Split("large.pcap", 0, TASK, TASK)
    tasks = packed([*small, *cut, large])
    assert [split for task in tasks for split in task] == [*small, *cut, large]
    few = TASK // (10 + OPENED)
    assert [len(task) for task in tasks] == [few] * (100 // few) + [100 % few] * (100 % few > 0) + [1, 1, 1, 1]
    assert packed([]) == []
