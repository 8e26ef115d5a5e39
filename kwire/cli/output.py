"""Where lines go: a terminal in color, a pipe as plain text, or an SVG or HTML page."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kwire.render.lines import STYLES, Line, plain

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 100


def width() -> int:
    """The columns to lay out for: the terminal's, COLUMNS when it is set, else 100."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(60, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)
    return PIPE_WIDTH


def show(lines: Iterable[Line], title: str = "kwire") -> None:
    """Writes lines to stdout; color only on a terminal, and NO_COLOR is obeyed."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        write = sys.stdout.write
        for line in lines:
            write(plain(line) + "\n")
        return
    console = _console(width=None)
    for line in lines:
        _print(console, line)


def export(lines: Iterable[Line], form: str, title: str) -> str:
    """The lines as an SVG or an HTML document that needs nothing from elsewhere."""
    import io

    from rich.terminal_theme import MONOKAI

    shown = list(lines)
    wide = max([40, *(len(plain(line)) for line in shown)])
    console = _console(width=wide + 1, file=io.StringIO(), record=True)
    for line in shown:
        _print(console, line)
    if form == "svg":
        return console.export_svg(title=title, theme=MONOKAI, code_format=SVG)
    return console.export_html(theme=MONOKAI, code_format=HTML.replace("{title}", _escape(title)))


def _escape(text: str) -> str:
    import html

    return html.escape(text).replace("{", "&#123;").replace("}", "&#125;")


def _console(width: int | None, **more: object) -> Console:
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True, width=width, **more)  # type: ignore[arg-type]


def _print(console: Console, line: Line) -> None:
    from rich.text import Text

    console.print(Text.assemble(*((text, STYLES.get(style, style)) for text, style in line), no_wrap=True, end="\n"), end="")


MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
HTML = (
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="UTF-8">\n<title>{title}</title>\n<style>\n{stylesheet}\n'
    "body {{ color: {foreground}; background-color: {background}; margin: 1.5em; }}\n"
    "pre {{ font: 13px/1.35 " + MONO + "; }}\n</style>\n</head>\n<body>\n<pre><code>{code}</code></pre>\n</body>\n</html>\n"
)
SVG = (
    '<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">\n<style>\n'
    ".{unique_id}-matrix {{ font-family: " + MONO + "; font-size: {char_height}px; line-height: {line_height}px; }}\n"
    ".{unique_id}-title {{ font-size: 16px; font-family: sans-serif; font-weight: bold; }}\n{styles}\n</style>\n"
    "<defs>\n<clipPath id=\"{unique_id}-clip-terminal\"><rect x=\"0\" y=\"0\" width=\"{terminal_width}\" "
    'height="{terminal_height}" /></clipPath>\n{lines}\n</defs>\n{chrome}\n'
    '<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">\n{backgrounds}\n'
    '<g class="{unique_id}-matrix">\n{matrix}\n</g>\n</g>\n</svg>\n'
)
