"""SQL as text: splits statements, and lists the reports, .sql files whose first line is their title."""

from __future__ import annotations

import difflib
import re

from kwire.errors import UnknownName
from kwire.schema.shipped import folder_of, listed

PIECE = re.compile(
    r"""[^'"$/;-]+ | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | (?P<comment>--[^\n]*|/\*.*?\*/) | (?P<end>;) | (?P<open>['"]|/\*) | .""",
    re.DOTALL | re.VERBOSE,
)


def split(text: str) -> tuple[list[str], str]:
    """The statements that end in a ; (without it), and the rest behind the last one. Blank statements are left out."""
    found: list[str] = []
    start = 0
    said = False
    for piece in PIECE.finditer(text):
        if piece["open"]:
            return found, text[start:].strip()
        if piece["end"]:
            if said:
                found.append(text[start : piece.start()].strip())
            start, said = piece.end(), False
        elif not piece["comment"]:
            said = said or not piece[0].isspace()
    return found, text[start:].strip() if said else ""


def depth(text: str) -> int:
    """The greatest nesting of parentheses and brackets outside of strings and comments."""
    deepest = here = 0
    for piece in PIECE.finditer(text):
        if piece["comment"] or piece[0][0] in "'\"$":
            continue
        for sign in piece[0]:
            if sign in "([{":
                here += 1
                deepest = max(deepest, here)
            elif sign in ")]}":
                here = max(0, here - 1)
    return deepest


def reports() -> dict[str, str]:
    """The reports' titles by name."""
    return {name: text.partition("\n")[0].removeprefix("--").strip() for name, text in _texts().items()}


def report(name: str) -> str:
    """A report's SQL. Raises UnknownName."""
    known = _texts()
    if name not in known:
        raise UnknownName("report", name, tuple(difflib.get_close_matches(name, known, 2)))
    return known[name]


def _texts() -> dict[str, str]:
    there = listed(folder_of("kwire.tables") / "reports", ".sql")
    return {name: path.read_text(encoding="utf-8") for name, path in there.items()}
