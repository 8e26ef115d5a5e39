"""Attacks on kwire broker: runs of tests/bench/hostile_broker.py, which fails when a client beside them waits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"


def maker(name: str) -> Callable[[Path, float], list[str]]:
    return lambda _, scale: ["python", str(BENCH / "hostile_broker.py"), "--only", name, "--seconds", str(5 * scale)]


# the names are read, for the table itself takes a second to be made
NAMES = re.findall(r'^    "([^"]+)": \w+\(', (BENCH / "broker_attacks.py").read_text(encoding="utf-8"), re.MULTILINE)
ATTACKS = {name: maker(name) for name in NAMES}
