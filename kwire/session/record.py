"""The message record: one row a message, the same columns wherever messages are listed.

The columns, in order: capture, connection, kind, index, position, time, last_time, size, api_key, api, api_version,
header_version, correlation_id, client_id, error_code, error, errors, latency_ns, quality, note; body on request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kwire.schema.errorcodes import errors
from kwire.session.exchange import TOKEN, Exchange, Message

NONE = "null"


def records(exchange: Exchange) -> Iterator[tuple[Message, dict[str, Any]]]:
    """The exchange's messages with their rows."""
    for message in (exchange.request, exchange.response):
        if message is not None:
            yield message, row(message, exchange)


def row(message: Message, exchange: Exchange) -> dict[str, Any]:
    """A message's row without its body."""
    kind, conversation = message.api, message.conversation
    response = message.kind == "response"
    first = message.errors[0] if message.errors else None
    return {
        "capture": conversation.capture,
        "connection": conversation.name,
        "kind": message.kind,
        "index": message.index,
        "position": message.position,
        "time": message.time,
        "last_time": message.last_time,
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
    """The name of an error code that is not zero; of an unknown one its number."""
    if code is None:
        return None
    known = errors.get(code)
    return known.name if known else f"error {code}"


class Lines:
    """line(message, exchange) is the row as a line of JSON, as json.dumps would write it, several times as fast."""

    def __init__(self) -> None:
        self._texts: dict[str | None, str] = {None: NONE}
        self._kinds: dict[object, tuple[str, str]] = {}

    def _text(self, value: str | None) -> str:
        known = self._texts.get(value)
        if known is None:
            known = json.dumps(value)
            if len(self._texts) < 10_000:
                self._texts[value] = known
        return known

    def line(self, message: Message, exchange: Exchange, body: str | None = None) -> str:
        """body: JSON of the body; None leaves the column out."""
        if message.api is None:
            text = json.dumps(row(message, exchange))
            return text if body is None else f'{text[:-1]}, "body": {body}}}'
        conversation = message.conversation
        head = conversation.json_head
        if head is None:
            head = f'{{"capture": {self._text(conversation.capture)}, "connection": {self._text(conversation.name)}, '
            conversation.json_head = head
        api = self._kinds.get(message.api)
        if api is None:
            kind = message.api
            start = f'"api_key": {kind.key}, "api": {json.dumps(kind.api)}, "api_version": {kind.version}, '
            api = self._kinds[kind] = (
                f'{start}"header_version": {kind.request_header}, "correlation_id": ',
                f'{start}"header_version": {kind.response_header}, "correlation_id": ',
            )
        ident = NONE if message.correlation_id is None else message.correlation_id
        middle = f'{ident}, "client_id": {self._text(message.client_id)}, '
        if message.kind == "request":
            what, texts, latency = api[0], '"error_code": null, "error": null, "errors": 0, ', NONE
        else:
            what, request = api[1], exchange.request
            latency = NONE if request is None else str(message.time - request.last_time)
            found = message.errors
            if found:
                name = self._text(error_name(found[0]))
                texts = f'"error_code": {found[0]}, "error": {name}, "errors": {len(found)}, '
            else:
                texts = '"error_code": null, "error": null, "errors": 0, '
        quality = '"quality": "ok", "note": null'
        if message.quality != "ok" or message.note:
            quality = f'"quality": "{message.quality}", "note": {json.dumps(message.note)}'
        return (
            f'{head}"kind": "{message.kind}", "index": {message.index}, "position": {message.position}, '
            f'"time": {message.time}, "last_time": {message.last_time}, "size": {message.size}, '
            f'{what}{middle}{texts}"latency_ns": {latency}, {quality}{"}" if body is None else f", {_BODY}{body}}}"}'
        )


_BODY = '"body": '
