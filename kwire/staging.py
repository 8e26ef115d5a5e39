"""Folders in which a run keeps what is not done, hidden beside its tables or among the system's temporary files.

The run holds a lock in its folder as long as it lives. A folder whose lock is free was left by a run that was killed,
and the next one removes it. Where files cannot be locked nothing is removed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not on Windows
    flock = None  # type: ignore[assignment]

NAME = re.compile(r"\.kwire-[0-9a-f]{12}")
LOCK = "lock"


@contextmanager
def staging(folder: str, private: bool = False) -> Iterator[str]:
    """A folder of the run's own within that one; at the end it is gone. private: nobody else may look into it. Raises
    OSError."""
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if NAME.fullmatch(name):
            _sweep(Path(folder, name))
    path = Path(folder, f".kwire-{uuid4().hex[:12]}")
    part = path.with_suffix(".part")  # which nobody takes for one that was left
    part.mkdir(0o700 if private else 0o777)
    with open(part / LOCK, "wb") as lock:
        try:
            take_lock(lock)
            part.rename(path)
            yield str(path)
        finally:
            for left in (part, path):
                shutil.rmtree(left, ignore_errors=True)


def _sweep(path: Path) -> None:
    """Removes the folder if nobody works in it any more."""
    try:
        if hasattr(os, "geteuid") and path.lstat().st_uid != os.geteuid():
            return
        with open(path / LOCK, "rb+") as lock:
            if take_lock(lock):
                shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return  # it has just gone, or is no such folder


def take_lock(lock: IO[bytes]) -> bool:
    """Whether the lock is ours now."""
    if flock is None:
        return False
    try:
        flock(lock, LOCK_EX | LOCK_NB)
    except OSError:
        return False
    return True
