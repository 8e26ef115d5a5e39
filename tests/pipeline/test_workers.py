"""What workers do around a split."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kwire.pipeline.workers import few_collections

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
