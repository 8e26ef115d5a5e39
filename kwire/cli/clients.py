"""kwire clients: who speaks in a capture."""

from __future__ import annotations

import click

from kwire.cli.captures import Captures, capture_options
from kwire.errors import Exit


@click.command()
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
@capture_options
def command(captures: Captures, output: str) -> Exit:
    """Names every client of captures: its id, software and version, addresses, login, compression, and which versions
    of which APIs it uses. Connections that speak TLS are listed with the name that they asked for."""
    from kwire.analyze.clients import Clients
    from kwire.cli.output import show, width
    from kwire.render.clients import clients_lines
    from kwire.render.jsonform import dumps

    clients = Clients()
    done = captures.each_batch(clients.add, clients.close)
    if output == "json":
        secured = [
            {"address": found.address, "broker": found.broker, "server_name": found.server_name,
             "connections": found.connections, "refused": found.refused, "alerts": dict(found.alerts),
             "facts": dict(found.facts), "findings": dict(found.findings)}
            for found in clients.secured
        ]  # fmt: skip
        print(dumps({"clients": [client.row() for client in clients.found], "tls": secured}))
    else:
        show(clients_lines(clients, width()))
    return done.conclude(foreign=bool(clients.secured))
