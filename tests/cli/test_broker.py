"""kwire broker as a command: what it prints, what it refuses, and that it ends cleanly."""

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
from click.testing import CliRunner

MAIN = [sys.executable, "-c", "from kwire.cli.main import main; main()", "broker"]
METADATA = pack(">ihhih", 14, 3, 1, 7, -1) + pack(">i", 0)


def refused(*options: str) -> tuple[int, str]:
    done = subprocess.run([*MAIN, *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fault", "Hartbeat:drop"], "kwire: fault Hartbeat:drop: no API Hartbeat; did you mean Heartbeat?"),
        (["--fault", "node=3:drop", "--nodes", "2"], "kwire: fault node=3:drop: there are nodes 1 to 2"),
        (["--port", "65535", "--nodes", "2"], "kwire: no port 65536 for node 2"),
        (["--fault", "Fetch:delya=1s"], "kwire: fault Fetch:delya=1s: no action delya; did you mean delay?"),
        (["--topic", "t:0"], "Error: Invalid value for '--topic': topic t:0: write NAME:PARTITIONS, 1 to 10,000"),
        (["--topic", "a b"], "kwire: topic a b: Topic name is invalid: 1 to 249 of a-z A-Z 0-9 . _ - and not . or .."),
        (["--sasl", "ann"], "Error: Invalid value for '--sasl': write USER:PASSWORD"),
        (["--sasl", "@no-such"], "Error: Invalid value for '--sasl': no-such: No such file or directory"),
        (["--era", "9.9"], "Error: Invalid value for '--era': kwire knows no Kafka 9.9; there are 0.8 to 0.11, "
         "1.0 to 1.1, 2.0 to 2.8, 3.0 to 3.9, 4.0 to 4.4"),
        (["--era", "5.0"], "Error: Invalid value for '--era': kwire knows no Kafka 5.0; there are 0.8 to 0.11, "
         "1.0 to 1.1, 2.0 to 2.8, 3.0 to 3.9, 4.0 to 4.4"),
        (["--node", "x"], "Error: Invalid value for '--node': x: write ID[,port=N][,rack=NAME]"),
        (["--node", "1,rack=a", "--nodes", "3"], "Error: --nodes counts nodes and --node names them: give one of them"),
        (["--ready-file", "/no/such/ready"], "kwire: /no/such/ready: No such file or directory"),
        (["--node", "1,rack=a", "--node", "1"], "kwire: two nodes have the id 1"),
        (["--listener", "HTTP://h:1"], "Error: Invalid value for '--listener': listener HTTP://h:1: write "
         "[NAME=]PROTOCOL://HOST:PORT, with PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (["--listener", "SASL_SSL://127.0.0.1:0"],
         "Error: a listener with SASL needs --sasl, which says who may log in"),
        (["--config", "num.partitions"], "Error: Invalid value for '--config': num.partitions: write NAME=VALUE, as "
         "num.partitions=3"),
        (["--config", "num.partition=3"],
         "kwire: Unknown broker config name: num.partition; did you mean num.partitions?"),
        (["--advertise", "h:x"], "Error: Invalid value for '--advertise': advertise h:x: write HOST:PORT"),
        (["--era", "new"], "Error: Invalid value for '--era': new is no release; write 4.3, 3.9 or 0.11"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(options: list[str], said: str, kwire: Any) -> None:
    ran = kwire("broker", "--port", "0", *options)
    assert (ran.status, ran.err.strip().splitlines()[-1]) == (2, said)


def test_a_taken_port_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = refused("--port", str(port))
    assert found == (2, f"kwire: 127.0.0.1:{port} is taken by another program; --port 0 takes a free one")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_listens_tells_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    capture = tmp_path / "c.pcapng"
    options = ["--port", "0", "--nodes", "2", "--topic", "t:2", "--capture", str(capture)]
    process = subprocess.Popen([*MAIN, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        found = [re.fullmatch(rf"node {n} listens on 127\.0\.0\.1:(\d+)\n", lines[n - 1]) for n in (1, 2)]
        assert all(found)
        assert lines[2] == f"capture in {capture}\n"
        assert found[0] is not None
        with socket.create_connection(("127.0.0.1", int(found[0][1])), 60) as sock:
            sock.sendall(METADATA)
            assert len(sock.recv(4)) == 4
        with socket.create_connection(("127.0.0.1", int(found[0][1])), 60) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n")
            assert sock.recv(1) == b""
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")
    assert "closed" in err
    assert "this is HTTP (GET), not Kafka" in err
    assert err.splitlines()[-1] == "kwire: 1 request"
    assert capture.stat().st_size > 200


def test_text_from_the_wire_is_shown_not_obeyed() -> None:
    process = subprocess.Popen([*MAIN, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        group = b"\x1b[31mred\x1b[0m"
        body = pack(">h", len(group)) + group + pack(">ih8shI", 10_000, 0, b"", 0, 0)[:6]
        frame = pack(">hhih", 11, 0, 7, -1) + body + pack(">h", 8) + b"consumer" + pack(">ih1si", 1, 1, b"r", 0)
        with socket.create_connection(("127.0.0.1", port), 60) as sock:
            sock.sendall(pack(">i", len(frame)) + frame)
            assert len(sock.recv(4)) == 4
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert "\x1b" not in err
    assert "\\x1b[31mred\\x1b[0m" in err


def _serves(said: list[str], env: dict[str, str]) -> list[tuple[str, str]]:
    import click

    from kwire.cli.broker import command

    found: list[tuple[str, str]] = []
    parameter = next(each for each in command.params if each.name == "users")
    only = click.Command("x", params=[parameter], callback=lambda users: found.extend(sum(users, ())))
    CliRunner(env=env).invoke(only, said, catch_exceptions=False, standalone_mode=False)
    return found


def test_who_may_log_in_from_a_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("ann:a word\n\nbob:x:y\n")
    assert _serves(["--sasl", f"@{file}", "--sasl", "eve:z"], {}) == [("ann", "a word"), ("bob", "x:y"), ("eve", "z")]
    assert _serves([], {"KWIRE_SASL": f"carl:a b\n@{file}"})[:2] == [("carl", "a b"), ("ann", "a word")]


@pytest.mark.parametrize(
    ("text", "why"), [(b"ann:a\nsecret\n", "line 2: write USER:PASSWORD"), (b"\xff", "is not UTF-8")]
)
def test_a_file_of_users_that_is_wrong_shows_none(text: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_bytes(text)
    status, said = refused("--port", "0", "--sasl", f"@{file}")
    assert status == 2
    assert said.startswith(f"Error: Invalid value for '--sasl': {file}")
    assert said.endswith(why)
    assert "secret" not in said


def test_a_port_for_all_networks_needs_an_address_that_is_told() -> None:
    status, said = refused("--host", "0.0.0.0", "--port", "0")
    assert status == 2
    assert said.startswith(
        "Error: 0.0.0.0 opens a port to every network of this machine, and anybody there may use the"
    )
    assert "--advertise HOST says under which name clients reach it" in said
    options = [*MAIN, "--host", "0.0.0.0", "--advertise", "localhost", "--port", "0", "--fault", "Hartbeat:drop"]
    done = subprocess.run(options, capture_output=True, text=True, timeout=60)  # ends before anything is opened
    opened = "kwire: 0.0.0.0 opens a port to every network of this machine, and anybody there may use the broker"
    assert done.stderr.splitlines()[0] == opened


def test_programs_learn_when_it_is_ready_and_what_happens(tmp_path: Path) -> None:
    ready, control = tmp_path / "ready.json", tmp_path / "c.sock"
    options = ["--port", "0", "--node", "7", "--ready-file", str(ready), "--events", "json", "--control", str(control)]
    process = subprocess.Popen([*MAIN, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        rows = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [row["kind"] for row in rows] == ["listening", "ready"]
        where = json.loads(ready.read_text())
        assert where == {key: value for key, value in rows[1].items() if key != "kind"}
        assert where["listeners"] == {"PLAINTEXT": where["bootstrap"]}
        assert where["control"] == str(control)
        host, _, port = where["bootstrap"].rpartition(":")
        done = subprocess.run(
            [*MAIN[:-1], "fault", "add", "Metadata:cut", "--control", str(control)], capture_output=True, text=True
        )
        assert done.stdout == "1  Metadata:cut\n" or "Metadata:cut" in done.stdout
        with socket.create_connection((host, int(port)), 60) as sock:
            sock.sendall(METADATA)
            assert sock.recv(4) == b""
        kinds = [json.loads(process.stdout.readline())["kind"] for _ in range(3)]
        assert kinds == ["connected", "fault", "closed"]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert not ready.exists()
    assert not control.exists()
