"""Where lines go: a terminal in color, a pipe as plain text, or a document for SVG and HTML."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

from kwire.render.lines import STYLES, Line, plain

PIPE_WIDTH = 100


def width() -> int:
    """The columns to lay out for: the terminal's, COLUMNS when it is set, else 100."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(60, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)
    return PIPE_WIDTH


def show(lines: Iterable[Line]) -> None:
    """Writes lines to stdout; color only on a terminal, and NO_COLOR is obeyed."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        write = sys.stdout.write
        for line in lines:
            write(plain(line) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((text, STYLES.get(style, style)) for text, style in line)))


def export(lines: Iterable[Line], form: str, title: str) -> str:
    """The lines as an SVG or an HTML document that needs nothing from elsewhere."""
    from kwire.render.export import html, svg

    return svg(lines, title) if form == "svg" else html(lines, title)
