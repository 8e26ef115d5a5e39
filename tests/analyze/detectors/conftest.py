"""A scene for each test."""

from __future__ import annotations

import pytest
from scenes import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
