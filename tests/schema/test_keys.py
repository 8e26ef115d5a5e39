"""Every API has its key by name, no other name is there, and code that means an API says it by this name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kwire.schema import keys
from kwire.schema.registry import builtin


def test_the_names_are_those_of_the_definitions() -> None:
    named = {name: value for name, value in vars(keys).items() if name.isupper()}
    assert named == {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api.name).upper(): api.key for api in builtin().apis()}


KEYS = {name: value for name, value in vars(keys).items() if name.isupper()}


def numbered(path: Path) -> Iterator[str]:
    """Where a file compares a key with a number of its own, or gives an API's name its number again."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = False
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            name = node.left.attr if isinstance(node.left, ast.Attribute) else getattr(node.left, "id", "")
            values = [each for other in node.comparators for each in getattr(other, "elts", [other])]
            found = name in ("key", "api_key") and any(
                isinstance(getattr(each, "value", 0), int) for each in values if isinstance(each, ast.Constant)
            )
        elif isinstance(node, ast.Assign):
            named, values = (getattr(each, "elts", [each]) for each in (node.targets[0], node.value))
            pairs = zip(named, values, strict=False)
            found = any(
                getattr(one, "id", "") in KEYS and getattr(value, "value", None) == KEYS[one.id] for one, value in pairs
            )
        if found:
            yield f"{path.name}: {ast.unparse(node)}"


def test_code_says_keys_by_their_names() -> None:
    own = Path(keys.__file__)
    files = (path for path in own.parents[1].rglob("*.py") if path != own)
    assert [found for path in files for found in numbered(path)] == []
