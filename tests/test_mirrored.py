"""Each module has its test file, in the folder that mirrors its own, or a line in tested_elsewhere.txt that names the
tests that drive it."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
KWIRE = TESTS.parent / "kwire"
LINES = (TESTS / "tested_elsewhere.txt").read_text(encoding="utf-8").splitlines()
ELSEWHERE = dict(line.split() for line in LINES if not line.startswith("#"))
MODULES = {str(path.relative_to(KWIRE)) for path in KWIRE.rglob("*.py") if not path.name.startswith("__")}


def own(module: str) -> Path:
    """The test file of a module."""
    path = TESTS / module
    return path.with_name(f"test_{path.name}")


def test_each_module_has_its_tests_or_says_where_they_are() -> None:
    assert [module for module in sorted(MODULES - ELSEWHERE.keys()) if not own(module).exists()] == []


def test_the_tests_that_are_named_are_there() -> None:
    assert [test for test in ELSEWHERE.values() if not (TESTS / test).is_file()] == []
