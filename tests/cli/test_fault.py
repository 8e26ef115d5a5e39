"""kwire fault against a control socket: what it prints, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kwire.broker import control
from kwire.broker.faults import Faults
from kwire.cli.main import cli


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Those of a program whose socket is answered here."""
    made = Faults()
    verbs = control.fault_verbs(made)
    monkeypatch.setattr(control, "ask", lambda _, asked: json.loads(json.dumps(verbs[asked["do"]](asked))))
    monkeypatch.setenv("KWIRE_CONTROL", "here")
    return made


def fault(*arguments: str) -> tuple[str, str]:
    ran = CliRunner().invoke(cli, ["fault", *arguments])
    assert ran.exception is None, ran.exception
    return ran.stdout, ran.stderr


def test_add_list_clear(faults: Faults) -> None:
    out, err = fault("add", "Fetch:delay=2s", "Heartbeat:error=25")
    assert out == "1  Fetch:delay=2s\n2  Heartbeat:error=25\n"
    assert err.startswith("kwire: fault Heartbeat:error=25: the answer says so")
    faults.rules[0].came, faults.rules[0].met = 12_000, 7
    assert fault("list")[0].splitlines() == [
        "number       came        met  rule",
        "     1     12,000          7  Fetch:delay=2s",
        "     2          0          0  Heartbeat:error=25",
    ]
    assert json.loads(fault("list", "--format", "json")[0].splitlines()[1])["rule"] == "Heartbeat:error=25"
    assert fault("clear", "1") == ("", "kwire: 1 rule cleared\n")
    assert fault("clear") == ("", "kwire: 1 rule cleared\n")
    assert fault("list") == ("", "kwire: no rules\n")


def test_rules_of_which_one_is_wrong_are_not_added(faults: Faults) -> None:
    ran = CliRunner().invoke(cli, ["fault", "add", "Fetch:delay=2s", "Fetch:dely=2s"])
    assert "did you mean delay?" in str(ran.exception)
    assert ran.stdout == ""
    assert faults.rules == []


@pytest.mark.parametrize("arguments", [["fault", "list", "--control", "P"], ["fault", "--control", "P", "list"]])
def test_a_socket_that_is_not_there(tmp_path: Path, arguments: list[str]) -> None:
    path = str(tmp_path / "none")
    ran = CliRunner().invoke(cli, [path if word == "P" else word for word in arguments], env={"KWIRE_CONTROL": "q"})
    assert f"no socket {path}" in str(ran.exception)


def test_without_a_socket() -> None:
    ran = CliRunner().invoke(cli, ["fault", "list"], env={"KWIRE_CONTROL": None})
    assert ran.exit_code == 2
    assert "--control" in ran.stderr
