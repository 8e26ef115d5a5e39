"""Hooks: what they may give, and how their mistakes are told."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.faults import Faults
from kwire.errors import HookFailed

HEARTBEAT = {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}


def failed(socketless: Any, hook: Any) -> str:
    """What the client's connection and the list of failures say."""
    socketless.faults.control("Heartbeat", hook)
    why = socketless.send("Heartbeat", 4, HEARTBEAT)[0].close
    assert [str(error) for error in socketless.faults.failures] == [why]
    return str(why)


def raises(_: Any) -> dict[str, int]:
    return {"ErrorCode": 1 // 0}


def test_a_hook_that_raises_names_its_line(socketless: Any) -> None:
    line = raises.__code__.co_firstlineno + 1
    why = failed(socketless, raises)
    assert why.startswith(f"the hook on Heartbeat at tests/broker/test_hooks.py:{line} raised ZeroDivisionError: ")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"ErorCode": 1}, "gave no answer: HeartbeatResponse v4: ErorCode: no such field in HeartbeatResponse v4; did "
         "you mean ErrorCode?"),
        ({"ErrorCode": "x"}, "gave no answer: HeartbeatResponse v4: ErrorCode: "),
        ({"ErrorCode": 1 << 20}, "gave no answer: HeartbeatResponse v4: ErrorCode: "),
        (7, "gave a int; None, a body or a rule's actions as text are answers"),
        ("eror=1", "gave no rule's actions: fault eror=1: no action eror; did you mean error?"),
    ],
)  # fmt: skip
def test_what_is_no_answer(socketless: Any, said: Any, why: str) -> None:
    assert f" {why}" in failed(socketless, lambda _: said)


def test_fields_of_other_versions_are_left_out(socketless: Any) -> None:
    socketless.faults.control("Heartbeat", lambda _: {"ErrorCode": 27, "ThrottleTimeMs": 5})
    assert socketless.ask("Heartbeat", 0, HEARTBEAT) == {"ErrorCode": 27}
    assert socketless.ask("Heartbeat", 4, HEARTBEAT) == {"ErrorCode": 27, "ThrottleTimeMs": 5}


def test_nested_fields_are_checked_too(socketless: Any) -> None:
    socketless.faults.control("Metadata", lambda _: {"Topics": [{"Name": "t", "Partition": []}]})
    (reply,) = socketless.send("Metadata", 12, {"Topics": None})
    assert "Topics.Partition: no such field in Topics; did you mean Partitions?" in str(reply.close)


def test_a_hook_is_taken_away() -> None:
    faults = Faults()
    with faults.control("any", lambda _: None) as control:
        assert faults.controls == [control]
    control.remove()
    assert faults.controls == []
    assert isinstance(control.failed("x"), HookFailed)
