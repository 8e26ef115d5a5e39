"""README.md and the guide name every command and every option, and what they show is what kwire prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from kwire.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[1]
GUIDE = sorted((ROOT / "kwire" / "guide").glob("*.md"))
FILES = [ROOT / "README.md", *(path for path in GUIDE if path.stem != "commands")]  # it is made of click itself
README = "\n".join(path.read_text("utf-8") for path in FILES)
SECTIONS = re.split(r"^##? ", README, flags=re.MULTILINE)


def _commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


EVERY = list(_commands(cli, "kwire"))
OPTIONS = [
    pytest.param(name, option, id=f"{name} {option}")
    for name, command in EVERY
    for parameter in command.params
    if isinstance(parameter, click.Option)
    for option in (*parameter.opts, *parameter.secondary_opts)
    if option not in ("--color", "--no-pager")  # every command has the one, every one that is not live the other
]


def _section(name: str) -> str:
    """All sections that speak of the command."""
    return "\n".join(section for section in SECTIONS if re.search(rf"{name}\b", section))


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(FILES[0].read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("name", [name for name, _ in EVERY])
def test_every_command_stands_in_the_readme(name: str) -> None:
    assert _section(name)


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_stands_where_its_command_does(name: str, option: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", _section(name))


@pytest.mark.parametrize("parameter", ["input", "format"])
def test_every_choice_of_decode_stands_in_the_readme(parameter: str) -> None:
    decode = dict(EVERY)["kwire decode"]
    (option,) = [known for known in decode.params if f"--{parameter}" in known.opts]
    assert isinstance(option.type, click.Choice)
    assert [choice for choice in option.type.choices if not re.search(rf"\b{choice}\b", _section("kwire decode"))] == []


def test_the_options_of_every_command_stand_in_the_readme() -> None:
    assert "`--no-pager`" in README
    assert all(any("--color" in parameter.opts for parameter in command.params) for _, command in EVERY)
    assert "All commands take `--color auto|always|never`" in README


def test_every_option_of_the_readme_exists() -> None:
    known = {
        option
        for _, command in EVERY
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    named = set(re.findall(r"`(--[a-z-]+)", README)) - {"--help", "--version"}
    assert named - known == set()


def test_every_command_of_the_readme_exists() -> None:
    named = set(
        re.findall(r"\bkwire ([a-z-]+)(?=[^\n]*)", "\n".join(re.findall(r"`kwire [^`]+`|^ +kwire .*$", README, re.M)))
    )
    assert named <= set(COMMANDS)


FENCED = r"^```\n\$ (kwire [^|\n]*)\n(.*?)^```$"
INDENTED = r"^ {4}\$ (kwire [^|\n]*)\n((?:.*\n)+?)(?=\n(?! ))"
SHOWN = [
    pytest.param(match.group(1), match.group(2), id=match.group(1)[:60])
    for pattern, flags in ((FENCED, re.MULTILINE | re.DOTALL), (INDENTED, re.MULTILINE))
    for match in re.finditer(pattern, README, flags)
]


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_what_the_readme_shows_is_what_kwire_prints(command: str, output: str, kwire: Any) -> None:
    printed = kwire(*shlex.split(command)[1:]).text
    assert printed == output
