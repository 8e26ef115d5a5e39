"""What commands that write files share: -w and -o as outputs that spare the inputs, --force, and which form a name
tells."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import click

from kwire.errors import OutputError
from kwire.outputs import Output

Command = Callable[..., Any]
PACKETS = {".pcap": "pcap", ".cap": "pcap", ".pcapng": "pcapng"}
ELSEWHERE = frozenset({
    ".json", ".jsonl", ".csv", ".tsv", ".md", ".txt", ".html", ".svg", ".parquet", ".arrow", ".feather", ".orc",
    ".avro", ".xlsx", ".xls", ".ods", ".pdf", ".png", ".pcap", ".pcapng", ".gz", ".zst", ".bz2", ".xz", ".zip",
})  # fmt: skip # endings that promise a form; of others, as of dates and addresses, nobody expects anything
FORCE = "kwire.force"
raw_option = click.option(
    "--raw", is_flag=True,
    help="In CSV, texts as they are: also control characters, and what a spreadsheet takes for a formula.",
)  # fmt: skip


class _File(click.Path):
    """The path of an output, which tells its option from those of inputs."""


def output_option(
    *flags: str, name: str, metavar: str = "FILE", purpose: str, private: bool = False, keeps: bool = False
) -> Callable[[Command], Command]:
    """An option whose file the command gets as an Output, or None: every file that other options and arguments name is
    an input of it. private: as Output has it. keeps: what holds something is overwritten only with --force."""

    def added(command: Command) -> Command:
        @wraps(command)
        def call(*arguments: Any, **given: Any) -> Any:
            path, context = given[name], click.get_current_context()
            if path is not None:
                force = context.meta.get(FORCE, False) if keeps else True
                given[name] = Output(path, inputs=inputs(context), private=private, force=force)
            return command(*arguments, **given)

        known = getattr(call, "__click_params__", [])
        if keeps and not any(parameter.name == "force" for parameter in known):
            call = click.option("--force", is_flag=True, expose_value=False, callback=_remember,
                                help="Overwrite a capture or key log that exists.")(call)  # fmt: skip
        return click.option(*flags, name, type=_File(path_type=Path), metavar=metavar, help=purpose)(call)

    return added


def packets_option(*flags: str, name: str, purpose: str) -> Callable[[Command], Command]:
    """An option for a capture to write: one that exists is kept without --force."""
    return output_option(*flags, name=name, purpose=purpose, private=True, keeps=True)


def _remember(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[FORCE] = value


def inputs(context: click.Context) -> list[str]:
    """All files that the command line names and that are not there to be written: paths, and those behind an @."""
    written = {parameter.name for parameter in context.command.params if isinstance(parameter.type, _File)}
    values = [value for name, value in context.params.items() if name not in written]
    found = []
    for text in _texts(values):
        for path in (text, text[1:] if text.startswith("@") else ""):
            with contextlib.suppress(OSError, ValueError):  # what is no path at all
                if path and os.path.isfile(path):
                    found.append(path)
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def form_of(path: Path, forms: Mapping[str, str], asked: str | None, otherwise: str | None) -> str:
    """The form that a file is written in: the one asked for, else the one that its name's ending tells, else otherwise.
    forms: by ending. Raises OutputError for a name that promises another form."""
    ending = path.suffix.lower()
    told = forms.get(ending)
    if asked is not None and told in (None, asked) and (told or ending not in ELSEWHERE):
        return asked
    if asked is None and told is not None:
        return told
    if asked is None and otherwise is not None and ending not in ELSEWHERE:
        return otherwise
    there = ", ".join(forms)
    if asked is not None:
        raise OutputError(str(path), f"would hold {asked}, not what its name says")
    raise OutputError(str(path), f"no form of this name; there are {there}, and --format tells the form of other names")
