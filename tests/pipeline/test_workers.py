"""What workers do around a split."""

from __future__ import annotations

import gc

import pytest

from kwire.pipeline.workers import few_collections

meanwhile: list[int] = []


@few_collections()
def failing() -> None:
    meanwhile.append(gc.get_threshold()[0])
    raise RuntimeError


def test_collections_are_few_only_meanwhile() -> None:
    before = gc.get_threshold()
    with pytest.raises(RuntimeError):
        failing()
    assert meanwhile[0] > 100 * before[0] > 0
    assert gc.get_threshold() == before
