"""kwire explain: the reference."""

from __future__ import annotations

from pathlib import Path

import click

from kwire.cli.options import Name, Version, WithCodes, library, schema_option
from kwire.errors import Exit

FORMATS = ("text", "json", "svg", "html")


@click.command(cls=WithCodes)
@click.argument("names", metavar="NAME|WORDS", type=Name(), nargs=-1, required=True)
@click.option("-v", "--version", type=Version(), help="The version; the newest otherwise.")
@click.option("--all", "every", is_flag=True, help="Every version, one after the other.")
@click.option("--diff", type=(Version(), Version()), metavar="A B", help="Two versions side by side.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="The output format.")
@schema_option
def command(
    names: tuple[str, ...],
    version: int | None,
    every: bool,
    diff: tuple[int, int] | None,
    form: str,
    schema: Path | None,
) -> int:
    """Explains NAME: a message (FetchResponse), an API (Fetch) or its key, an error code (27, ILLEGAL_GENERATION), a
    field (Fetch.IsolationLevel), a type (varint) or a detector of kwire doctor (acl-denied); keylog says how to read
    what TLS encrypts. Old names lead to the same pages. WORDS that are no name lead to the pages that have them:
    rebalance, too large."""
    from kwire.cli.output import export, show, width
    from kwire.render.jsonform import dumps
    from kwire.render.lookup import look_up

    answer = look_up(" ".join(names), library(schema), version, every, diff)
    if form == "json":
        print(dumps(answer.to_json()))
    elif form in ("svg", "html"):
        print(export(answer.lines(100), form, answer.title))
    else:
        show(answer.lines(width()))
    return Exit.OK
