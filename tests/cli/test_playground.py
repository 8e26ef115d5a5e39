"""The command line inside a page: the same text as in a terminal, with styles, and nothing left behind."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from conftest import ROOT

from kwire.cli.playground import run

FRAMES = ["HeartbeatResponse.v3.rebalance_in_progress", "ProduceRequest.v13", "FetchResponse.v11"]


def _run(arguments: list[str], given: bytes, columns: int = 100) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(json.dumps(arguments), given, columns))
    return answer


def _text(answer: dict[str, Any]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in answer["lines"]) + "\n"


@pytest.mark.parametrize("form", ["text", "tree", "hex", "json"])
@pytest.mark.parametrize("frame", FRAMES)
def test_the_text_of_the_command_line(frame: str, form: str, kwire: Any) -> None:
    data = (ROOT / f"fixtures/frames/{frame}.bin").read_bytes()
    expected = kwire("decode", "--format", form, stdin=data, columns=90)
    answer = _run(["decode", "--format", form], data, 90)
    assert (_text(answer), answer["status"]) == (expected.text, expected.status)
    assert any(style for line in answer["lines"] for _, style in line) == (form != "json")


def test_what_was_before_is_there_again() -> None:
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr, os.environ.get("COLUMNS")
    _run(["decode"], b"00 01")
    assert (sys.argv, sys.stdin, sys.stdout, sys.stderr, os.environ.get("COLUMNS")) == before


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["explain", "Fecth"], 2, "did you mean Fetch"),
        (["nothing"], 2, "no command nothing"),
        (["decode"], 3, "kwire: no bytes"),
    ],
)
def test_complaints(arguments: list[str], status: int, said: str) -> None:
    answer = _run(arguments, b"")
    assert answer["status"] == status
    assert said in answer["said"]


def test_hostile_text_is_spelled() -> None:
    name = "<script>\x1b[31m\u202e".encode()
    frame = b"\0\x12\0\0\0\0\0\1" + len(name).to_bytes(2, "big") + name
    text = _text(_run(["decode", "--as", "ApiVersionsRequest", "-v", "0"], len(frame).to_bytes(4, "big") + frame))
    assert "<script>" in text  # as text: the page never takes it for markup
    assert "\x1b" not in text
    assert "\u202e" not in text
