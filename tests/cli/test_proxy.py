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
from typing import Any

import pytest

import kwire
from kwire.cli.proxy import SHOWN, shown_settings
from kwire.proxy.tap import Feed, Tap
from kwire.session.reader import Reader
from kwire.testing import Broker

MAIN = [sys.executable, "-c", "from kwire.cli.main import main; main()", "proxy"]
METADATA = pack(">ihhih", 14, 3, 1, 7, -1) + pack(">i", -1)
ONE_TOPIC = pack(">ihhih", 17, 3, 1, 7, -1) + pack(">ih1s", 1, 1, b"t")


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


def ask(port: int, frame: bytes = METADATA) -> None:
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.sendall(frame)
        assert sock.recv(1000)


def test_frames_that_never_end_are_shown_up_to_a_limit() -> None:
    """Many connections, each with the beginning of a frame."""
    feed, reader = Feed(), Reader("proxy", shown_settings())
    sides = [Tap(None, feed, True, 1 << 27).begin(("10.0.0.7", port), None, None, ("10.0.0.2", 9092))[0]
             for port in range(1, 13)]  # fmt: skip
    most = 0
    for number in range(10):
        for side in sides:
            side.came((pack(">ihhih", 100 << 20, 0, 9, 7, -1) if not number else b"") + bytes(1 << 20))
            reader.feed(next(feed.blocks()))
            most = max(most, reader.waiting_cost)
    assert SHOWN // 2 < most <= SHOWN


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_shows_saves_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    capture = tmp_path / "c.pcapng"
    with Broker() as broker:
        process, port = started(broker.address, "--capture", str(capture), "--format", "json")
        try:
            ask(port)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        rows = [json.loads(line) for line in out.splitlines()]
        assert [(row["kind"], row["api"]) for row in rows] == [("request", "Metadata"), ("response", "Metadata")]
        assert rows[0]["connection"].endswith(f">{broker.address}#1")
        assert (process.returncode, err) == (0, "")
    assert [exchange.api for exchange in kwire.read(capture)] == ["Metadata"] * 2


@pytest.mark.slow
def test_quiet_shows_nothing_and_filters_choose() -> None:
    with Broker() as broker:
        for options, said in ((["-q"], 0), (["--api", "Fetch"], 1), ([], 2)):
            process, port = started(broker.address, *options)
            try:
                ask(port)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=60)
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
        (["--stats", "--doctor"], "one of --stats, --doctor and --quiet"),
        (["--set", "evicted.near=0.5"], "--only, --skip and --set belong to --doctor"),
        (["--doctor", "--skip", "evict"], "no detector evict; did you mean evicted?"),
        (["--certificate", "c.pem"], "--cert and --certificate belong to --tls"),
        (["--keylog", "k"], "--keylog belongs to --tls or --upstream-tls"),
        (["--insecure"], "--ca, --client-cert and --insecure belong to --upstream-tls"),
        (["--tls", "--key", __file__], "--key belongs to --cert, and --client-key to --client-cert"),
    ],
)
def test_options_that_need_others(options: list[str], said: str, kwire: Any) -> None:
    ran = kwire("proxy", "b:9092", *options)
    assert (ran.status, ran.err.strip().splitlines()[-1]) == (2, f"Error: {said}")


@pytest.mark.slow
def test_tls_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="certificates need it")
    import ssl

    trusted = tmp_path / "proxy.pem"
    with Broker(tls=True) as broker:
        options = ["--tls", "--certificate", str(trusted), "--upstream-tls", "--ca", broker.certificate_file]
        process, port = started(broker.address, *options)
        try:
            plain = socket.create_connection(("127.0.0.1", port), 60)
            with ssl.create_default_context(cafile=str(trusted)).wrap_socket(
                plain, server_hostname="localhost"
            ) as sock:
                sock.sendall(METADATA)
                assert sock.recv(1000)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "Metadata v1" in out


@pytest.mark.slow
def test_faults_from_the_start_and_while_it_runs(tmp_path: Path) -> None:
    control = tmp_path / "c"
    with Broker() as broker:
        process, port = started(broker.address, "--fault", "Metadata:throttle=2s,times=1", "--control", str(control))
        try:
            ask(port)
            fault = [*MAIN[:-1], "fault"]
            done = subprocess.run([*fault, "list", "--control", str(control)], capture_output=True, text=True)
            assert done.stdout.splitlines()[1].split() == ["1", "1", "1", "Metadata:throttle=2s,times=1"]
            subprocess.run([*fault, "add", "topic=t:error=7", "--control", str(control)], check=True)
            ask(port, ONE_TOPIC)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "REQUEST_TIMED_OUT" in out
    assert re.sub(r"127\.0\.0\.1:\d+", "X", err).splitlines() == [
        "kwire: fault: X Metadata: Metadata:throttle=2s,times=1",
        "kwire: fault: X Metadata: topic=t:error=7",
    ]
    assert not control.exists()


@pytest.mark.slow
def test_the_secrets_of_both_sides(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="certificates need it")
    import ssl

    trusted, log = tmp_path / "proxy.pem", tmp_path / "keys"
    with Broker(tls=True) as broker:
        options = ["--tls", "--certificate", str(trusted), "--upstream-tls", "--ca", broker.certificate_file]
        process, port = started(broker.address, *options, "--keylog", str(log))
        try:
            plain = socket.create_connection(("127.0.0.1", port), 60)
            with ssl.create_default_context(cafile=str(trusted)).wrap_socket(
                plain, server_hostname="localhost"
            ) as sock:
                sock.sendall(METADATA)
                assert sock.recv(1000)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        finally:
            process.kill()
    lines = [line.split() for line in log.read_text().splitlines() if not line.startswith("#")]
    assert len({random for label, random, _ in lines if label == "CLIENT_TRAFFIC_SECRET_0"}) == 2
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_what_the_doctor_finds_comes_at_the_end() -> None:
    with Broker() as broker:
        process, port = started(
            broker.address, "--doctor", "--fault", "topic=t:error=TOPIC_AUTHORIZATION_FAILED", "--skip", "evicted"
        )  # fmt: skip
        try:
            ask(port, ONE_TOPIC)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "may not Describe topic t" in out
    assert "\n  poll-timeout " in out
    assert "\n  evicted " not in out
    assert process.returncode == 1


@pytest.mark.slow
def test_nobody_needs_to_read_what_is_said_beside() -> None:
    """Each frame that is refused is a line on stderr, which nobody reads here: a pipe holds some 700 of these."""
    with Broker() as broker:
        process, port = started(broker.address, "-q")
        try:
            for _ in range(1500):
                with socket.create_connection(("127.0.0.1", port), 30) as sock:
                    sock.sendall(pack(">i", -1))
                    assert sock.recv(1) == b""
            ask(port)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.communicate()
    assert err.count("refused") == 1500


def test_a_broker_that_stays_away_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = closed.getsockname()[1]
    process, port = started(f"127.0.0.1:{away}", "-q")
    try:
        for _ in range(20):
            with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", port), 60) as sock:
                sock.recv(1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    lines = [line for line in err.splitlines() if "unreachable" in line]
    assert len(lines) == 2
    assert lines[1].endswith("(19 more times)")
