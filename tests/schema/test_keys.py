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
    """Where a file compares a key with numbers, looks it up among numbers, or gives an API's name its number again."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tables = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and holds_numbers(node.value)
        for name in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(tree):
        found = False
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            others = node.comparators
            found = is_key(node.left) and any(
                holds_numbers(each) or getattr(each, "id", "") in tables for each in others
            )
        elif isinstance(node, ast.Subscript):
            found = is_key(node.slice) and getattr(node.value, "id", "") in tables
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            found = is_key(node.args[0]) and getattr(node.func.value, "id", "") in tables
        elif isinstance(node, ast.Assign):
            named, values = (getattr(each, "elts", [each]) for each in (node.targets[0], node.value))
            pairs = zip(named, values, strict=False)
            found = any(
                getattr(one, "id", "") in KEYS and getattr(value, "value", None) == KEYS[one.id] for one, value in pairs
            )
        if found:
            yield f"{path.name}: {ast.unparse(node)}"


def is_key(node: ast.AST) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) in ("key", "api_key")


def holds_numbers(node: ast.AST) -> bool:
    """Whether it is an int, or holds some: a set, a tuple, the keys of a dict, frozenset of such."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("set", "frozenset", "dict") and node.args:
        return holds_numbers(node.args[0])
    if isinstance(node, ast.BinOp):
        return holds_numbers(node.left) or holds_numbers(node.right)
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node])
    return any(isinstance(each, ast.Constant) and type(each.value) is int for each in parts)


def test_code_says_keys_by_their_names() -> None:
    own = Path(keys.__file__)
    files = (path for path in own.parents[1].rglob("*.py") if path != own)
    assert [found for path in files for found in numbered(path)] == []
