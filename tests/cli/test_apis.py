"""kwire apis: every API with its versions, and the columns that fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.schema.registry import builtin


def test_every_api_is_there_in_the_order_of_keys(kwire: Any) -> None:
    rows = json.loads(kwire("apis", "--format", "json").text)
    assert [row["key"] for row in rows] == builtin().keys()
    assert [row["versions"] for row in rows if row["api"] == "Fetch"] == ["0-18"]
    assert [row["brokers"] for row in rows if row["api"] == "LeaderAndIsr"] == ["Kafka 4.0 and later: none, removed"]


def test_what_an_api_does_is_one_sentence(kwire: Any) -> None:
    rows = json.loads(kwire("apis", "--format", "json").text)
    assert [row["api"] for row in rows if not row["what it does"].endswith(".") or "\n" in row["what it does"]] == []


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (80, "key  api                           versions  since   area"),
        (200, "key  api                           versions  flexible  since   area                    what it does"),
    ],
)
def test_the_columns_fit_the_terminal(columns: int, head: str, kwire: Any) -> None:
    lines = kwire("apis", columns=columns).text.splitlines()
    assert " ".join(lines[0].split()) == " ".join(head.split())
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["heartbeat", "classic"], ["Heartbeat"]),
        (["SHAREGROUPHEARTBEAT"], ["ShareGroupHeartbeat"]),
        (["zookeeper"], ["LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"]),
        (["GroupCoordinator"], ["FindCoordinator"]),
    ],
)
def test_words_choose(words: list[str], names: list[str], kwire: Any) -> None:
    assert [row["api"] for row in json.loads(kwire("apis", *words, "--format", "json").text)] == names
