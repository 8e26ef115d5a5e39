"""kwire stats: a capture in numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kwire.cli.captures import (
    Bounds,
    Progress,
    conclude,
    connection_options,
    exchange_options,
    fewer_collections,
    open_captures,
    selection,
    start_of,
)  # fmt: skip
from kwire.cli.options import schema_option
from kwire.errors import Exit


@click.command()
@click.argument("paths", metavar="CAPTURE...", nargs=-1, required=True)
@connection_options
@exchange_options
@click.option("--all", "everything", is_flag=True, help="All rows, not only the busiest of each table.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="What comes out.")
@schema_option
def command(
    paths: tuple[str, ...], bounds: Bounds, everything: bool,
    output: str, schema: Path | None, **wanted: Any,
) -> int:  # fmt: skip
    """Counts what captures hold: by API and version, client, broker and topic how often, how many bytes, which errors
    and how long the answers took; and the connections that could not be read as they should."""
    from kwire.analyze.stats import Stats
    from kwire.cli.output import show, width
    from kwire.render.jsonform import dumps
    from kwire.render.stats import document, stats_lines
    from kwire.session.reading import Reading

    fewer_collections()
    chosen = selection(lambda: start_of(paths), **wanted)
    stats = Stats()
    progress = Progress(True)
    reading = Reading(
        open_captures(paths), bounds.settings(schema),
        tracking=True, ended=stats.close, progress=progress,
    )  # fmt: skip
    kafka = interrupted = False
    try:
        for exchange in reading.exchanges():
            kafka = True
            _ = exchange.about  # an incremental fetch builds on all before it
            if chosen.holds(exchange):
                stats.add(exchange)
    except KeyboardInterrupt:  # what was found so far is shown
        interrupted = True
    finally:
        progress.stop()
    if output == "json":
        print(dumps(document(stats)))
    else:
        show(stats_lines(stats, width(), everything))
    if interrupted:
        print("kwire: interrupted: this is what was found until then", file=sys.stderr)
        return Exit.INTERRUPTED
    malformed = any(quality == "malformed" for quality, _ in stats.oddities)
    return conclude(reading, kafka, malformed)
