"""kwire demo: the story happens, and what is shown of it is what happened."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kwire as api
from kwire.cli import demo
from kwire.cli.main import COMMANDS

TURNS = [
    "a broker listens on 127.0.0.1:",
    "billing-1 joins group billing; it is alone and gets 4 partitions",
    "the broker refuses the first batch (a fault on purpose), and the producer retries",
    "billing-2 joins: the group rebalances; now 2 partitions and 2 partitions",
    "billing-2 is stopped",
    "its session timeout of 2,000 ms is over: it is evicted, billing-1 gets 4 partitions",
    "billing-2 is back and sends a heartbeat: UNKNOWN_MEMBER_ID",
    "it joins anew",
    "both leave",
    "$ kwire read {kept} --errors --api Produce --api Heartbeat",
    "NOT_LEADER_OR_FOLLOWER",
    "UNKNOWN_MEMBER_ID",
    "$ kwire decode {kept} --frame ",
    "25 UNKNOWN_MEMBER_ID",
    "$ kwire groups {kept}",
    "more questions",
]


def test_the_demo_shows_what_happened(kwire: Callable[..., Any], tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    ran = kwire("demo", "-w", str(kept), columns=200)
    assert (ran.status, "Traceback" in ran.err) == (0, False)
    at = 0
    for turn in TURNS:
        at = ran.text.index(turn.replace("{kept}", str(kept)), at)
    assert re.search(r"error +billing-2: UNKNOWN_MEMBER_ID at [\d.]+ \(Heartbeat, check 7: member\): evicted", ran.text)
    refused = [each.error for each in api.read(kept, api="Produce")]
    assert refused == [6, None, None, None, None]
    recommended = re.findall(r"^\$ kwire (.*)$", ran.text[at:], re.M)
    assert [line.split()[0] for line in recommended] == ["stats", "clients", "trace", "sql", "explain"]
    for line in recommended:
        assert kwire(*shlex.split(line)).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["kept.pcapng"]


def test_it_recommends_only_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == "duckdb" else name)
    assert list(demo._more(False, "demo.pcapng")) == [
        "kwire demo -w demo.pcapng",
        "kwire stats demo.pcapng",
        "kwire clients demo.pcapng",
        "kwire trace demo.pcapng",
        "kwire explain UNKNOWN_MEMBER_ID",
    ]


def test_a_capture_has_no_place_in_the_story(kwire: Callable[..., Any]) -> None:
    assert "the capture needs a file" in kwire("demo", "-w", "-").err


def test_turns_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    demo._turn(1.25, "word " * 40)
    lines = capsys.readouterr().out.splitlines()
    assert (max(map(len, lines)) <= 80, lines[0][:14], lines[1][:14]) == (True, "   1.2 s  word", "          word")


def test_its_length_is_said_once() -> None:
    said = f"{demo.command.help} {COMMANDS['demo'][1]}"
    assert re.findall(r"\w+ seconds", said) == ["seven seconds"]
