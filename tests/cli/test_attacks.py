"""Every attack that the benchmark measures, small: kwire ends with a status that it documents, and knows why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.hostile import attacks

from kwire.errors import Exit

SCALE = 0.001
ATTACKS = attacks()


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_as_documented(name: str, kwire: Any, tmp_path: Path) -> None:
    arguments = ATTACKS[name](tmp_path, SCALE)
    if arguments[0] == "python":
        pytest.skip("not a command of kwire")
    ran = kwire(*arguments)
    assert ran.status in tuple(Exit)
    assert "a bug in kwire" not in ran.err
