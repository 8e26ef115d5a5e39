"""A class name stands for one thing in all of kwire, so that whoever reads it need not look where it comes from."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1] / "kwire"
ALLOWED: dict[str, int] = {}  # names that stand for several things, and for how many: fewer, never more


def owners() -> dict[str, list[str]]:
    """The places where each public class is defined, within other classes and functions too."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(ROOT.parent)}:{node.lineno}")
    return found


def test_a_class_name_stands_for_one_thing() -> None:
    found = {name: places for name, places in owners().items() if len(places) > 1}
    assert {name: places for name, places in found.items() if len(places) > ALLOWED.get(name, 1)} == {}
    assert {name: len(found.get(name, ())) for name in ALLOWED} == ALLOWED  # what became fewer is to be written down
