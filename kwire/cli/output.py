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

    from kwire.render.html.frame import Facts

PIPE_WIDTH = 100
DOCUMENT_WIDTH = 130  # of SVG and HTML: a member id fits its column
PIPE_WIDE = 160  # where a line holds many columns: all of them, and nothing is cut


def width(pipe: int = PIPE_WIDTH) -> int:
    """The columns to lay out for: the terminal's, COLUMNS when it is set, else those of a pipe."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(60, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)
    return pipe


class Color:
    """When there is color: auto, always or never, as --color says."""

    mode = "auto"


def colored() -> bool:
    """Whether stdout gets color: as --color says, else NO_COLOR, else FORCE_COLOR, else when it is a terminal."""
    if Color.mode != "auto":
        return Color.mode == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("FORCE_COLOR", "0") not in ("", "0") or sys.stdout.isatty()


class ShownLines:
    """The lines that show() wrote, with their styles, for a page that asked for them (cli/playground.py)."""

    lines: list[Line] | None = None


def show(lines: Iterable[Line]) -> None:
    """Writes lines to stdout, with color where that is wanted."""
    if not colored():
        write = sys.stdout.write
        for line in lines:
            write(plain(line) + "\n")
            if ShownLines.lines is not None:
                ShownLines.lines.append(line)
        return
    from rich.text import Text

    console = _console(Color.mode == "always" or not sys.stdout.isatty())
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
def _console(forced: bool) -> Console:
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the program as failed

    return PipedConsole(
        markup=False, emoji=False, highlight=False, soft_wrap=True, force_terminal=forced or None, no_color=False,
        color_system="standard" if forced else "auto",
    )  # fmt: skip


def export(lines: Iterable[Line], form: str, title: str, facts: Facts = ()) -> str:
    """The lines as an SVG or an HTML document that needs nothing from elsewhere. facts: what stands at the top of the
    page, by names as "capture"."""
    if form == "svg":
        from kwire.render.lines_svg import svg

        return svg(lines, title)
    from kwire.render.html.frame import page, pre

    return page(title, pre(lines), facts=facts)
