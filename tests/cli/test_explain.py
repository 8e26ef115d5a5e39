"""kwire explain: its formats and options; what the pages say is tested where they are made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.errors import Exit


def test_the_width_is_that_of_the_terminal(kwire: Any) -> None:
    for columns in (80, 120):
        lines = kwire("explain", "Heartbeat", columns=columns).text.splitlines()
        assert columns - 12 < max(map(len, lines)) <= columns


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["Fetch"], "api_key", 1),
        (["FetchResponse", "-v", "16"], "name", "Fetch"),
        (["27"], "number", 27),
        (["illegal_generation"], "code", 22),
        (["varint"], "type", "varint"),
    ],
)
def test_json(arguments: list[str], key: str, value: object, kwire: Any) -> None:
    assert json.loads(kwire("explain", *arguments, "--format", "json").text)[key] == value


def test_json_of_all_versions_and_of_two(kwire: Any) -> None:
    every = json.loads(kwire("explain", "HeartbeatRequest", "--all", "--format", "json").text)
    assert [page["messages"][0]["version"] for page in every] == [4, 3, 2, 1, 0]
    two = json.loads(kwire("explain", "HeartbeatRequest", "--diff", "1", "3", "--format", "json").text)
    assert [page["messages"][0]["version"] for page in two] == [1, 3]


@pytest.mark.parametrize(("form", "start"), [("svg", "<svg "), ("html", "<!DOCTYPE html>")])
def test_documents(form: str, start: str, kwire: Any) -> None:
    text = kwire("explain", "Heartbeat", "--format", form).text
    assert text.startswith(start)
    assert "<title>Heartbeat v4</title>" in text
    assert "What is Heartbeat?" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["Heartbeat", "--diff", "3", "9"], "no version 9 of HeartbeatRequest (it has 0-4)"),
        (["Heartbeat", "--diff", "3"], "Option '--diff' requires 2 arguments."),
        (["Heartbeat", "-v", "9"], "no version 9 of HeartbeatRequest (it has 0-4)"),
        (["Heartbeat", "--format", "csv"], "'csv' is not one of 'text', 'json', 'svg', 'html'"),
    ],
)
def test_wrong_usage_is_named(arguments: list[str], complaint: str, kwire: Any) -> None:
    ran = kwire("explain", *arguments)
    assert complaint in ran.err
    assert ran.status == Exit.USAGE


def test_versions_may_be_written_with_a_v(kwire: Any) -> None:
    assert kwire("explain", "Heartbeat", "-v", "v3").out == kwire("explain", "Heartbeat", "-v", "3").out
