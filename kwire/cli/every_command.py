"""What every command gets: --color, JSON in color, help in groups; and --no-pager, where output may be long."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

PAGED = frozenset({
    "apis", "audit", "call", "clients", "decode", "diff", "doctor", "errors", "explain", "groups", "help",
    "pipeline report", "read", "sql", "stats", "table", "trace", "what-if",
})  # fmt: skip # not what is live, or talks
NO_PAGER = "kwire.no_pager"


def finish(command: click.Command, name: str) -> None:
    """Gives them to a command of that name, as "pipeline report", and to those below it."""
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            finish(inner, f"{name} {word}")
        return
    from kwire.cli.help_groups import lay_out

    command.format_options = partial(lay_out, command)  # type: ignore[method-assign]
    command.invoke = partial(_invoke, command, name)  # type: ignore[method-assign]
    if any(param.name == "color" for param in command.params):
        return
    if name in PAGED:
        command.params.append(
            click.Option(
                ["--no-pager"], is_flag=True, expose_value=False, callback=_set_pager,
                help="On a terminal, show what is longer than the screen at once; PAGER names the pager.",
            )
        )  # fmt: skip
    command.params.append(
        click.Option(
            ["--color"], type=click.Choice(["auto", "always", "never"]), default="auto", expose_value=False,
            callback=_set_color, help="auto is a terminal, unless NO_COLOR or FORCE_COLOR is set.",
        )
    )  # fmt: skip


def _invoke(command: click.Command, name: str, ctx: click.Context) -> Any:
    from kwire.cli import pager
    from kwire.cli.json_colors import json_in_color

    if name in PAGED and not ctx.meta.get(NO_PAGER):
        pager.begin()
    with json_in_color(ctx):
        return type(command).invoke(command, ctx)


def _set_pager(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[NO_PAGER] = value


def _set_color(_: click.Context, __: click.Parameter, value: str) -> None:
    from kwire.cli.output import Color

    Color.mode = value
