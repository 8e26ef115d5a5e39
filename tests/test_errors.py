"""The tree of exceptions that errors.py draws is the one that there is; messages say what, where and why."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kwire.errors import DecodeError, EncodeError, KwireError, TooLargeError

KWIRE = Path(__file__).parent.parent / "kwire"
DRAWN = {*re.findall(r"── (\w+)", (KWIRE / "errors.py").read_text(encoding="utf-8")), "TooLargeError"}


def bases() -> dict[str, set[str]]:
    """The classes of kwire and the names of what they are made from."""
    files = KWIRE.rglob("*.py")
    classes = [
        node
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    return {each.name: {ast.unparse(base).rpartition(".")[2] for base in each.bases} for each in classes}


def test_what_is_drawn_is_what_there_is() -> None:
    of, found = bases(), {"KwireError"}
    while more := {name for name, above in of.items() if above & found} - found:
        found |= more
    assert found - {"KwireError"} == DRAWN


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DecodeError("FetchResponse v16", "", 4, "needs 4 bytes"), "FetchResponse v16: needs 4 bytes"),
        (DecodeError("records", "[0].Magic", 16, "magic 9"), "records: [0].Magic: magic 9"),
        (EncodeError("FetchRequest v4", "Topics[0]", "no Name"), "FetchRequest v4: Topics[0]: no Name"),
        (TooLargeError(1 << 20), "decompresses to more than 1,048,576 bytes, the limit"),
    ],
)
def test_one_line_says_what_where_and_why(error: KwireError, said: str) -> None:
    assert str(error) == said
