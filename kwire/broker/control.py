"""Control of what runs: a Unix socket on which lines of JSON ask for something, and a line of JSON answers each.

    {"do": "add", "rule": "Fetch:delay=2s"}     {"number": 1, "rule": "Fetch:delay=2s", "note": ""}
    {"do": "list"}                              {"rules": [{"number": 1, "rule": …, "came": 9, "met": 2}]}
    {"do": "clear", "number": 1}                {"cleared": 1}      without a number: all of them
    what cannot be done                         {"error": "why"}

Only the user to whom the program belongs can connect: the socket has mode 0600 before it listens. Lines, connections
and silence are bounded.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kwire.broker.faults import Faults
from kwire.errors import KwireError

Asked = Mapping[str, Any]
Verb = Callable[[Asked], dict[str, Any]]

LONGEST = 8 << 10  # bytes of a line that asks
LONGEST_ANSWER = 16 << 20
MOST = 16  # connections at once
PATIENCE = 60.0  # seconds for a line to come, and for an answer to be taken
WAIT = 10.0  # seconds for which ask() waits


def fault_verbs(faults: Faults) -> dict[str, Verb]:
    """What the control of a broker's or a proxy's faults understands."""

    def add(asked: Asked) -> dict[str, Any]:
        text = asked.get("rule")
        if not isinstance(text, str):
            raise KwireError("add needs a rule, as text")
        rule = faults.add(text)
        return {"number": rule.number, "rule": rule.text, "note": rule.note}

    def list_(_: Asked) -> dict[str, Any]:
        rows = [
            {"number": rule.number, "rule": rule.text, "came": rule.came, "met": rule.met}
            for rule in list(faults.rules)
        ]
        return {"rules": rows}

    def clear(asked: Asked) -> dict[str, Any]:
        number = asked.get("number")
        rules = [rule for rule in faults.rules if number in (None, rule.number)]
        if number is not None and not rules:
            raise KwireError(f"no rule {number}")
        for rule in rules:
            faults.remove(rule)
        return {"cleared": len(rules)}

    return {"add": add, "list": list_, "clear": clear}


class ControlSocket:
    """verbs: what "do" may be; each is called in the loop's thread and may raise KwireError."""

    def __init__(self, path: str | Path, verbs: Mapping[str, Verb]) -> None:
        self.path, self.verbs = Path(path), verbs
        self._server: asyncio.AbstractServer | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._inode = 0

    async def start(self) -> None:
        """Raises KwireError for a path that cannot be a socket, or is another program's; OSError."""
        if not hasattr(socket, "AF_UNIX"):
            raise KwireError("--control needs Unix sockets, and there are none on this system")
        sock = socket.socket(socket.AF_UNIX)
        try:
            self._bind(sock)
            sock.setblocking(False)
            self._server = await asyncio.start_unix_server(self._serve, sock=sock, limit=LONGEST, backlog=MOST)
        except BaseException:
            sock.close()
            raise
        self._inode = self.path.lstat().st_ino

    async def stop(self) -> None:
        """Nobody is heard any more, and the socket's name is gone. Safe to call twice."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        with suppress(OSError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def _bind(self, sock: socket.socket) -> None:
        try:
            _make_room(self.path)
            sock.bind(str(self.path))
            os.chmod(self.path, 0o600)  # before anybody can connect, for nothing listens yet
        except OSError as error:
            if error.errno is None:  # of Python's own
                raise KwireError(f"{self.path}: {error}; a socket's path has about 100 bytes at most") from None
            raise type(error)(error.errno, error.strerror, str(self.path)) from None

    # ------------------------------------------------------------ those who ask

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._writers) < MOST:
                self._writers.add(writer)
                await self._converse(reader, writer)
        except (OSError, TimeoutError):
            writer.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over = False
        while not over:
            async with asyncio.timeout(PATIENCE):
                try:
                    line = await reader.readline()
                except ValueError:
                    over, answer = True, {"error": f"a line of more than {LONGEST:,} bytes"}
                else:
                    if not line.endswith(b"\n"):
                        return
                    answer = self._answer(line)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            verb = self.verbs.get(asked["do"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return {"error": 'write a line of JSON, as {"do": "list"}'}
        if verb is None:
            return {"error": f"it can {', '.join(self.verbs)}"}
        try:
            return verb(asked)
        except KwireError as error:
            return {"error": str(error)}


def _make_room(path: Path) -> None:
    """Removes a socket that a program left. Raises KwireError for what is none, or is in use."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise KwireError(f"{path} is there already, and is no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise KwireError(f"{path} is the control of another program that runs")


def ask(path: str | Path, asked: Asked) -> dict[str, Any]:
    """The answer of the program whose control a socket is. Raises KwireError, also for what it cannot do."""
    if not hasattr(socket, "AF_UNIX"):
        raise KwireError("there are no Unix sockets on this system")
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(WAIT)
            sock.connect(str(path))
            sock.sendall(json.dumps(asked).encode() + b"\n")
            with sock.makefile("rb") as file:
                line = file.readline(LONGEST_ANSWER)
    except FileNotFoundError:
        raise KwireError(f"no socket {path}; kwire proxy --control and kwire broker --control make one") from None
    except TimeoutError:
        raise KwireError(f"{path}: no answer") from None
    except OSError as error:
        refused = error.errno == errno.ECONNREFUSED
        raise KwireError(f"{path}: {'nobody listens there' if refused else error.strerror or error}") from None
    try:
        answer = json.loads(line)
        why = answer.get("error")
    except (ValueError, AttributeError, RecursionError):
        raise KwireError(f"{path}: what listens there is no control of kwire") from None
    if why is not None:
        raise KwireError(str(why))
    assert isinstance(answer, dict)
    return answer
