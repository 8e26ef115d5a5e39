"""Commands of a report: what is copied into a shell is one command with the arguments that were meant, whatever the
names are."""

from __future__ import annotations

import shlex

import pytest
from hostilenames import NAMES

from kwire.render.report.commands import LONGEST, Commands, typed
from kwire.session.select import fits


@pytest.mark.parametrize("name", [*NAMES, "orders", "a b", "*?[x]", "-x", "a" * 1000])
def test_a_shell_gets_the_arguments_that_were_meant(name: str) -> None:
    command = Commands(["a b.pcap", "$(touch hit).pcap"])("read", ("--topic", name), ("--errors", ""))
    assert "\n" not in command
    words = shlex.split(command)
    assert words[:4] == ["kwire", "read", "a b.pcap", "$(touch hit).pcap"]
    assert words[-1] == "--errors"
    pattern = words[4].removeprefix("--topic=") if len(words) == 6 else words[5]
    assert pattern == typed(name)
    assert fits(name, pattern)


def test_bounds_are_repeated() -> None:
    assert Commands(["x.pcap"], ["--port", "9093"])("stats") == "kwire stats x.pcap --port 9093"


def test_many_captures_are_told_once() -> None:
    made = Commands(["a.pcap", "b c.pcap", "$(d)", "e.pcap"])
    assert made("read", ("--errors", "")) == 'kwire read "${captures[@]}" --errors'
    assert made.definition == "captures=(a.pcap 'b c.pcap' '$(d)' e.pcap)"
    assert Commands(["a.pcap"]).definition == ""


def test_a_long_name_is_told_by_its_beginning() -> None:
    assert len(typed("x" * 100_000)) == LONGEST + 1
