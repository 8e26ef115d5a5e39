"""Files that commands write. Nothing is lost for one, and nothing half stays.

A file grows beside its target under a name that nobody can guess, opened exclusively and locked, and is renamed when it
is whole; one that others read while it grows, as a live capture, is renamed as soon as it is begun. Parts whose lock is
free were left by a process that was killed: the next one that writes in the folder removes them. A link is replaced,
never followed. What is no file (stdout, a pipe, a device) is written to as it is.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from kwire.errors import OutputError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not on Windows
    flock = None  # type: ignore[assignment]

PART = re.compile(r"\.kwire-[0-9a-f]{16}\.part")
STREAM = re.compile(r"-|/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
PRIVATE, USUAL = 0o600, 0o666  # modes; the umask takes from the second


class Output:
    """A file to write: open(), then close() when it is whole or abandon() when it is not; or a with block, which gives
    the open file. place() gives it its name before it is whole.

    inputs: files that are read, onto none of which it may be written, whatever their names. private: it holds packets
    or secrets, so that only its owner may read it. force: what has the name already is replaced; otherwise only an
    empty file is. Raises OutputError for what must not be written, OSError for what cannot be; nothing is touched then.
    """

    def __init__(
        self, path: str | Path, *, inputs: Iterable[str | Path] = (), private: bool = False, force: bool = True
    ) -> None:
        self.path = Path(path)
        self.private, self.force = private, force
        self._stream = _stream(str(path))
        self._part: Path | None = None
        self._file: BinaryIO | None = None
        self._owner = os.getpid()
        self._keep_inputs(inputs)
        self._straight = self._stream is not None or self._check()
        if private and self._stream is not None and os.isatty(self._stream):
            raise OutputError(str(path), "a terminal is no place for this; name a file or use a pipe")

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_stdout(self) -> bool:
        return self._stream == 1

    @property
    def is_file(self) -> bool:
        """Whether it is to be a file, which has a name, and no pipe or device."""
        return not self._straight

    # ------------------------------------------------------------ life

    def open(self) -> BinaryIO:
        """The file, under a name that is not yet its own. Raises OSError."""
        try:
            self._file = self._open()
        except OSError as error:
            raise self._named(error) from None
        return self._file

    def place(self) -> None:
        """Gives the file its name; it can be written on. Raises OutputError when somebody else took it meanwhile."""
        if self._file is None or self._part is None:
            return
        try:
            self._file.flush()
            self._rename(self._part)
        except OSError as error:
            raise self._named(error) from None
        self._part = None

    def close(self) -> None:
        """It is whole: it has its name from here on. Where that fails nothing is left."""
        try:
            self.place()
            if self._file is not None:
                self._end(self._file)
        except OSError as error:
            self.abandon()
            raise self._named(error) from None
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Nothing is left of what has no name yet. In a forked process nothing happens: the file is its parent's."""
        if os.getpid() != self._owner:
            return
        if self._file is not None:
            with suppress(OSError, ValueError):  # as on a full disk
                self._end(self._file)
        if self._part is not None:
            self._part.unlink(missing_ok=True)
        self._part = None

    def __enter__(self) -> BinaryIO:
        return self.open()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if error is None:
            self.close()
            return
        self.abandon()
        if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            error.filename = str(self.path)

    def hand_over(self, user: int, group: int) -> None:
        """The file belongs to them from here on."""
        if self._file is not None and not self._straight:
            os.fchown(self._file.fileno(), user, group)

    # ------------------------------------------------------------ before

    def _check(self) -> bool:
        """Whether the path is that of a pipe or device, to be written to as it is."""
        path = self.path
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent)) from None
            return False
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", str(path))
        if stat.S_ISLNK(found.st_mode):
            if path.exists() and not path.is_file():
                raise OutputError(str(path), "a link to what is no file; name that itself")
        elif not stat.S_ISREG(found.st_mode):
            return True
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if not self.force and (stat.S_ISLNK(found.st_mode) or found.st_size):
            raise self._exists()
        return False

    def _keep_inputs(self, inputs: Iterable[str | Path]) -> None:
        mine = _identity(self.path if self._stream is None else self._stream)
        if mine is not None and mine in {_identity(0), *map(_identity, inputs)}:
            raise OutputError(str(self.path), "this is read here too, so nothing is written to it")

    def _exists(self) -> OutputError:
        return OutputError(str(self.path), "exists already; --force overwrites it")

    # ------------------------------------------------------------ the file

    def _open(self) -> BinaryIO:
        if self._stream == 1:
            sys.stdout.flush()
            return sys.stdout.buffer
        if self._stream is not None:
            return os.fdopen(os.dup(self._stream), "wb")
        if self._straight:
            return os.fdopen(os.open(self.path, os.O_WRONLY | NOFOLLOW), "wb")
        remove_left(self.path.parent)
        self._part, descriptor = _begin(self.path.parent, PRIVATE if self.private else USUAL)
        if not self.private and (found := _stat(self.path)) is not None:
            with suppress(OSError):  # as on file systems without modes
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
        return os.fdopen(descriptor, "wb")

    def _rename(self, part: Path) -> None:
        found = _stat(self.path)
        if found is not None and found.st_size and self._file is not None:
            os.fsync(self._file.fileno())  # what is there goes only when this is on disk
        if self.force or (found is not None and not found.st_size):
            os.replace(part, self.path)
            return
        try:
            os.link(part, self.path)  # which, unlike a rename, never replaces
        except FileExistsError:
            raise self._exists() from None
        except OSError:  # a file system without links
            if os.path.lexists(self.path):
                raise self._exists() from None
            os.replace(part, self.path)
        else:
            part.unlink()

    def _end(self, file: BinaryIO) -> None:
        if self._stream == 1:
            file.flush()
        else:
            file.close()

    def _named(self, error: OSError) -> OSError:
        """The error, about the file as the user knows it."""
        if error.errno is None:
            return error
        return type(error)(error.errno, error.strerror, str(self.path))


def remove_left(folder: Path) -> None:
    """Removes what processes that were killed left in a folder."""
    try:
        names = [name for name in os.listdir(folder) if PART.fullmatch(name)]
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            _remove_left(folder / name)


def _remove_left(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if mine and flock is not None:
            flock(descriptor, LOCK_EX | LOCK_NB)  # fails while somebody writes it
            path.unlink()
    finally:
        os.close(descriptor)


def _begin(folder: Path, mode: int) -> tuple[Path, int]:
    """A new file, locked. Whoever removes what is left may take one between its making and its lock: then another."""
    while True:
        part = folder / f".kwire-{os.urandom(8).hex()}.part"
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | NOFOLLOW, mode)
        try:
            if flock is not None:
                flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        except OSError:  # no locks here: nothing is removed then
            return part, descriptor
        if os.path.lexists(part):
            return part, descriptor
        os.close(descriptor)


def _stream(path: str) -> int | None:
    """The descriptor that a path names: stdout for - and /dev/stdout, N for /dev/fd/N."""
    found = STREAM.fullmatch(path)
    if found is None:
        return None
    return 2 if found[1] == "stderr" else int(found[2] or 1)


def _stat(path: Any) -> os.stat_result | None:
    """Of a regular file, behind links; None of all else, and of what is no path at all."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _identity(path: Any) -> tuple[int, int] | None:
    found = _stat(path)
    return None if found is None else (found.st_dev, found.st_ino)
