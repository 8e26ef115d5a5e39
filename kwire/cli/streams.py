"""Captures that come once, through stdin or a pipe, for commands that read them twice."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kwire.outputs import Output
from kwire.staging import staging


@contextmanager
def readable_twice(paths: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths, with copies in the place of stdin and pipes, which are gone at the end. Raises OSError."""
    streams = [path for path in paths if path == "-" or (os.path.exists(path) and not os.path.isfile(path))]
    if not streams:
        yield paths
        return
    with staging(tempfile.gettempdir(), private=True) as folder:
        copies = {}
        for path in dict.fromkeys(streams):
            copies[path] = str(Path(folder, "stdin" if path == "-" else Path(path).name))
            with Output(copies[path], private=True) as copy:
                if path == "-":
                    shutil.copyfileobj(sys.stdin.buffer, copy)
                    continue
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, copy)
        yield tuple(copies.get(path, path) for path in paths)
