"""Output on a terminal: what is longer than the screen goes through the pager, what is shorter does not."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.cli import pager
from kwire.cli.main import main

ROWS = 10


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined, no-any-return]


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs kwire on a terminal of ten lines: its status, what the terminal showed, and what stood on stderr."""
    monkeypatch.chdir(Path(__file__).parents[2])
    for name, value in {"COLUMNS": "100", "LINES": str(ROWS), "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, program: str | None = None, **environment: str) -> tuple[int, str, str]:
        out, err = Terminal(), io.StringIO()
        if program is not None:
            monkeypatch.setenv("PAGER", program)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["kwire", *arguments])
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as left:
            main()
        assert (sys.stdout, sys.stderr) == (out, err)
        assert isinstance(left.value.code, int)
        return left.value.code, out.text, err.getvalue()

    return run


def test_what_fits_the_screen_needs_no_pager(at_terminal: Run, tmp_path: Path) -> None:
    status, shown, _ = at_terminal("errors", "rebalance_in", program=f"cat > {tmp_path}/paged")
    assert status == 0
    assert "REBALANCE_IN_PROGRESS" in shown
    assert not (tmp_path / "paged").exists()


LONG = ["errors", "apis", "explain Fetch", "explain Fetch --format json", "help evictions", "read --help", "--help",
        "read fixtures/captures/classic.pcap.gz",
        "decode fixtures/captures/classic.pcap.gz --frame 8"]  # fmt: skip


@pytest.mark.parametrize("line", LONG)
def test_what_is_longer_goes_through_the_pager(line: str, at_terminal: Run, tmp_path: Path) -> None:
    status, shown, _ = at_terminal(*line.split(), program=f"cat > {tmp_path}/paged")
    paged = (tmp_path / "paged").read_text("utf-8")
    assert (status, shown) == (0, "")
    assert len(paged.splitlines()) >= ROWS
    assert at_terminal(*line.split(), PAGER="")[1] == paged


@pytest.mark.parametrize("environment", [{"PAGER": ""}, {"PAGER": "cat"}, {"TERM": "dumb"}])
def test_where_none_is_wanted_there_is_none(environment: dict[str, str], at_terminal: Run, tmp_path: Path) -> None:
    _, shown, _ = at_terminal("errors", **{"PAGER": f"cat > {tmp_path}/paged", **environment})
    assert len(shown.splitlines()) > ROWS
    assert not (tmp_path / "paged").exists()


def test_no_pager_shows_all_at_once(at_terminal: Run, tmp_path: Path) -> None:
    _, shown, _ = at_terminal("errors", "--no-pager", program=f"cat > {tmp_path}/paged")
    assert len(shown.splitlines()) > ROWS
    assert not (tmp_path / "paged").exists()


def test_who_leaves_the_pager_has_seen_enough(at_terminal: Run, tmp_path: Path) -> None:
    status, shown, said = at_terminal("explain", "Fetch", "--all", program=f"head -2 > {tmp_path}/paged")
    assert (status, shown, said) == (0, "", "")
    assert len((tmp_path / "paged").read_text("utf-8").splitlines()) == 2


def test_what_is_said_besides_stands_behind_the_pages(at_terminal: Run, tmp_path: Path) -> None:
    _, _, said = at_terminal("read", "fixtures/captures/classic.pcap.gz", program=f"cat > {tmp_path}/paged")
    assert said.startswith("kwire: 166 exchanges")
    assert "166 exchanges" not in (tmp_path / "paged").read_text("utf-8")


def test_a_pager_that_there_is_not_harms_nobody(at_terminal: Run) -> None:
    status, _, said = at_terminal("errors", program="no-such-program 2> /dev/null")
    assert (status, said) == (0, "")


def test_wrapped_lines_count_as_what_they_fill(at_terminal: Run, tmp_path: Path) -> None:
    at_terminal("errors", "--format", "csv", "rebalance", program=f"cat > {tmp_path}/paged", LINES="4", COLUMNS="40")
    assert (tmp_path / "paged").exists()


def test_a_pipe_is_not_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "false")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    pager.begin()
    assert isinstance(sys.stdout, io.StringIO)
    assert pager.end() is False
