"""Output that is longer than the screen goes through a pager, as git has it: PAGER, else less with LESS=FRX, else more.

What a command writes to a terminal is held back until it is more than a screenful; only then does the pager start.
What would stand on stderr meanwhile is shown when the pager is left. Commands that are live call end() first. A pipe or
a file is never paged.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import subprocess

MOST = 1 << 18  # bytes held back at most, whatever the screen's size
ESCAPE = re.compile(rb"\x1b\[[0-9;]*m")


class _Screen(io.RawIOBase):
    """A terminal in front of which a pager starts when there is more than it shows."""

    def __init__(self, terminal: TextIO, program: str, size: os.terminal_size) -> None:
        self._terminal, self._program, self._size = terminal, program, size
        self._held: bytearray | None = bytearray()  # None: what comes goes on at once
        self._pager: subprocess.Popen[bytes] | None = None
        self._left = False  # the pager was left before all was read
        self._said: tuple[TextIO, io.StringIO] | None = None  # stderr, and what it gets when the pager is left
        self.starting: list[Callable[[], object]] = []

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()

    def write(self, data: Any) -> int:
        size = len(data)
        if self._held is None:
            self._put(data)
        else:
            self._held += data
            if len(self._held) > MOST or self._rows(self._held) >= self._size.lines:
                self._start()
        return size

    @property
    def shown(self) -> bool:
        return self._held is None

    def _rows(self, text: bytearray) -> int:
        """The lines of the screen that the whole lines of text fill."""
        shown = (len(line.decode("utf-8", "replace")) for line in ESCAPE.sub(b"", text).split(b"\n")[:-1])
        return sum(max(1, -(-length // self._size.columns)) for length in shown)

    def _start(self) -> None:
        import subprocess  # late: few commands need a pager

        for call in self.starting:
            call()
        environment = {"LESS": "FRX", "LV": "-c", **os.environ}
        with contextlib.suppress(OSError):  # no shell: as without a pager
            self._pager = subprocess.Popen(self._program, shell=True, stdin=subprocess.PIPE, env=environment)
            self._said = sys.stderr, io.StringIO()
            sys.stderr = self._said[1]
        self.give()

    def give(self) -> None:
        """Shows what is held; what comes is shown at once."""
        held, self._held = self._held, None
        if held:
            self._put(held)

    def _put(self, data: Any) -> None:
        if self._left:
            return
        to = self._terminal.buffer if self._pager is None else self._pager.stdin
        assert to is not None
        try:
            to.write(data)
            to.flush()
        except BrokenPipeError:
            self._left = True
            raise

    def end(self) -> bool:
        """Shows the rest and waits until the pager is left. Returns whether it was left before all was read."""
        with contextlib.suppress(BrokenPipeError):
            self.give()
        if self._pager is not None and self._pager.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._pager.stdin.close()
            while self._pager.returncode is None:
                with contextlib.suppress(KeyboardInterrupt):  # the pager's, while it has the screen
                    self._pager.wait()
        if self._said is not None:
            sys.stderr = self._said[0]
            sys.stderr.write(self._said[1].getvalue())
        return self._left


class _Paged:
    """The screen that stdout is at present, and stdout itself."""

    screen: _Screen | None = None
    stdout: TextIO | None = None


def begin() -> None:
    """From here on stdout is paged, if it is a terminal and there is a pager."""
    program = _program()
    if _Paged.screen is not None or not program or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return
    _Paged.stdout, _Paged.screen = sys.stdout, _Screen(sys.stdout, program, shutil.get_terminal_size())
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Paged.screen), sys.stdout.encoding, "replace")


def _program() -> str | None:
    """The pager as a command line for the shell; None where none is wanted or there is none."""
    wanted = os.environ.get("PAGER")
    if wanted is None:
        return next((name for name in ("less", "more") if shutil.which(name)), None)
    return None if wanted.strip() in ("", "cat") else wanted


def holds() -> bool:
    """Whether what is written is held back at present, so that the terminal is free."""
    return _Paged.screen is not None and not _Paged.screen.shown


def before(call: Callable[[], object]) -> None:
    """Has a function called when a pager takes the screen."""
    if _Paged.screen is not None:
        _Paged.screen.starting.append(call)


def end() -> bool:
    """Shows the rest, waits until the pager is left, gives stdout back. Returns whether somebody left it early."""
    screen, stdout = _Paged.screen, _Paged.stdout
    if screen is None or stdout is None:
        return False
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    left = screen.end()
    sys.stdout, _Paged.screen, _Paged.stdout = stdout, None, None
    return left
