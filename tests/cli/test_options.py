"""Names and versions as arguments: what they take, and what they complete to."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from kwire.cli.main import COMMANDS, cli
from kwire.cli.options import Version, library
from kwire.codec.library import builtin_library


def _completions(words: list[str], incomplete: str) -> list[str]:
    completer = ShellComplete(cli, {}, "kwire", "_KWIRE_COMPLETE")
    return [item.value for item in completer.get_completions(words, incomplete)]


@pytest.mark.parametrize(
    ("words", "incomplete", "some"),
    [
        ([], "", list(COMMANDS)),
        ([], "s", ["sniff", "stats", "sql", "schema", "site"]),
        (["read", "--api"], "SyncG", ["SyncGroup", "SyncGroupRequest", "SyncGroupResponse"]),
        (["read", "--format"], "p", ["pcap", "pcapng"]),
        (["explain"], "Heartb", ["Heartbeat", "HeartbeatRequest", "HeartbeatResponse"]),
        (["explain"], "heartb", ["Heartbeat", "HeartbeatRequest", "HeartbeatResponse"]),
        (["explain"], "ILLEGAL_", ["ILLEGAL_SASL_STATE", "ILLEGAL_GENERATION"]),
        (["encode"], "ILLEGAL_", []),
        (["encode", "HeartbeatRequest", "-v"], "", ["0", "1", "2", "3", "4"]),
        (["explain", "Fetch", "-v"], "1", ["1", "10", "11", "12", "13", "14", "15", "16", "17", "18"]),
        (["explain", "NoSuchThing", "-v"], "", []),
        (["decode", "--as"], "SyncG", ["SyncGroup", "SyncGroupRequest", "SyncGroupResponse"]),
        (["decode", "--as", "SyncGroupResponse", "-v"], "", ["0", "1", "2", "3", "4", "5"]),
        (["decode", "--format"], "t", ["text", "tree"]),
    ],
)
def test_completion(words: list[str], incomplete: str, some: list[str]) -> None:
    assert sorted(_completions(words, incomplete)) == sorted(some)


@pytest.mark.parametrize(("given", "version"), [("4", 4), ("v4", 4), (4, 4), ("0", 0)])
def test_versions(given: Any, version: int) -> None:
    assert Version().convert(given, None, None) == version


@pytest.mark.parametrize("given", ["", "x", "-1", "4.0", "v", "²"])
def test_what_is_no_version(given: str) -> None:
    with pytest.raises(click.BadParameter, match=f"{given} is not a version"):
        Version().convert(given, None, None)


def test_without_a_schema_the_library_is_the_builtin_one() -> None:
    assert library(None) is builtin_library()
