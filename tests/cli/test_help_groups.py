"""--help in groups with examples, and man pages made of the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from kwire.cli.examples import EXAMPLES
from kwire.cli.help_groups import GROUPS, OWN, grouped
from kwire.cli.main import COMMANDS, SECTIONS, cli
from kwire.cli.manpages import pages

ROOT = click.Context(cli, info_name="kwire", **cli.context_settings)


def _command(name: str) -> tuple[click.Command, click.Context]:
    command = cli.get_command(ROOT, name)
    assert command is not None
    return command, click.Context(command, ROOT, info_name=name)


LEAVES = [name for name in COMMANDS if not isinstance(_command(name)[0], click.Group)]


def test_every_command_stands_in_one_section() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS)


def test_the_front_page_begins_with_what_people_do_most(kwire: Any) -> None:
    text = kwire("--help").text
    assert text.index("doctor  ") < text.index("explain  ") < text.index("broker  ")
    assert [section for section in SECTIONS if f"{section}:" not in text] == []


@pytest.mark.parametrize("name", LEAVES)
def test_all_options_are_told_once(name: str) -> None:
    command, context = _command(name)
    told = [flags for _, rows in grouped(command, context) for flags, _ in rows]
    options = [param for param in command.get_params(context) if isinstance(param, click.Option) and not param.hidden]
    assert len(told) == len(options)


def test_common_options_come_before_limits(kwire: Any) -> None:
    text = kwire("read", "--help").text
    places = [text.index(f"{heading}:") for heading in (OWN, *GROUPS) if f"{heading}:" in text]
    assert places == sorted(places)
    assert len(places) >= 4
    assert text.index("--errors") < text.index("--max-frame")


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_examples(name: str, kwire: Any) -> None:
    text = kwire(name, "--help").text
    assert len(re.findall(rf"^\s+(?:\w+ -i )?kwire {name}\b", text, re.MULTILINE)) >= (1 if name == "extcap" else 2)


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_name_options_that_there_are(line: str) -> None:
    words = shlex.split(re.split(r"\s[|<>]\s?", line)[0])
    command, context = _command(words[1])
    known = {flag for param in command.get_params(context) for flag in (*param.opts, *param.secondary_opts)}
    assert [word for word in words[2:] if re.match(r"--?[a-z]", word) and word not in known] == []


def test_man_pages_are_made_of_the_same(tmp_path: Path, kwire: Any) -> None:
    assert kwire("help", "--man", str(tmp_path)).status == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.1" for name, _ in pages(cli)}
    assert {f"kwire-{name}.1" for name in COMMANDS} <= {path.name for path in tmp_path.iterdir()}
    text = (tmp_path / "kwire-read.1").read_text("utf-8")
    assert text.startswith('.TH "KWIRE-READ" "1"')
    assert ".SH WHICH EXCHANGES" in text
    assert "\\-\\-slower TIME" in text
    lines = [line for name, page in pages(cli) for line in page.splitlines()]
    assert {line.split(" ")[0] for line in lines if line.startswith((".", "'"))} <= {
        ".TH", ".SH", ".PP", ".TP", ".nf", ".fi",
    }  # fmt: skip
