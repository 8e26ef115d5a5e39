"""kwire sniff: what it says where it cannot listen, and, as root on Linux, what it shows and saves of real traffic."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from struct import pack, unpack
from typing import Any

import pytest
from rawsockets import exactly

import kwire as api
from kwire.errors import Exit
from kwire.session.reading import Reading

scapy = pytest.importorskip("scapy.config", reason="scapy is not installed, with which kwire listens")
ROOT = Path(__file__).parents[2]
LINUX = sys.platform == "linux"
as_root = pytest.mark.skipif(not LINUX or os.geteuid() != 0, reason="listening on lo needs root on Linux")


def test_the_interfaces_are_named(kwire: Any) -> None:
    ran = kwire("sniff", "--list")
    head, *rows = ran.text.splitlines()
    assert head.split() == ["interface", "state", "addresses"]
    assert {row.split()[0] for row in rows} == {name for _, name in socket.if_nameindex()}
    assert ran.status == Exit.OK


def test_an_interface_that_is_not_there(kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "never.pcapng"
    ran = kwire("sniff", "-i", "no\x1bsuch0", "-w", str(target))
    names = [name for _, name in socket.if_nameindex()]
    assert ran.err.startswith("kwire: no\\x1bsuch0: no such interface; there are ")
    assert set(names) <= set(re.split(r"[, ]+|\n", ran.err))
    assert (ran.out, ran.status, target.exists()) == (b"", Exit.USAGE, False)


@pytest.mark.skipif(not LINUX, reason="elsewhere another right is needed")
def test_without_the_right_to_capture_the_command_that_grants_it_is_named(
    kwire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    from scapy.config import conf

    __import__("scapy.arch")
    monkeypatch.setattr(conf, "L2listen", refuse)
    ran = kwire("sniff", "-i", "lo", "--port", "9092")
    python = os.path.realpath(sys.executable)
    assert ran.err == (
        "kwire: lo: capturing needs the right CAP_NET_RAW: sudo kwire sniff -i lo, "
        f"or once for all: sudo setcap cap_net_raw+ep {python}\n"
    )
    assert (ran.out, ran.status) == (b"", Exit.USAGE)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--count", "0"), "Error: Invalid value for '-c' / '--count': 0 is not in the range x>=1."),
        (("--duration", "long"), "Error: Invalid value for '--duration': long is no duration; as 100ms, 1.5s"),
        (("--api", "Heartbaet"), "kwire: no message Heartbaet; did you mean Heartbeat"),
        (("--stats", "--doctor"), "Error: --stats or --doctor, not both"),
        (("--only", "evicted"), "Error: --only, --skip and --set belong to --doctor"),
        (("--doctor", "--only", "evict"), "Error: no detector evict; did you mean evicted?"),
        (("--doctor", "--set", "evicted.far=1"), "Error: no threshold evicted.far; evicted has evicted.near"),
        (("--format", "pcap"), "Error: Invalid value for '--format': 'pcap' is not one of 'text', 'json'."),
        (("--host", "no such host"), "Error: no address no such host"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], complaint: str, kwire: Any) -> None:
    ran = kwire("sniff", *arguments)
    assert complaint in ran.err
    assert (ran.out, ran.status) == (b"", Exit.USAGE)


# ---------------------------------------------------------------- real traffic


def _broker(server: socket.socket) -> None:
    """Answers ApiVersions v0 requests, whoever asks, until the server is closed."""
    body = api.encode("ApiVersionsResponse", 0, {"ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}]})
    while True:
        try:
            sock, _ = server.accept()
        except OSError:
            return
        with sock:
            while len(head := exactly(sock, 4)) == 4:
                request = exactly(sock, unpack(">i", head)[0])
                sock.sendall(pack(">i", 4 + len(body)) + request[4:8] + body)


def _ask(port: int, count: int) -> None:
    """So many exchanges on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        for ident in range(count):
            request = pack(">hhih", 18, 0, ident, 5) + b"probe"
            sock.sendall(pack(">i", len(request)) + request)
            exactly(sock, unpack(">i", exactly(sock, 4))[0])


PATIENCE = 120.0  # seconds until what must end has ended


class Sniffed:
    """What kwire sniff said while traffic passed, again and again until it ended."""

    def __init__(self, *arguments: str) -> None:
        server = socket.create_server(("127.0.0.1", 0))
        self.port = server.getsockname()[1]
        threading.Thread(target=_broker, args=(server,), daemon=True).start()
        command = [sys.executable, "-m", "kwire", "sniff", "-i", "lo", "--port", str(self.port), *arguments]
        environment = {**os.environ, "COLUMNS": "120"}
        ran = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        try:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                _ask(self.port, 3)
                try:
                    self.out, self.err = ran.communicate(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    continue
            else:
                pytest.fail("kwire sniff does not end")
        finally:
            ran.kill()
            server.close()
        self.status = ran.returncode


@as_root
def test_traffic_is_shown_and_saved_and_can_be_read_again(tmp_path: Path) -> None:
    target = tmp_path / "live.pcapng"
    ran = Sniffed("--duration", "2s", "-w", str(target), "--format", "json", "--body")
    assert ran.status == Exit.OK, ran.err
    rows = [json.loads(line) for line in ran.out.splitlines()]
    answers = [row for row in rows if row["kind"] == "response" and row["quality"] == "ok"]
    assert len(answers) >= 3
    assert {row["client_id"] for row in answers} == {"probe"}
    assert all(row["body"]["ApiKeys"][0]["ApiKey"] == 18 for row in answers)
    assert all(row["latency_ns"] >= 0 for row in answers)
    assert re.search(r"^kwire: [\d,]+ packets, .*[1-9]\d* exchanges\n$", ran.err)
    again = {
        (each.connection.name, each.correlation_id)
        for each in Reading([target]).exchanges()
        if each.latency is not None
    }
    assert {(row["connection"], row["correlation_id"]) for row in answers} <= again


@as_root
def test_it_ends_after_so_many_exchanges() -> None:
    ran = Sniffed("-c", "4", "--api", "ApiVersions")
    head, *lines = ran.out.splitlines()
    assert head.split()[:3] == ["time", "packet", "client"]
    assert len(lines) == 4
    assert all(re.match(r"\d\d:\d\d:\d\d\.\d{6} +\d+\S* +probe .*ApiVersions v0 ", line) for line in lines)
    assert ran.status == Exit.OK


@as_root
def test_its_tables_are_shown_once_in_a_pipe() -> None:
    ran = Sniffed("--duration", "1s", "--stats")
    assert re.match(r"[\d,]+ exchanges in ", ran.out)
    assert re.search(r"^ApiVersions v0 +\d", ran.out, re.M)
    assert re.search(r"^probe +\d", ran.out, re.M)


@as_root
def test_a_doctor_looks_at_it() -> None:
    ran = Sniffed("--duration", "3s", "--doctor")
    assert re.search(r" UTC · 1 broker · 1 client · [\d,]+ messages · [\d,]+ connections", ran.out)
    assert "looked for and not found\n  acl-denied  " in ran.out
    assert ran.status == Exit.OK


@as_root
def test_what_is_not_wanted_is_not_shown() -> None:
    ran = Sniffed("--duration", "1s", "--api", "Heartbeat")
    assert len(ran.out.splitlines()) == 1
    assert re.search(r", [1-9]\d* exchanges?\nkwire: no API Heartbeat; \d there (is|are): .*\n$", ran.err)
    assert ran.status == Exit.OK
