"""How soon kwire browse answers a key, as a person at a terminal has it: from the key to the row that it marks.

    python tests/bench/browse_keys.py [CAPTURE]

Without CAPTURE one of a million packets is made (traffic.py). Keys are sent while the capture is read, then after it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path
from statistics import median

from traffic import make

MARK = "▸".encode()  # before the chosen row
ROWS, COLUMNS = 50, 200
LONGEST = 10.0  # seconds that a screen is waited for


def begun(path: Path) -> tuple[int, int]:
    """The process, and the terminal's other end."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "kwire", "browse", str(path)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return pid, terminal


def read(terminal: int, seconds: float) -> bytes:
    """What comes in that time; empty without any."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    return os.read(terminal, 1 << 16) if ready else b""


def until_marked(terminal: int) -> float:
    """Seconds until a row is marked."""
    start, got = time.monotonic(), b""
    while MARK not in got and time.monotonic() - start < LONGEST:
        got += read(terminal, 0.5)
    return time.monotonic() - start


def pressed(terminal: int, count: int, quiet: float) -> list[float]:
    """Milliseconds from each key to the row that it marks; before each, what was still on its way is taken."""
    found = []
    for _ in range(count):
        end = time.monotonic() + 0.5
        while read(terminal, quiet) and time.monotonic() < end:
            pass
        os.write(terminal, b"j")
        found.append(until_marked(terminal) * 1000)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "million.pcap"
        if len(sys.argv) == 1:
            make(path, 1_000_000)
        pid, terminal = begun(path)
        try:
            print(f"first screen after {until_marked(terminal):.2f} s")
            for name, count, quiet, pause in (("while it is read", 40, 0.02, 0), ("after it", 20, 0.1, 3)):
                time.sleep(pause)
                times = pressed(terminal, count, quiet)
                print(f"{count} keys {name}: {median(times):.0f} ms, at most {max(times):.0f}")
            os.write(terminal, b"q")
        finally:
            time.sleep(1)
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
