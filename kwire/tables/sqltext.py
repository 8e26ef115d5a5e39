"""SQL as text: where a statement ends, and the reports, which are .sql files that begin with what they show."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from kwire.errors import UnknownName

REPORTS = Path(__file__).parent / "reports"
PIECE = re.compile(
    r"""[^'"$/;-]+ | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | (?P<comment>--[^\n]*|/\*.*?\*/) | (?P<end>;) | (?P<open>['"]|/\*) | .""",
    re.DOTALL | re.VERBOSE,
)


def split(text: str) -> tuple[list[str], str]:
    """The statements that a ; ends, without it, and what is left behind the last one. Blank ones are left out."""
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


def reports() -> dict[str, str]:
    """Each report's name with what it shows."""
    return {
        path.stem: _text(path).partition("\n")[0].removeprefix("--").strip() for path in sorted(REPORTS.glob("*.sql"))
    }


def report(name: str) -> str:
    """A report's SQL. Raises UnknownName."""
    known = {path.stem: path for path in REPORTS.glob("*.sql")}
    if name not in known:
        raise UnknownName("report", name, tuple(difflib.get_close_matches(name, known, 2)))
    return _text(known[name])


def _text(path: Path) -> str:
    return path.read_text("utf-8")
