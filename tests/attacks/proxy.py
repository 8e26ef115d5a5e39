"""Attacks on kwire proxy: runs of tests/bench/hostile_proxy.py, which fails when a client beside them waits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"


def maker(name: str) -> Callable[[Path, float], list[str]]:
    return lambda _, scale: ["python", str(BENCH / "hostile_proxy.py"), "--only", name, "--seconds", str(5 * scale)]


NAMES = re.findall(r'^    "([^"]+)": \w+\(', (BENCH / "proxy_attacks.py").read_text(encoding="utf-8"), re.MULTILINE)
ATTACKS = {name: maker(name) for name in NAMES}
