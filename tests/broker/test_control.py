"""The control socket: what it does, refuses and bounds, and who may use it."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire.broker import control
from kwire.broker.control import ControlSocket, ask, fault_verbs
from kwire.broker.faults import Faults
from kwire.errors import KwireError


@contextmanager
def running(path: Path, faults: Faults) -> Iterator[None]:
    """In a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    served = ControlSocket(path, fault_verbs(faults))
    try:
        asyncio.run_coroutine_threadsafe(served.start(), loop).result()
        yield
    finally:
        asyncio.run_coroutine_threadsafe(served.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def said(path: Path, *lines: bytes) -> list[bytes]:
    """What comes back, until nothing more does."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(path))
        sock.sendall(b"".join(lines))
        sock.shutdown(socket.SHUT_WR)
        with sock.makefile("rb") as file:
            return file.readlines()


def test_rules_are_added_listed_and_cleared(tmp_path: Path) -> None:
    path, faults = tmp_path / "c", Faults()
    with running(path, faults):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        made = [ask(path, {"do": "add", "rule": rule}) for rule in ("Fetch:delay=2s", "Heartbeat:error=25")]
        assert [(each["number"], each["note"][:10]) for each in made] == [(1, ""), (2, "the answer")]
        assert ask(path, {"do": "clear", "number": 1}) == {"cleared": 1}
        faults.rules[0].came, faults.rules[0].met = 9, 2
        (left,) = ask(path, {"do": "list"})["rules"]
        assert left == {"number": 2, "rule": "Heartbeat:error=25", "came": 9, "met": 2}
        assert ask(path, {"do": "clear"}) == {"cleared": 1}
        assert faults.rules == []
    assert not path.exists()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"do": "add", "rule": "Fetch:dely=2s"}, "fault Fetch:dely=2s: no action dely; did you mean delay?"),
        ({"do": "add"}, "add needs a rule"),
        ({"do": "clear", "number": 7}, "no rule 7"),
        ({"do": "dance"}, "it can add, list, clear"),
        ({"do": ["add"]}, "write a line of JSON"),
        ({}, "write a line of JSON"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, asked: dict[str, object], why: str) -> None:
    with running(tmp_path / "c", Faults()), pytest.raises(KwireError, match=why):
        ask(tmp_path / "c", asked)


def test_whoever_asks_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with running(path, Faults()):
        junk = said(path, b"\xff\n", b"[" * 5_000 + b"\n", b'{"do": "list"}\n', b"x" * (control.LONGEST + 9) + b"\n")
        assert [json.loads(line).keys() for line in junk] == [{"error"}, {"error"}, {"rules"}, {"error"}]
        silent = [socket.socket(socket.AF_UNIX) for _ in range(control.MOST)]
        for sock in silent:
            sock.connect(str(path))
            sock.sendall(b'{"do": "list"}\n')
            assert sock.recv(100) == b'{"rules": []}\n'
        with socket.socket(socket.AF_UNIX) as sock:  # it may be closed before anything could be sent
            sock.settimeout(60)
            sock.connect(str(path))
            assert sock.recv(100) == b""
        for sock in silent:
            sock.close()
        rules = [ask(path, {"do": "add", "rule": "any:cut"}) for _ in range(10)]
        assert rules[-1]["number"] == 10


def test_there_are_only_so_many_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.broker.faults.MOST_RULES", 2)
    faults = Faults()
    faults.add("any:cut")
    faults.add("any:cut")
    with pytest.raises(KwireError, match="there are 2 rules already"):
        faults.add("any:cut")


def test_its_place_is_its_own(tmp_path: Path) -> None:
    taken, left = tmp_path / "file", tmp_path / "left"
    taken.write_text("mine")
    with pytest.raises(KwireError, match="is there already, and is no socket"), running(taken, Faults()):
        pass
    assert taken.read_text() == "mine"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(left))
    with running(left, Faults()):
        with pytest.raises(KwireError, match="the control of another program"), running(left, Faults()):
            pass
        assert ask(left, {"do": "list"}) == {"rules": []}
    with pytest.raises(KwireError, match="about 100 bytes at most"), running(tmp_path / ("x" * 200), Faults()):
        pass


def test_who_asks_where_nobody_is(tmp_path: Path) -> None:
    with pytest.raises(KwireError, match=r"no socket .*; kwire proxy --control"):
        ask(tmp_path / "none", {"do": "list"})
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "left"))
    with pytest.raises(KwireError, match="nobody listens there"):
        ask(tmp_path / "left", {"do": "list"})
