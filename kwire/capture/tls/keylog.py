"""Key logs in NSS's format: the secrets of TLS sessions, line by line, as SSLKEYLOGFILE makes programs write them.

A line is a label, the client's random and a secret, all in hex; older lines name a session id or the first bytes of an
encrypted premaster secret instead (the format is described in draft-ietf-tls-keylogfile, the older lines in NSS's own
notes). Lines that are none of these are counted and left out. Files that grow are read on when somebody asks again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MOST = 2_000_000  # secrets that are kept; the first ones go first
PIECE = 1 << 20  # bytes of a file that are read at a time
LONGEST = 4096  # bytes of a line that is not whole yet
MASTER = "CLIENT_RANDOM"
PREMASTER = "PMS_CLIENT_RANDOM"
SESSION = "RSA Session-ID"
RSA = "RSA"
EARLY = "CLIENT_EARLY_TRAFFIC_SECRET"
HANDSHAKE = ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET")
TRAFFIC = ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")
LABELS = (MASTER, PREMASTER, SESSION, RSA, EARLY, *HANDSHAKE, *TRAFFIC)
NUMBERS = {label: bytes([number]) for number, label in enumerate(LABELS)}
LINE = re.compile(rb"(?m)^[ \t]*([A-Z_0-9]+)[ \t]+([0-9a-fA-F]{64})[ \t]+([0-9a-fA-F]{32,256})[ \t]*\r?$")
OLD = re.compile(
    rb"(?m)^(?:RSA Session-ID:([0-9a-fA-F]{2,64}) Master-Key:([0-9a-fA-F]{96})"
    rb"|RSA ([0-9a-fA-F]{16}) ([0-9a-fA-F]{96}))\r?$"
)


@dataclass(slots=True)
class _File:
    """A key log file and how far it was read."""

    path: str
    done: int = 0
    rest: bytes = b""
    source: BinaryIO | None = None  # kept open where it grows: the right to open it again may be gone


@dataclass(slots=True, eq=False)
class KeyLog:
    """Secrets by label and client random (or session id, or the first bytes of an encrypted premaster secret).

    growing: files may still grow, and keys come after the packets that need them. unread: lines that are no key log's;
    added: grows with every secret, so that whoever misses one knows when to look again."""

    growing: bool = False
    unread: int = 0
    added: int = 0
    _secrets: dict[bytes, bytes] = field(default_factory=dict)
    _files: list[_File] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there are secrets, or growing files that may bring some."""
        return bool(self._secrets or self._files)

    @classmethod
    def of(cls, paths: Sequence[str | Path], growing: bool = False) -> KeyLog:
        """The secrets of these files. Raises OSError for one that cannot be read; a file that is yet to come may be
        missing where files grow."""
        made = cls(growing)
        for path in paths:
            if not growing or Path(path).exists():
                Path(path).open("rb").close()
            made._files.append(_File(str(path)))
            if growing and Path(path).is_file():
                made._files[-1].source = open(path, "rb")  # noqa: SIM115
        made.refresh()
        return made

    def refresh(self) -> None:
        """Reads what files have got since. A file that cannot be read now is left for the next time."""
        for file in self._files:
            try:
                size = os.stat(file.path if file.source is None else file.source.fileno()).st_size
                if size < file.done:  # it was begun anew
                    file.done, file.rest = 0, b""
                if size > file.done:
                    self._read_on(file)
            except OSError:
                continue
        if not self.growing:
            for file in self._files:
                self.add(file.rest)
                file.rest = b""

    def _read_on(self, file: _File) -> None:
        source = file.source or open(file.path, "rb")  # noqa: SIM115 (kept where it grows)
        try:
            source.seek(file.done)
            while piece := source.read(PIECE):
                file.done += len(piece)
                lines, _, rest = (file.rest + piece).rpartition(b"\n")
                self.add(lines)
                file.rest = rest[-LONGEST:]
        finally:
            if self.growing:
                file.source = source
            else:
                source.close()

    def add(self, text: bytes) -> None:
        """Adds the secrets in the lines of a text."""
        found, used = 0, 0
        for match in LINE.finditer(text):
            label, random, secret = match.groups()
            name = label.decode()
            found += 1
            if name in NUMBERS:
                used += self._put(name, random, secret)
        for match in OLD.finditer(text):
            session, master, encrypted, premaster = match.groups()
            found += 1
            used += self._put(SESSION, session, master) if session else self._put(RSA, encrypted, premaster)
        lines = sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith(b"#"))
        self.unread += max(lines - found, 0)
        self.added += used

    def _put(self, label: str, key: bytes, secret: bytes) -> int:
        if len(key) % 2 or len(secret) % 2:
            return 0
        name = NUMBERS[label] + bytes.fromhex(key.decode())
        if len(self._secrets) >= MOST and name not in self._secrets:
            del self._secrets[next(iter(self._secrets))]
        self._secrets[name] = bytes.fromhex(secret.decode())
        return 1

    def find(self, label: str, key: bytes) -> bytes | None:
        """The secret of that label for a client random, a session id or an encrypted premaster secret's beginning."""
        return self._secrets.get(NUMBERS[label] + key)

    def lines_of(self, key: bytes) -> list[str]:
        """All secrets for a client random, as lines of a key log."""
        found = ((label, self.find(label, key)) for label in LABELS if label not in (SESSION, RSA))
        return [f"{label} {key.hex()} {secret.hex()}" for label, secret in found if secret is not None]
