"""Man pages, made from what --help is made of: a page for kwire and one for each command, in roff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from kwire import __version__
from kwire.cli.help_groups import examples_of, grouped

SECTION = 1


def write(root: click.Group, folder: Path) -> list[Path]:
    """The pages of a group of commands, as files. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in pages(root):
        path = folder / f"{name}.{SECTION}"
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def pages(root: click.Group) -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    context = click.Context(root, info_name="kwire", **root.context_settings)  # click keeps the help option made first
    yield "kwire", _page(root, context, "kwire")
    yield from _below(root, context, "kwire")


def _below(group: click.Group, context: click.Context, name: str) -> Iterator[tuple[str, str]]:
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, context, info_name=word)
        yield f"{name}-{word}", _page(command, inner, f"{name} {word}")
        if isinstance(command, click.Group):
            yield from _below(command, inner, f"{name}-{word}")


def _page(command: click.Command, context: click.Context, name: str) -> str:
    """One page."""
    text = (command.help or "").strip()
    first = re.split(r"(?<=[.:])\s", text.replace("\n", " "), maxsplit=1)[0].rstrip(".:")
    usage = " ".join(command.collect_usage_pieces(context))
    title = name.replace(" ", "-")
    out = [
        f'.TH "{title.upper()}" "{SECTION}" "" "kwire {__version__}" "kwire"', ".SH NAME",
        f"{_roff(title)} \\- {_roff(first)}", ".SH SYNOPSIS", f"\\fB{_roff(name)}\\fR {_roff(usage)}",
        ".SH DESCRIPTION", *_description(text),
    ]  # fmt: skip
    if isinstance(command, click.Group):
        out.append(".SH COMMANDS")
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            if inner is not None:
                out += [".TP", f"\\fB{_roff(word)}\\fR", _roff(inner.get_short_help_str(200))]
    for heading, rows in grouped(command, context):
        out.append(f".SH {_roff(heading.upper())}")
        for flags, what in rows:
            out += [".TP", f"\\fB{_roff(flags)}\\fR", _roff(what) or "\\&"]
    lines = examples_of(context)
    if lines:
        out += [".SH EXAMPLES", ".nf", *map(_roff, lines), ".fi"]
    out += [".SH SEE ALSO", "\\fBkwire help\\fR lists the guide's pages."]
    return "\n".join(out) + "\n"


def _description(text: str) -> Iterator[str]:
    """Paragraphs; those behind a \\b keep their lines, as click has it."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text)):
        lines = [line.strip() for line in paragraph.splitlines()]
        if number:
            yield ".PP"
        if lines and lines[0] == "\b":
            yield ".nf"
            yield from map(_roff, lines[1:])
            yield ".fi"
        else:
            yield _roff(" ".join(lines))


def _roff(text: str) -> str:
    """Text as roff shows it: no request and no escape of its own."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)
