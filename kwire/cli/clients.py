"""kwire clients: who speaks in a capture."""

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
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="What comes out.")
@schema_option
def command(
    paths: tuple[str, ...], bounds: Bounds, output: str,
    schema: Path | None, **wanted: Any,
) -> int:  # fmt: skip
    """Names every client of captures: its id, software and version, addresses, login, compression, and which versions
    of which APIs it uses. Connections that speak TLS are listed with the name that they asked for."""
    from kwire.analyze.clients import Clients
    from kwire.cli.output import show, width
    from kwire.render.clients import clients_lines
    from kwire.render.jsonform import dumps
    from kwire.session.reading import Reading

    fewer_collections()
    chosen = selection(lambda: start_of(paths), **wanted)
    clients = Clients()
    progress = Progress(True)
    reading = Reading(
        open_captures(paths), bounds.settings(schema),
        tracking=chosen.needs_about, ended=clients.close, progress=progress,
    )  # fmt: skip
    kafka = interrupted = False
    try:
        for exchange in reading.exchanges():
            kafka = True
            if chosen.holds(exchange):
                clients.add(exchange)
    except KeyboardInterrupt:  # what was found so far is shown
        interrupted = True
    finally:
        progress.stop()
    if output == "json":
        secured = [
            {"address": found.address, "broker": found.broker, "server_name": found.server_name,
             "connections": found.connections, "alerts": dict(found.alerts)}
            for found in clients.secured
        ]  # fmt: skip
        print(dumps({"clients": [client.row() for client in clients.found], "tls": secured}))
    else:
        show(clients_lines(clients, width()))
    if interrupted:
        print("kwire: interrupted: this is what was found until then", file=sys.stderr)
        return Exit.INTERRUPTED
    status = conclude(reading, kafka or bool(clients.secured), False)
    return Exit.NOT_KAFKA if not kafka else status
