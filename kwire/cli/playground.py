"""The command line inside a page: one command with its input, and what it wrote with the styles of its lines. The
playground of kwire site calls it, in Pyodide."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any

from kwire.cli.output import ShownLines


def run(arguments: str, given: Any, columns: int) -> str:
    """Runs a command. arguments: a JSON list without "kwire"; given: the bytes of stdin, or JavaScript's array of them.

    Gives JSON: lines, each a list of [text, style]; said, what stderr got; status and columns.
    """
    from kwire.cli.main import main

    stdin = bytes(given.to_py() if hasattr(given, "to_py") else given)
    out, said = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    kept = sys.argv, sys.stdin, sys.stdout, sys.stderr, os.environ.get("COLUMNS")
    sys.argv = ["kwire", *json.loads(arguments)]
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), out, said
    os.environ["COLUMNS"] = str(columns)
    ShownLines.lines = []
    try:
        main()
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 1
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr, before = kept
        os.environ.pop("COLUMNS") if before is None else os.environ.__setitem__("COLUMNS", before)
        shown, ShownLines.lines = ShownLines.lines, None
    out.flush()
    lines = _styled(out.buffer.getvalue().decode("utf-8", "replace"), shown or [])
    return json.dumps({"lines": lines, "said": said.getvalue(), "status": status, "columns": columns})


def _styled(text: str, shown: list[list[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """The text by lines, with styles where it is all of what was shown."""
    from kwire.render.lines import plain

    texts = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
    if [plain(line) for line in shown] == texts:
        return [_stripped(line) for line in shown]
    return [[(line, "")] for line in texts]


def _stripped(line: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without blanks at its end."""
    kept = list(line)
    while kept and not kept[-1][0].rstrip():
        kept.pop()
    return [*kept[:-1], (kept[-1][0].rstrip(), kept[-1][1])] if kept else []
