"""Rows of the tables clients and connections, made one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.analyze.clients import Clients
from kwire.analyze.stats import ConnectionRow
from kwire.session.connection_info import ConnectionInfo

Row = dict[str, Any]


def client_rows(clients: Clients) -> Iterator[Row]:
    """The rows of the table clients."""
    for client in clients.found:
        row = client.row()
        versions = row.pop("versions")
        row["apis"] = [{"api": api, "versions": found} for api, found in versions.items()]
        row["compressions"] = list(row.pop("compression"))
        yield row


def connection_row(connection: ConnectionInfo, counted: ConnectionRow) -> Row:
    """A row of the table connections. counted: its figures from Stats."""
    identity = connection.identity
    return {
        "capture": connection.capture,
        "connection": connection.full_name,
        "first_time": counted.first_time,
        "last_time": counted.last_time,
        "exchanges": counted.exchanges,
        "what": counted.what,
        "handshake_ns": connection.tcp.handshake,
        "client_id": connection.client_id,
        "software": identity.software,
        "software_version": identity.software_version,
        "sasl_mechanism": identity.mechanism,
        "principal": identity.principal,
        "broker_id": None,  # held_connections.py
        "missing_bytes": counted.missing,
        "repeated_bytes": counted.repeated,
        "skipped_bytes": counted.skipped,
        "ending": counted.ending,
    }
