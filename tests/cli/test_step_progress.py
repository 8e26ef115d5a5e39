"""The line that says how far a job is."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("pyarrow")
from kwire.cli.step_progress import StepProgress, how
from kwire.pipeline.steps import RunStep


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_tasks_and_the_bytes_that_they_stand_for() -> None:
    assert how(RunStep("read", 4_000_000, 1, 4)) == "1/4 tasks, 1/4 MB"
    assert how(RunStep("rollups", 0, 1, 4)) == "1/4 tasks"


def test_it_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with StepProgress() as progress:
        assert progress.wanted
        progress.show(RunStep("read", 4_000_000, 1, 4))
        progress.show(RunStep("read", 4_000_000, 3, 4))
        progress.show(RunStep("stitch"))
        progress.show(RunStep("rollups", 0, 1, 2))
    assert "rollups" in terminal.getvalue()
    assert "1/2 tasks" in terminal.getvalue()


def test_nothing_is_shown_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with StepProgress() as progress:
        assert not progress.wanted
