"""What every command gets: --color, and --no-pager where output may be long and is not live."""

from __future__ import annotations

import click

from kwire.cli.every_command import PAGED
from kwire.cli.main import cli


def _flags(name: str) -> set[str]:
    found: click.Command = cli
    for word in name.split():
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return {flag for param in found.params for flag in param.opts}


def test_what_may_be_long_is_paged() -> None:
    assert [name for name in PAGED if not {"--no-pager", "--color"} <= _flags(name)] == []


def test_what_is_live_is_not() -> None:
    live = ("sniff", "proxy", "broker", "browse", "walk", "check", "demo", "extcap", "pipeline run")
    assert [name for name in live if "--no-pager" in _flags(name) or "--color" not in _flags(name)] == []
