"""What workers do around a split."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import count

import pytest

from kwire.pipeline import workers
from kwire.pipeline.workers import few_collections, task_done

USUAL = (700, 10, 10)
meanwhile: list[int] = []


@pytest.fixture
def usual() -> Iterator[None]:
    """Collections are as Python has them."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


@few_collections()
def failing() -> None:
    meanwhile.append(gc.get_threshold()[0])
    raise RuntimeError


@pytest.mark.usefixtures("usual")
def test_collections_are_few_only_meanwhile() -> None:
    with pytest.raises(RuntimeError):
        failing()
    assert meanwhile[0] > 100 * USUAL[0]
    assert gc.get_threshold() == USUAL


def test_what_outlives_tasks_is_left_out_of_collections_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_TASKS", count(1))
    gc.unfreeze()
    kept: list[list[int]] = []
    left_out = []
    try:
        for _ in range(5):
            kept += [[number] for number in range(1000)]
            task_done()
            left_out.append(any(one is kept[-1] for one in gc.get_objects()))
    finally:
        gc.unfreeze()
    assert left_out == [False, False, True, False, True]
