"""Every error has its code by name, no other name is there, and code that means an error says it by this name."""

import ast
from collections.abc import Iterator
from pathlib import Path

from kwire.schema import codes
from kwire.schema.errorcodes import errors

CODES = {name: value for name, value in vars(codes).items() if name.isupper()}
SAYS_CODES = ("error", "code", "error_code", "first_error", "ErrorCode")


def test_the_names_are_those_of_the_table() -> None:
    assert {error.name: error.code for error in errors} == CODES


def name_of(node: ast.expr) -> str:
    """Of a variable, an attribute, or what a subscript or get() names: part["ErrorCode"], part.get("ErrorCode")."""
    if isinstance(node, ast.Subscript):
        return getattr(node.slice, "value", "") if isinstance(node.slice, ast.Constant) else name_of(node.value)
    if isinstance(node, ast.Call) and node.args:
        return getattr(node.args[0], "value", "")
    return getattr(node, "attr", getattr(node, "id", ""))


def number(node: ast.expr | None) -> int | None:
    """Of a literal other than 0, which may be no error at all."""
    try:
        value = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return value if type(value) is int and value else None


def numbered(path: Path) -> Iterator[str]:
    """Where a file compares an error with a number, answers one, or gives an error's name its number again."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = False
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            values = [each for other in node.comparators for each in getattr(other, "elts", [other])]
            found = name_of(node.left) in SAYS_CODES and any(number(each) for each in values)
        elif isinstance(node, ast.Dict):
            rows = zip(node.keys, node.values, strict=True)
            found = any(getattr(key, "value", "") == "ErrorCode" and number(value) for key, value in rows)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            named, values = getattr(target, "elts", [target]), getattr(node.value, "elts", [node.value])
            pairs = zip(named, values, strict=False)
            found = any((value := number(given)) and CODES.get(name_of(one)) == value for one, given in pairs)
        if found:
            yield f"{path.name}: {ast.unparse(node)}"


def test_code_says_errors_by_their_names() -> None:
    own = Path(codes.__file__)
    files = (path for path in own.parents[1].rglob("*.py") if path != own)
    assert [found for path in files for found in numbered(path)] == []


def test_numbers_are_found(tmp_path: Path) -> None:
    path = tmp_path / "numbers.py"
    path.write_text(
        "a = part['ErrorCode'] == 27\nb = call.error in (0, 25)\nc = {'ErrorCode': 115}\n"
        "UNKNOWN_MEMBER_ID, OTHER = 25, 3\nd = part.get('ErrorCode') != -1\nfine = call.error == 0\n"
    )
    assert len(list(numbered(path))) == 5
