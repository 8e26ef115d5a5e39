"""guide/commands.md is what click says of every command and option: `pytest --rewrite tests/guide` writes it anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kwire import guide
from kwire.cli.help_groups import grouped
from kwire.cli.main import SECTIONS, cli

PAGE = Path(guide.__file__).with_name("commands.md")
OPENING = """# Commands and options

All of them, as `kwire COMMAND --help` tells them too. What they are for is in the other pages. This page is made from
the commands themselves.
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _command(command: click.Command, context: click.Context, name: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from _command(inner, click.Context(inner, context, info_name=word), f"{name} {word}")
        return
    yield f"\n### {name}\n"
    yield f"`{name} {' '.join(command.collect_usage_pieces(context))}`\n"
    yield f"{_cell((command.help or '').partition(chr(8))[0])}\n"
    yield "| option | what |"
    yield "|---|---|"
    for _, rows in grouped(command, context):
        yield from (f"| `{_cell(flags)}` | {_cell(what)} |" for flags, what in rows if "--help" not in flags)


def made() -> str:
    root = click.Context(cli, info_name="kwire", **cli.context_settings)
    lines = [OPENING]
    for heading, names in SECTIONS.items():
        lines.append(f"## {heading}" if heading == next(iter(SECTIONS)) else f"\n## {heading}")
        for name in names:
            command = cli.get_command(root, name)
            assert command is not None
            lines += _command(command, click.Context(command, root, info_name=name), f"kwire {name}")
    return "\n".join(lines) + "\n"


def test_the_page_of_commands_is_what_click_says(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        PAGE.write_text(made(), "utf-8")
    assert PAGE.read_text("utf-8") == made()
