"""kwire proxy as a command: what it shows, saves and refuses, and that it ends cleanly."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest

import kwire
from kwire.testing import Broker

MAIN = [sys.executable, "-c", "from kwire.cli.main import main; main()", "proxy"]
METADATA = pack(">ihhih", 14, 3, 1, 7, -1) + pack(">i", -1)


def started(*options: str) -> tuple[subprocess.Popen[str], int]:
    """The command and the port that it listens on."""
    command = [*MAIN, *options, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"listening: 127\.0\.0\.1:(\d+) for", line)
        if found:
            return process, int(found[1])
    raise AssertionError("it does not listen")


def ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(METADATA)
        assert sock.recv(1000)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_shows_saves_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    capture = tmp_path / "c.pcapng"
    with Broker() as broker:
        process, port = started(broker.address, "--capture", str(capture), "--format", "json")
        try:
            ask(port)
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
        rows = [json.loads(line) for line in out.splitlines()]
        assert [(row["kind"], row["api"]) for row in rows] == [("request", "Metadata"), ("response", "Metadata")]
        assert rows[0]["connection"].endswith(f">{broker.address}#1")
        assert (process.returncode, err) == (0, "")
    assert [exchange.api for exchange in kwire.read(capture)] == ["Metadata"] * 2


def test_quiet_shows_nothing_and_filters_choose() -> None:
    with Broker() as broker:
        for options, said in ((["-q"], 0), (["--api", "Fetch"], 1), ([], 2)):
            process, port = started(broker.address, *options)
            try:
                ask(port)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=30)
            finally:
                process.kill()
            assert len(out.splitlines()) == said


def test_what_cannot_be_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*MAIN, "b:9092", "--listen", f"127.0.0.1:{port}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"kwire: 127.0.0.1:{port} is taken by another program\n")
    done = subprocess.run([*MAIN, "a b"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.startswith("kwire: a b is no broker's address")) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--certificate", "c.pem"], "--cert and --certificate belong to --tls"),
        (["--insecure"], "--ca, --client-cert and --insecure belong to --upstream-tls"),
        (["--tls", "--key", __file__], "--key belongs to --cert, and --client-key to --client-cert"),
    ],
)
def test_options_that_need_others(options: list[str], said: str) -> None:
    done = subprocess.run([*MAIN, "b:9092", *options], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (2, f"Error: {said}")


def test_tls_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="certificates need it")
    import ssl

    trusted = tmp_path / "proxy.pem"
    with Broker(tls=True) as broker:
        options = ["--tls", "--certificate", str(trusted), "--upstream-tls", "--ca", broker.certificate_file]
        process, port = started(broker.address, *options)
        try:
            plain = socket.create_connection(("127.0.0.1", port), 10)
            with ssl.create_default_context(cafile=str(trusted)).wrap_socket(
                plain, server_hostname="localhost"
            ) as sock:
                sock.sendall(METADATA)
                assert sock.recv(1000)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert "Metadata v1" in out
