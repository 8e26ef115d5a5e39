"""JSON in color: keys, texts, numbers and words each have their own. A line is colored when it is whole, as no text of
JSON goes beyond the end of its line.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")(?P<key>(?=\s*:))?|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)'
)
COLORS = {"key": "36", "text": "32", "number": "33", "word": "35"}  # cyan, green, yellow, magenta
FORMS = ("json", "spans")


class _Colors(io.TextIOBase):
    """Text in front of stdout."""

    def __init__(self, out: TextIO) -> None:
        self.out, self._begun = out, ""

    def write(self, text: str) -> int:
        lines, newline, begun = text.rpartition("\n")
        if newline:
            self.out.write(colored(self._begun + lines) + newline)
            self._begun = begun
        else:
            self._begun += text
        return len(text)

    def flush(self) -> None:
        self.out.flush()

    def end(self) -> None:
        self.out.write(colored(self._begun))
        self._begun = ""

    def isatty(self) -> bool:
        return self.out.isatty()

    def fileno(self) -> int:
        return self.out.fileno()


def colored(text: str) -> str:
    """Lines of JSON with colors, as a terminal takes them."""
    return TOKEN.sub(lambda found: f"\x1b[{COLORS[found.lastgroup or 'text']}m{found.group()}\x1b[0m", text)


@contextmanager
def json_in_color(context: click.Context) -> Iterator[None]:
    """While a command runs: its stdout in color, where it writes JSON there and color is wanted."""
    from kwire.cli.output import colored as wanted

    options = [param for param in context.command.params if "--format" in param.opts and param.name]
    form = context.params.get(options[0].name or "") if options else None
    if form not in FORMS or not wanted():
        yield
        return
    colors = _Colors(sys.stdout)
    sys.stdout = colors
    try:
        yield
    finally:
        sys.stdout = colors.out
        colors.end()
