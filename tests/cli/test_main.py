"""The command line's edges: exit statuses, errors as one line, closed pipes, interruptions, odd terminals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from kwire.cli import main as module
from kwire.errors import Exit

ROOT = Path(__file__).parents[2]
KWIRE = [sys.executable, "-m", "kwire"]
FRAME = "fixtures/frames/HeartbeatResponse.v3.bin"
NOTHING = b"neither Kafka nor known"


@pytest.mark.parametrize(
    ("arguments", "stdin", "status"),
    [
        (["--version"], b"", Exit.OK),
        (["explain", "Heartbeat"], b"", Exit.OK),
        (["decode", FRAME], b"", Exit.OK),
        (["decode"], b"0000000b 00000001 00000000 0000 ff", Exit.MALFORMED),
        (["errors", "no", "such", "words"], b"", Exit.MALFORMED),
        (["explain", "NoSuchThing"], b"", Exit.USAGE),
        (["decode", "nowhere.bin"], b"", Exit.USAGE),
        (["decode", "fixtures"], b"", Exit.USAGE),
        (["decode", "--no-such-option"], b"", Exit.USAGE),
        (["encode", "HeartbeatRequest", "-v", "4", "{"], b"", Exit.USAGE),
        (["no-such-command"], b"", Exit.USAGE),
        ([], b"", Exit.USAGE),
        (["decode"], b"GET / HTTP/1.1\r\n\r\n", Exit.NOT_KAFKA),
        (["decode"], NOTHING, Exit.NOT_KAFKA),
        (["decode"], b"", Exit.NOT_KAFKA),
    ],
)
def test_exit_statuses(arguments: list[str], stdin: bytes, status: Exit, kwire: Any) -> None:
    assert kwire(*arguments, stdin=stdin).status == status


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["explain", "Heartbaet"],
            "kwire: no message, error, field, type or detector Heartbaet; did you mean Heartbeat",
        ),
        (["encode", "HeartbeatRequest", "-v", "9", "{}"], "kwire: no version 9 of HeartbeatRequest (it has 0-4)\n"),
        (["encode", "HeartbeatRequest", "-v", "4", "@nowhere"], "kwire: nowhere: No such file or directory\n"),
        (["explain", "a\x1b[31mb"], "kwire: no message, error, field, type or detector a\\x1b[31mb\n"),
    ],
)
def test_errors_are_one_line_without_control_characters(arguments: list[str], complaint: str, kwire: Any) -> None:
    ran = kwire(*arguments)
    assert ran.err.startswith(complaint)
    assert (ran.out, ran.err.count("\n"), ran.status) == (b"", 1, Exit.USAGE)


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), Exit.INTERRUPTED, ""),
        (click.exceptions.Abort(), Exit.INTERRUPTED, ""),
        (OSError("no device"), Exit.USAGE, "kwire: no device\n"),
        (PermissionError(13, "Permission denied", "x.bin"), Exit.USAGE, "kwire: x.bin: Permission denied\n"),
        (
            ZeroDivisionError("oh"),
            Exit.MALFORMED,
            "kwire: a bug in kwire: ZeroDivisionError: oh (KWIRE_DEBUG=1 shows where)\n",
        ),
    ],
)
def test_whatever_is_raised_becomes_a_status(
    raised: BaseException, status: Exit, said: str, kwire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise raised

    monkeypatch.delenv("KWIRE_DEBUG", raising=False)
    monkeypatch.setattr(module.cli, "main", fail)
    ran = kwire("explain", "Heartbeat")
    assert (ran.status, ran.err) == (status, said)


def test_a_bug_shows_where_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setenv("KWIRE_DEBUG", "1")
    monkeypatch.setattr(module.cli, "main", fail)
    with pytest.raises(ZeroDivisionError):
        module.main()


def test_a_closed_pipe_is_no_error() -> None:
    pipe = f"{' '.join(KWIRE)} explain Fetch --all | head -1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", pipe], cwd=ROOT, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        Exit.CLOSED_PIPE,
        "Fetch v18 · api key 1 · versions 0-18\n".encode(),
        b"",
    )


def test_a_pipe_that_is_closed_before_a_complaint() -> None:
    pipe = f"{' '.join(KWIRE)} explain NoSuchThing | true; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", pipe], cwd=ROOT, capture_output=True, check=False)
    assert ran.returncode in (Exit.USAGE, Exit.CLOSED_PIPE)
    assert b"Traceback" not in ran.stderr


def test_an_interruption_ends_quietly() -> None:
    master, slave = os.openpty()
    process = subprocess.Popen(
        [*KWIRE, "decode"], cwd=ROOT, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stderr
        assert process.stderr.readline() == b"kwire: reading bytes from the terminal; end with Ctrl-D\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err.strip()) == (Exit.INTERRUPTED, b"", b"")
    finally:
        process.kill()
        os.close(master)
        os.close(slave)


def test_a_terminal_shows_every_line_in_color() -> None:
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    subprocess.run([*KWIRE, "decode", FRAME], cwd=ROOT, stdout=slave, check=True, env=environment)
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert "\x1b[1mHeartbeatResponse v3\x1b[0m" in shown
    assert "\r\n\x1b[1;36mHeartbeatResponse v3\x1b[0m\r\n" in shown


def test_a_terminal_that_is_not_utf_8_gets_question_marks() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    ran = subprocess.run([*KWIRE, "decode", FRAME], cwd=ROOT, capture_output=True, check=True, env=environment)
    assert ran.stdout.startswith(b"HeartbeatResponse v3 ? 14 bytes ? correlation id 7\n")


def test_commands_are_named_as_their_modules_say() -> None:
    context = click.Context(module.cli)
    assert [name for name in module.COMMANDS if module.cli.get_command(context, name) is None] == []
    assert module.cli.get_command(context, "frobnicate") is None
