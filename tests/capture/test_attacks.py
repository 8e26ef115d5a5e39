"""Captures that mean harm cost what their size says: twice the size takes no more than about twice the work."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attacks import capture, layers, streams, tls

SCALE = 0.02
STEADY = 60_000  # calls that any run takes more or less of, as the first use of something is seen or not
ATTACKS = {
    f"{area.__name__}: {name}": maker
    for area in (capture, streams, layers, tls)
    for name, maker in area.ATTACKS.items()
}
CALLS_A_BYTE = 120.0  # each is a tenth of a microsecond to one
BASE = 2_500_000  # what a capture may take however small it is


def work(run: Callable[[], Any]) -> int:
    """How many functions are called, of Python and C: what time would tell, and the same on every machine."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", ATTACKS)
def test_work_grows_with_the_input_and_no_faster(name: str, tmp_path: Path, kwire: Any) -> None:
    once, twice = (ATTACKS[name](folder, scale) for folder, scale in folders(tmp_path))
    size = sum(path.stat().st_size for path in (tmp_path / "once").iterdir())
    said = kwire(*once)  # what is loaded at the first use
    assert said.status in (0, 1, 2, 3)
    assert "a bug in kwire" not in said.err
    first = work(lambda: kwire(*once))
    second = work(lambda: kwire(*twice))
    assert second <= 2.4 * first + STEADY
    if not any(word.endswith(".zst") for word in once):
        assert first <= CALLS_A_BYTE * size + BASE


def folders(path: Path) -> list[tuple[Path, float]]:
    out = [(path / "once", SCALE), (path / "twice", 2 * SCALE)]
    for folder, _ in out:
        folder.mkdir()
    return out
