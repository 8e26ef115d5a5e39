"""Rows that are made one by one: of clients and connections, and the head of what bodies say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.analyze.clients import Clients
from kwire.analyze.stats import ConnectionRow
from kwire.session.connection_info import ConnectionInfo
from kwire.session.exchange import Exchange

Row = dict[str, Any]


def head_row(exchange: Exchange) -> Row:
    """The columns with which the rows of an exchange begin."""
    first, kind = exchange.first, exchange.first.api
    return {
        "capture": exchange.connection.places.of(first.packet)[0] or exchange.connection.capture,
        "connection": exchange.connection.name,
        "time": exchange.time,
        "api_key": kind.key if kind else None,
        "api": exchange.api if kind or first.token else None,
        "api_version": exchange.api_version,
        "correlation_id": first.correlation_id,
        "client_id": exchange.client_id,
    }


def client_rows(clients: Clients) -> Iterator[Row]:
    """Of the table clients."""
    for client in clients.found:
        row = client.row()
        versions = row.pop("versions")
        row["apis"] = [{"api": api, "versions": found} for api, found in versions.items()]
        row["compressions"] = list(row.pop("compression"))
        yield row


def connection_row(connection: ConnectionInfo, counted: ConnectionRow) -> Row:
    """Of the table connections."""
    identity = connection.identity
    return {
        "capture": connection.capture,
        "connection": counted.name,
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
        "missing_bytes": counted.missing,
        "repeated_bytes": counted.repeated,
        "skipped_bytes": counted.skipped,
        "ending": counted.ending,
    }
