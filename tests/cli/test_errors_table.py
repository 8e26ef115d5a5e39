"""kwire errors: every error code, its words, and which of them are chosen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.schema.errorcodes import errors


def test_every_error_is_there(kwire: Any) -> None:
    rows = json.loads(kwire("errors", "--format", "json").text)
    assert [(row["code"], row["name"], row["retriable"]) for row in rows] == [
        (error.code, error.name, error.retriable) for error in errors
    ]


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_table_fits_the_terminal(columns: int, kwire: Any) -> None:
    assert max(map(len, kwire("errors", columns=columns).text.splitlines())) <= columns


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["27"], ["REBALANCE_IN_PROGRESS"]),
        (["illegal", "generation"], ["ILLEGAL_GENERATION"]),
        (["NOT_LEADER_FOR_PARTITION"], ["NOT_LEADER_OR_FOLLOWER"]),
    ],
)
def test_words_choose(words: list[str], names: list[str], kwire: Any) -> None:
    assert [row["name"] for row in json.loads(kwire("errors", *words, "--format", "json").text)] == names
