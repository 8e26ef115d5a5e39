"""kwire stats: a capture in numbers."""

from __future__ import annotations

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit


@click.command()
@capture_options
@click.option("--all", "everything", is_flag=True, help="All rows, not only the busiest of each table.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="What comes out.")
def command(captures: Captures, everything: bool, output: str) -> Exit:
    """Counts what captures hold: by API and version, client, broker and topic how often, how many bytes, which errors
    and how long the answers took; and the connections that could not be read as they should."""
    from kwire.analyze.stats import Stats
    from kwire.cli.output import show, width
    from kwire.render.jsonform import dumps
    from kwire.render.stats import document, stats_lines

    stats = Stats()
    done = captures.each(stats.add, stats.close, tracking=True)
    if output == "json":
        print(dumps(document(stats)))
    else:
        show(stats_lines(stats, width(), everything))
    return done.conclude(any(quality == "malformed" for quality, _ in stats.oddities))
