"""Where lines go: a terminal in color, a pipe as plain text, or a document for SVG and HTML."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from kwire.render.lines import STYLES, Line, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH = 100
PIPE_WIDE = 160  # where a line holds many columns: all of them, and nothing is cut


def width(pipe: int = PIPE_WIDTH) -> int:
    """The columns to lay out for: the terminal's, COLUMNS when it is set, else those of a pipe."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(60, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)
    return pipe


def show(lines: Iterable[Line]) -> None:
    """Writes lines to stdout; color only on a terminal, and NO_COLOR is obeyed."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        write = sys.stdout.write
        for line in lines:
            write(plain(line) + "\n")
        return
    from rich.text import Text

    console = _console()
    for line in lines:
        console.print(Text.assemble(*((text, STYLES.get(style, style)) for text, style in line)))


def text_of(lines: Iterable[Line]) -> Text:
    """The lines as one text of rich, for what is drawn again and again in its place."""
    from rich.text import Text

    joined = Text()
    for line in lines:
        joined.append_text(Text.assemble(*((text, STYLES.get(style, style)) for text, style in line)))
        joined.append("\n")
    return joined


@cache
def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def export(lines: Iterable[Line], form: str, title: str) -> str:
    """The lines as an SVG or an HTML document that needs nothing from elsewhere."""
    from kwire.render.export import html, svg

    return svg(lines, title) if form == "svg" else html(lines, title)
