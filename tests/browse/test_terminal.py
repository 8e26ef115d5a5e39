"""kwire browse, whole, in a terminal: tmux shows what stands on the screen."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from session.conftest import Traffic, request, response

ROOT = Path(__file__).parents[2]
TMUX = shutil.which("tmux")
PATIENCE = 90  # seconds
pytestmark = pytest.mark.skipif(TMUX is None, reason="no tmux: kwire browse is not run in a terminal")


class Terminal:
    """A command in a terminal of its own. until() waits for a screen."""

    def __init__(self, socket: Path, size: str, command: list[str], **environ: str) -> None:
        self._tmux = [str(TMUX), "-S", str(socket), "-f", os.devnull]
        columns, rows = size.split("x")
        line = f"{shlex.join(command)}; echo left with $?; read -r _"
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        given = {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environ}
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-x", columns, "-y", rows, "sh", "-c", line],
            check=True, env=given, cwd=ROOT, timeout=PATIENCE,
        )  # fmt: skip

    def screen(self, *options: str) -> str:
        command = [*self._tmux, "capture-pane", "-p", *options]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def press(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True, timeout=PATIENCE)

    def until(self, holds: Callable[[str], bool]) -> str:
        end = time.monotonic() + PATIENCE
        while not holds(screen := self.screen()):
            assert time.monotonic() < end, screen
            time.sleep(0.1)
        return screen

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, timeout=PATIENCE)


@pytest.fixture
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Terminal]]:
    """terminal(size, *arguments, **environment): kwire in a terminal."""
    made: list[Terminal] = []
    folder = tmp_path_factory.mktemp("t")

    def start(size: str, *arguments: str, **environ: str) -> Terminal:
        command = [sys.executable, "-m", "kwire", *arguments]
        made.append(Terminal(folder / f"{len(made)}", size, command, **environ))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.parametrize("size", ["80x24", "200x50"])
def test_a_capture_is_looked_at_and_left(size: str, terminal: Callable[..., Terminal]) -> None:
    shown = terminal(size, "browse", "fixtures/captures/consumer848.pcap")
    screen = shown.until(lambda text: "of 102 exchanges" in text and "Request Header v2" in text)
    assert ("0000  00 00 00 35" in screen) == (size == "200x50")
    assert "? keys" in screen.splitlines()[-1]
    shown.press("f")
    shown.until(lambda text: "filter:" in text)
    shown.press("-l", "api=Fetch")
    shown.press("Enter")
    shown.until(lambda text: "· api=Fetch" in text and "FetchRequest" in text)
    shown.press("G", "r")
    shown.until(lambda text: "FetchResponse" in text)
    shown.press("Tab", "Tab")
    screen = shown.until(lambda text: "0000  00 00 00" in text)
    assert ("Response Header" in screen) == (size == "200x50")
    shown.press("?")
    shown.until(lambda text: "keys of kwire browse" in text)
    shown.press("q", "q")
    screen = shown.until(lambda text: "left with 0" in text)
    assert "exchanges" not in screen  # the terminal is as it was


def test_without_color_the_terminal_gets_none(terminal: Callable[..., Terminal]) -> None:
    shown = terminal("80x24", "browse", "fixtures/captures/consumer848.pcap", NO_COLOR="1")
    shown.until(lambda text: "Request Header v2" in text)
    for code in shown.screen("-e").split("\x1b[")[1:]:
        numbers = [int(number) for number in code.partition("m")[0].split(";") if number.isdecimal()]
        assert not [number for number in numbers if 30 <= number <= 38 or 40 <= number <= 48 or number >= 90]
    shown.press("q")
    shown.until(lambda text: "left with 0" in text)


def test_what_is_not_kafka_is_said(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.connection().send(b"GET / HTTP/1.1\r\n\r\n").answer(b"HTTP/1.1 200 OK\r\n\r\n").close()
    shown = terminal("80x24", "browse", str(traffic.save(tmp_path / "http.pcap")))
    shown.until(lambda text: "no Kafka in it" in text)
    shown.press("q")
    shown.until(lambda text: "left with 3" in text)


def _answer(server: socket.socket) -> None:
    """A broker that answers heartbeats."""
    there, _ = server.accept()
    with there:
        while head := there.recv(4, socket.MSG_WAITALL):
            data = there.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
            there.sendall(response("Heartbeat", 3, {}, int.from_bytes(data[4:8], "big")))


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="listening on lo needs root on Linux"
)
def test_what_is_live_is_followed(terminal: Callable[..., Terminal]) -> None:
    pytest.importorskip("scapy.config", reason="scapy is not installed, with which kwire listens")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        broker = threading.Thread(target=_answer, args=(server,), daemon=True)
        broker.start()
        shown = terminal("80x24", "sniff", "-i", "lo", "--port", str(port), "--browse")
        shown.until(lambda text: "lo · 0 exchanges · live, following" in text)
        with socket.create_connection(("127.0.0.1", port)) as client:
            for ident in (11, 12):
                client.sendall(request("Heartbeat", 3, {"GroupId": "live-group"}, ident, "me"))
                client.recv(1 << 16)
                shown.until(lambda text, ident=ident: f"correlation id {ident}" in text)  # type: ignore[misc]
            screen = shown.until(lambda text: "2 of 2 exchanges" in text)
            assert "live-group" in screen
            shown.press("k")
            shown.until(lambda text: "correlation id 11" in text and "following" not in text)
            shown.press("q")
            assert "kwire: " in shown.until(lambda text: "left with 0" in text)
        broker.join(PATIENCE)
