"""Where lines go: plain text to a pipe, color to a terminal, and the width that they are laid out for."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import pytest

from kwire.cli import output
from kwire.render.lines import Line

LINES: list[Line] = [[("title", "title"), (" [red]x[/red] :smile:", "")], [], [("  12 error", "error"), ("   ", "dim")]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(monkeypatch: pytest.MonkeyPatch, terminal: bool, **environment: str) -> str:
    out = Terminal() if terminal else io.StringIO()
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", out)
    output.show(LINES)
    return out.getvalue()


def test_a_pipe_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, terminal=False) == "title [red]x[/red] :smile:\n\n  12 error\n"


def test_a_terminal_gets_color_a_line_each_and_no_markup_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _shown(monkeypatch, terminal=True)
    assert [line.split("\x1b[0m")[0] for line in shown.splitlines()] == ["\x1b[1mtitle", "", "\x1b[1;31m  12 error"]
    assert "[red]x[/red] :smile:" in shown


def test_no_color_is_obeyed_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, terminal=True, NO_COLOR="1") == "title [red]x[/red] :smile:\n\n  12 error\n"


def test_a_terminal_does_not_break_lines_that_are_wider_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_shown(monkeypatch, terminal=True, COLUMNS="12").splitlines()) == len(LINES)


@pytest.mark.parametrize(
    ("columns", "terminal", "width"),
    [(None, False, 100), ("80", False, 80), ("200", True, 200), ("20", False, 60), ("no number", False, 100)],
)
def test_the_width(monkeypatch: pytest.MonkeyPatch, columns: str | None, terminal: bool, width: int) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal() if terminal else io.StringIO())
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((100, 24)))
    monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS", raising=False)
    assert output.width() == width


@pytest.mark.parametrize(("form", "start"), [("svg", "<svg "), ("html", "<!DOCTYPE html>")])
def test_documents(form: str, start: str) -> None:
    assert output.export(LINES, form, "a title").startswith(start)


@pytest.mark.parametrize(
    ("terminal", "mode", "environment", "colored"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (False, "auto", {"FORCE_COLOR": "1"}, True),
        (True, "auto", {"FORCE_COLOR": "0"}, True),
        (True, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
        (True, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_when_there_is_color(
    terminal: bool, mode: str, environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.Color, "mode", mode)
    output._console.cache_clear()
    assert ("\x1b[" in _shown(monkeypatch, terminal=terminal, **environment)) == colored


def test_every_command_takes_color(kwire: Any) -> None:
    assert "\x1b[" in kwire("explain", "27", "--color", "always").text
    assert "\x1b[" not in kwire("explain", "27").text
    assert "\x1b[" in kwire("apis", "11", "--color=always").text
    assert "'sometimes' is not one of 'auto', 'always', 'never'" in kwire("apis", "--color", "sometimes").err
