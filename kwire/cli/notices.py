"""Lines about what happens, written by a thread of their own: a terminal that was stopped, or a pipe that nobody reads,
does not stop what they tell of."""

from __future__ import annotations

import io
import os
import queue
import threading
from typing import TextIO

MOST = 10_000  # lines that wait; more are counted instead
PATIENCE = 5.0  # seconds without any progress, at the end


class Notices:
    """put() never waits; close() gives the lines that still wait to whoever reads on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._waiting: queue.Queue[str] = queue.Queue(MOST)
        self._dropped = self._written = 0
        self._over = False
        self._thread = threading.Thread(target=self._write, name="kwire notices", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            if self._dropped:
                self._waiting.put_nowait(self._left_out())
                self._dropped = 0
            self._waiting.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        self._over = True
        if self._waiting.empty():
            self._waiting.put("")
        before = -1
        while self._thread.is_alive() and before != self._written:
            before = self._written
            self._thread.join(PATIENCE)

    def _left_out(self) -> str:
        return f"kwire: {self._dropped:,} lines left out here: nobody read them in time"

    def _write(self) -> None:
        while True:
            lines = [self._waiting.get()]
            while not self._waiting.empty() and len(lines) < 100:
                lines.append(self._waiting.get())
            last = self._over and self._waiting.empty()
            if last and self._dropped:
                lines.append(self._left_out())
            try:
                self._out("".join(f"{line}\n" for line in lines if line))
            except (OSError, ValueError):  # whoever read is gone
                return
            self._written += len(lines)
            if last:
                return

    def _out(self, text: str) -> None:
        """Past Python's buffer, whose lock the end of the program would wait for."""
        try:
            number = self._stream.fileno()
        except io.UnsupportedOperation:
            self._stream.write(text)
            return
        data = text.encode(self._stream.encoding or "utf-8", "replace")
        while data:
            data = data[os.write(number, data) :]
