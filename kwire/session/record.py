"""The message record: one row per message, with the same columns wherever messages are listed.

The columns, in order: capture, connection, kind, index, position, time, last_time, packet, last_packet, size, api_key,
api, api_version, header_version, correlation_id, client_id, error_code, error, errors, latency_ns, quality, note. JSON
adds topics, group, transactional_id and, on request, the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kwire.schema import codes
from kwire.schema.errorcodes import errors
from kwire.session.exchange import TOKEN, Exchange, Message

if TYPE_CHECKING:
    from kwire.session.about import About

START_UP = (  # error codes that are normal when a client starts
    codes.MEMBER_ID_REQUIRED,
    codes.COORDINATOR_LOAD_IN_PROGRESS,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
    codes.CONCURRENT_TRANSACTIONS,
)


def records(exchange: Exchange) -> Iterator[tuple[Message, dict[str, Any]]]:
    """The exchange's messages with their rows."""
    for message in (exchange.request, exchange.response):
        if message is not None:
            yield message, row(message, exchange)


def about_row(about: About) -> dict[str, Any]:
    """The JSON fields topics, group and transactional_id; of several groups or transactions, the first."""
    return {
        "topics": list(about.topics),
        "group": next(iter(about.groups), None),
        "transactional_id": next(iter(about.transactions), None),
    }


def row(message: Message, exchange: Exchange) -> dict[str, Any]:
    """A message's row without its body."""
    kind, connection = message.api, message.connection
    response = message.kind == "response"
    first = message.errors[0] if message.errors else None
    (capture, packet), (_, last_packet) = map(connection.places.of, (message.packet, message.last_packet))
    return {
        "capture": capture or connection.capture,
        "connection": connection.name,
        "kind": message.kind,
        "index": message.index,
        "position": message.position,
        "time": message.time,
        "last_time": message.last_time,
        "packet": packet,
        "last_packet": last_packet,
        "size": message.size,
        "api_key": kind.key if kind else None,
        "api": kind.api if kind else TOKEN if message.token else None,
        "api_version": kind.version if kind else None,
        "header_version": None if kind is None else kind.response_header if response else kind.request_header,
        "correlation_id": message.correlation_id,
        "client_id": message.client_id,
        "error_code": first,
        "error": error_name(first),
        "errors": len(message.errors),
        "latency_ns": exchange.latency if response else None,
        "quality": message.quality,
        "note": message.note,
    }


def error_name(code: int | None) -> str | None:
    """An error code's name, or "error <code>" for an unknown one; None for None."""
    if code is None:
        return None
    known = errors.get(code)
    return known.name if known else f"error {code}"
