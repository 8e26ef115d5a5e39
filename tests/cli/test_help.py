"""kwire help: what there is to read, a page, the options of a command."""

from __future__ import annotations

from typing import Any

import pytest

from kwire import guide


def test_it_lists_the_pages(kwire: Any) -> None:
    text = kwire("help").text
    assert all(f"  {name} " in text for name in guide.names())
    assert max(map(len, text.splitlines())) <= 100


def test_a_page_goes_into_a_pipe_as_it_is(kwire: Any) -> None:
    assert kwire("help", "evictions").text == guide.page("evictions").text


def test_a_page_is_laid_out_on_a_terminal(kwire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = kwire("help", "start", "--color", "always").text
    assert "\x1b[" in text
    assert "# The first" not in text
    assert "The first five minutes" in text


def test_a_command_has_its_help(kwire: Any) -> None:
    assert kwire("help", "read").text == kwire("read", "--help").text
    assert kwire("help", "pipeline", "run").text == kwire("pipeline", "run", "--help").text


def test_what_is_neither_gets_the_nearest(kwire: Any) -> None:
    ran = kwire("help", "evictoins")
    assert ran.status == 2
    assert "no page or command evictoins; did you mean evictions" in ran.err
