"""Rows of single exchanges: what the fast path does not read, and all that bodies say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.analyze.clients import Clients
from kwire.analyze.stats import ConnectionRow
from kwire.session.conversation import Conversation
from kwire.session.exchange import Exchange
from kwire.session.record import error_name, records

Row = dict[str, Any]


def message_rows(exchange: Exchange) -> Iterator[Row]:
    """Of the table messages."""
    for _, row in records(exchange):
        yield row


def head_row(exchange: Exchange) -> Row:
    """The columns with which the rows of an exchange begin."""
    first, kind = exchange.first, exchange.first.api
    return {
        "capture": exchange.conversation.capture,
        "connection": exchange.conversation.name,
        "time": exchange.time,
        "api_key": kind.key if kind else None,
        "api": exchange.api if kind or first.token else None,
        "api_version": exchange.api_version,
        "correlation_id": first.correlation_id,
        "client_id": exchange.client_id,
    }


def exchange_row(exchange: Exchange) -> Row:
    """Of the table exchanges."""
    request, response, code = exchange.request, exchange.response, exchange.error
    notes = [message.note for message in (request, response) if message is not None and message.note]
    return head_row(exchange) | {
        "request_index": request.index if request else None,
        "request_size": request.size if request else None,
        "response_index": response.index if response else None,
        "response_size": response.size if response else None,
        "response_time": response.time if response else None,
        "latency_ns": exchange.latency,
        "error_code": code,
        "error": error_name(code),
        "errors": len(response.errors) if response else 0,
        "outcome": outcome(exchange),
        "note": "; ".join(notes) or None,
    }


def outcome(exchange: Exchange) -> str:
    """ok, error, no answer, no answer wanted, orphan."""
    if exchange.response is None:
        return "no answer wanted" if exchange.silent else "no answer"
    if exchange.request is None:
        return "orphan"
    return "ok" if exchange.error is None else "error"


def client_rows(clients: Clients) -> Iterator[Row]:
    """Of the table clients."""
    for client in clients.found:
        row = client.row()
        versions = row.pop("versions")
        row["apis"] = [{"api": api, "versions": found} for api, found in versions.items()]
        row["compressions"] = list(row.pop("compression"))
        yield row


def connection_row(conversation: Conversation, counted: ConnectionRow) -> Row:
    """Of the table connections."""
    identity = conversation.identity
    return {
        "capture": conversation.capture,
        "connection": counted.name,
        "first_time": counted.first_time,
        "last_time": counted.last_time,
        "exchanges": counted.exchanges,
        "what": counted.what,
        "client_id": conversation.client_id,
        "software": identity.software,
        "software_version": identity.software_version,
        "sasl_mechanism": identity.mechanism,
        "principal": identity.principal,
        "missing_bytes": counted.missing,
        "repeated_bytes": counted.repeated,
        "skipped_bytes": counted.skipped,
        "ending": counted.ending,
    }
