"""How --help lays out a command's options: in groups, the common ones first, then examples. The same groups make the
man pages. An option's group follows from its name, as an option of one name does the same in every command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from kwire.cli.examples import EXAMPLES

FEW = 8  # options up to which one list is enough
OWN = "Options"
GROUPS = {  # in the order in which they are shown, behind a command's own
    "Which exchanges": (
        "--api", "--client-id", "--client", "--broker", "--topic", "--group", "--errors", "--error", "--slower",
        "--from", "--to", "--id", "--connection", "--not", "--settled",
    ),
    "What is shown": (
        "--format", "--all", "--stats", "--diagrams", "--body", "--inner", "--fields", "--elements", "--full",
        "--verbose", "--quiet", "--utc", "--timeline", "--notes", "--show-secrets", "--raw", "--no-pager", "--color",
    ),
    "Connections": ("--port", "--host", "--keylog", "--with-secrets", "--schema"),
    "TLS and login": (
        "--tls", "--ca", "--cert", "--key", "--certificate", "--upstream-tls", "--client-cert", "--client-key",
        "--insecure", "--sasl", "--user", "--password",
    ),
    "Watched by others": ("--metrics", "--metrics-values", "--otlp"),
    "Limits": (
        "--max-frame", "--memory", "--hold", "--inflate", "--jobs", "--timeout", "--capture-limit",
        "--max-connections", "--force", "--sample",
    ),
}  # fmt: skip
ELSEWHERE = {  # options that mean something of their own in some commands
    "--broker": {"proxy"}, "--group": {"walk"}, "--topic": {"walk", "broker"}, "--from": {"walk", "audit"},
    "--to": {"audit"}, "--errors": {"errors"},
}  # fmt: skip
Row = tuple[str, str]


def grouped(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, list[Row]]]:
    """The command's options in groups: each option as it is written, and what it does."""
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option) and not param.hidden]
    rows: dict[str, list[Row]] = {OWN: [], **{name: [] for name in GROUPS}}
    few = len(options) <= FEW
    for option in options:
        record = option.get_help_record(ctx)
        if record is not None:
            rows[OWN if few else group_of(option, ctx.info_name or "")].append(record)
    yield from ((name, found) for name, found in rows.items() if found)


def group_of(option: click.Option, command: str) -> str:
    """The group of a command's option."""
    for name, flags in GROUPS.items():
        for flag in option.opts:
            if flag in flags and command not in ELSEWHERE.get(flag, ()):
                return name
    return OWN


def examples_of(ctx: click.Context) -> Sequence[str]:
    """Lines to type, as "kwire read trouble.pcap --errors"; none where the description has some."""
    return EXAMPLES.get(ctx.info_name or "", ())


def lay_out(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Writes the options, then examples, where the description has none."""
    for name, rows in grouped(command, ctx):
        with formatter.section(name):
            formatter.write_dl(rows)
    lines = examples_of(ctx)
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
