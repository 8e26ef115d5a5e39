"""TLS that means harm costs what its size says: twice the size takes no more than about twice the work."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest
from attacks.tls import ATTACKS

SCALE = 0.02
STEADY = 60_000  # calls that any run takes more or less of


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_work_grows_with_the_input_and_no_faster(name: str, tmp_path: Path, kwire: Any) -> None:
    counts = []
    for number, scale in enumerate((SCALE, SCALE, 2 * SCALE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = ATTACKS[name](folder, scale)
        calls = 0

        def count(_frame: object, event: str, _arg: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        gc.collect()
        sys.setprofile(count)
        try:
            result = kwire(*arguments)
        finally:
            sys.setprofile(None)
        assert result.status in (0, 1, 3)
        assert "a bug in kwire" not in result.err
        counts.append(calls)
    assert counts[2] <= 2.4 * counts[1] + STEADY
