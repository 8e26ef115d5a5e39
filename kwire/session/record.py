"""The message record: one row a message, the same columns wherever messages are listed.

The columns, in order: capture, connection, kind, index, position, time, last_time, size, api_key, api, api_version,
header_version, correlation_id, client_id, error_code, error, errors, latency_ns, quality, note; body on request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from kwire.schema.errorcodes import errors
from kwire.session.exchange import TOKEN, Exchange, Message
from kwire.session.single import exchange_at

if TYPE_CHECKING:
    from kwire.schema.model import Message as Definition
    from kwire.session.bulk import Batch
    from kwire.session.conversation import Conversation
    from kwire.session.kinds import Kind

REMEMBERED = 10_000  # texts whose JSON is kept


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


NONE = "null"
NO_ERROR = '"error_code": null, "error": null, "errors": 0, '
FINE = '"quality": "ok", "note": null'
END = "}\n"
UTF8 = ("utf-8", "surrogateescape")


class BodyTexts(Protocol):
    """Bodies as JSON. plain: that nothing in messages of the definition is withheld or opened, unless their records
    are not bare."""

    def json(self, message: Message) -> str: ...

    def plain(self, definition: Definition) -> bool: ...

    def bare(self, definition: Definition, data: bytes, start: int, end: int) -> bool: ...


class Lines:
    """Rows as lines of JSON, as json.dumps would write them, several times as fast; with bodies, if they are given."""

    scans = True

    def __init__(self, bodies: BodyTexts | None = None) -> None:
        self._bodies = bodies
        self._texts: dict[str | None, str] = {None: NONE}
        self._kinds: dict[Kind, tuple[str, str]] = {}

    def line(self, message: Message, exchange: Exchange, body: str | None = None) -> str:
        """The row of a message. body: JSON of the body; None leaves the column out."""
        behind = "}" if body is None else f', "body": {body}}}'
        if message.api is None:
            return json.dumps(row(message, exchange))[:-1] + behind
        request = exchange.request
        answers = message.kind == "response"
        what = self._kind(message.api)[answers]
        ident = NONE if message.correlation_id is None else message.correlation_id
        latency = message.time - request.last_time if answers and request is not None else NONE
        error = self._error(message.errors[0], len(message.errors)) if message.errors else NO_ERROR
        quality = FINE
        if message.quality != "ok" or message.note:
            quality = f'"quality": "{message.quality}", "note": {json.dumps(message.note)}'
        return (
            f'{self._head(message.conversation)}"kind": "{message.kind}", "index": {message.index}, '
            f'"position": {message.position}, "time": {message.time}, "last_time": {message.last_time}, '
            f'"size": {message.size}, {what}{ident}, "client_id": {self._text(message.client_id)}, {error}'
            f'"latency_ns": {latency}, {quality}{behind}'
        )

    def body(self, message: Message) -> str | None:
        """The message's body as JSON; None when rows have no bodies."""
        return None if self._bodies is None else self._bodies.json(message)

    def accepts(self, kind: Kind) -> bool:
        """Whether the rows of a kind can be written from the bytes alone."""
        request, response = kind.request, kind.response
        if self._bodies is None or request is None or response is None:
            return self._bodies is None
        return self._bodies.plain(request) and self._bodies.plain(response)

    def batch(self, batch: Batch) -> Iterator[tuple[int, int, str]]:
        """The rows of both messages of each exchange of the fast path, with the first one's time and packet."""
        buffer = batch.buffer
        heads = [self._head(conversation) for conversation in batch.conversations]
        kinds = [self._kind(kind) for kind in batch.kinds]
        errors: dict[tuple[int, int], str] = {(0, 0): NO_ERROR}
        clients: dict[bytes, str] = {}
        request, response = batch.request, batch.response
        columns = (
            batch.conversation, batch.kind, batch.correlation_id, batch.client_start, batch.client_length,
            batch.asked, batch.answered, batch.first_error, batch.errors, request.packet,
            request.index, request.position, request.time, request.last_time, request.size,
            response.index, response.position, response.time, response.last_time, response.size,
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (
            owner,
            kind,
            ident,
            start,
            length,
            asked_at,
            answered_at,
            first,
            count,
            packet,
            i1,
            p1,
            t1,
            l1,
            s1,
            i2,
            p2,
            t2,
            l2,
            s2,
        ) in enumerate(rows):
            client = NONE
            if length >= 0:
                name = buffer[start : start + length]
                client = clients.get(name) or clients.setdefault(name, json.dumps(name.decode(*UTF8)))
            error = errors.get((first, count))
            if error is None:
                error = errors[first, count] = self._error(first, count)
            ends = self._ends(batch, row, kind, asked_at, answered_at)
            head, (asked, answered), who = heads[owner], kinds[kind], f'{ident}, "client_id": {client}, '
            yield (
                t1,
                packet,
                f'{head}"kind": "request", "index": {i1}, "position": {p1}, "time": {t1}, "last_time": {l1}, "size": '
                f'{s1}, {asked}{who}{NO_ERROR}"latency_ns": null, {FINE}{ends[0]}'
                f'{head}"kind": "response", "index": {i2}, "position": {p2}, "time": {t2}, "last_time": {l2}, "size": '
                f'{s2}, {answered}{who}{error}"latency_ns": {t2 - l1}, {FINE}{ends[1]}',
            )

    def _ends(self, batch: Batch, row: int, kind: int, asked: int, answered: int) -> tuple[str, str]:
        """The ends of both rows: their bodies, where there are to be any."""
        bodies = self._bodies
        if bodies is None:
            return END, END
        asks, answers = batch.kinds[kind].request, batch.kinds[kind].response
        request, response = batch.kinds[kind].codecs
        assert asks is not None
        assert answers is not None
        body, body_end = request.json_at(batch.buffer, asked)
        answer, answer_end = response.json_at(batch.buffer, answered)
        fine = bodies.bare(asks, batch.buffer, asked, body_end)
        if not (fine and bodies.bare(answers, batch.buffer, answered, answer_end)):
            exchange = exchange_at(batch, row)
            assert exchange.request is not None
            assert exchange.response is not None
            body, answer = bodies.json(exchange.request), bodies.json(exchange.response)
        return f', "body": {body}}}\n', f', "body": {answer}}}\n'

    def _text(self, value: str | None) -> str:
        known = self._texts.get(value)
        if known is None:
            known = json.dumps(value)
            if len(self._texts) < REMEMBERED:
                self._texts[value] = known
        return known

    def _head(self, conversation: Conversation) -> str:
        """The beginning of all rows of a connection."""
        if conversation.json_head is None:
            capture, name = self._text(conversation.capture), json.dumps(conversation.name)
            conversation.json_head = f'{{"capture": {capture}, "connection": {name}, '
        return conversation.json_head

    def _kind(self, kind: Kind) -> tuple[str, str]:
        """The columns of an API's requests and responses, up to the correlation id."""
        known = self._kinds.get(kind)
        if known is None:
            start = f'"api_key": {kind.key}, "api": {json.dumps(kind.api)}, "api_version": {kind.version}, '
            known = self._kinds[kind] = (
                f'{start}"header_version": {kind.request_header}, "correlation_id": ',
                f'{start}"header_version": {kind.response_header}, "correlation_id": ',
            )
        return known

    def _error(self, first: int, count: int) -> str:
        return f'"error_code": {first}, "error": {self._text(error_name(first))}, "errors": {count}, '
