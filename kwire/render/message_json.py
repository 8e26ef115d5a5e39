"""The message record as lines of JSON: those of a batch from its columns, as json.dumps would write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.session.about_columns import abouts_of
from kwire.session.record import about_row, error_name, records

if TYPE_CHECKING:
    from kwire.codec.values import Codec
    from kwire.render.bodies import BodyRenderer
    from kwire.schema.model import MessageSchema
    from kwire.session.api_versions import Kind
    from kwire.session.batch import ExchangeBatch, Side
    from kwire.wire.columns import Ints

REMEMBERED = 10_000  # texts whose JSON is kept
TOGETHER = 256  # exchanges of a text without bodies
NO_ERROR = '"error_code": null, "error": null, "errors": 0, '
FINE = '"quality": "ok", "note": null'


class _Api(NamedTuple):
    """What is the same for all exchanges of a kind: the columns of its requests and responses up to the correlation id;
    codecs: those of the bodies, with their definitions, where nothing in them is withheld but records may be."""

    request: str
    response: str
    codecs: tuple[tuple[MessageSchema, Codec], tuple[MessageSchema, Codec]] | None


class MessageLines:
    """of(batch) gives the lines of its messages; with bodies, if they are given."""

    def __init__(self, bodies: BodyRenderer | None = None) -> None:
        self._bodies = bodies
        self._texts: dict[str | None, str] = {None: "null"}
        self._apis: dict[Kind | None, _Api] = {}

    def of(self, batch: ExchangeBatch) -> Iterator[str]:
        """The lines in order, as texts of many lines; with bodies, which may be long, a text for each exchange."""
        texts = self._texts_of(batch)
        if self._bodies is not None:
            yield from texts
        while text := "".join(islice(texts, TOGETHER)):
            yield text

    def _texts_of(self, batch: ExchangeBatch) -> Iterator[str]:
        """A text for each exchange, of one line or two."""
        request, response = batch.request, batch.response
        plain = batch.identified & request.there & (request.quality + request.note == 0)
        plain &= (response.quality == 0) & ~batch.token
        for number, kind in enumerate(batch.kinds):
            if kind is None:
                plain &= batch.kind != number
        if self._bodies is not None:
            plain &= response.note == 0  # a note may say that the body is of another version
        if any(len(at.places.names) > 1 for at in batch.connections):
            plain[:] = False  # each message has a file of its own
        owners = [
            f'{{"capture": {self._text(at.capture)}, "connection": {quoted(at.name)}, "kind": "'
            for at in batch.connections
        ]
        asking, answering = ([f'{at}{kind}", "index": ' for at in owners] for kind in ("request", "response"))
        apis = [self._api(kind) for kind in batch.kinds]
        names, client_of = batch.client_ids()
        clients = [f', "client_id": {self._text(name)}, ' for name in names]
        found = abouts_of(batch)
        abouts = [f"{FINE}, {json.dumps(about_row(value))[1:-1]}" for value in found.values]
        ends = [f"{about}}}\n" for about in abouts]
        errors: dict[tuple[int, int], str] = {}
        columns = (
            plain, response.there, batch.connection, batch.kind, batch.correlation_id, client_of, batch.first_error,
            batch.errors, batch.latency, response.note, found.which,
        )  # fmt: skip
        for row, (
            (fine, answered, owner, kind_at, ident, client, first, count, latency, note, place),
            (i1, p1, t1, l1, n1, m1, s1), (i2, p2, t2, l2, n2, m2, s2),
        ) in enumerate(zip(_rows(columns), _numbers(request), _numbers(response), strict=True)):  # fmt: skip
            if not fine:
                yield self._odd(batch, row)
                continue
            api, who = apis[kind_at], f"{ident}{clients[client]}"
            if self._bodies is None:
                asked_end = answered_end = ends[place]
            else:
                asked_end, answered_end = (abouts[place] + end for end in self._ends(batch, row, api))
            line = (
                f'{asking[owner]}{i1}, "position": {p1}, "time": {t1}, "last_time": {l1}, '
                f'"packet": {n1}, "last_packet": {m1}, "size": {s1}, {api.request}{who}{NO_ERROR}"latency_ns": null, '
                f"{asked_end}"
            )
            if not answered:
                yield line
                continue
            error = NO_ERROR
            if count:
                error = errors.get((first, count)) or errors.setdefault((first, count), self._error(first, count))
            if note:
                answered_end = f'"quality": "ok", "note": {self._text(batch.texts[note])}{answered_end[len(FINE) :]}'
            yield (
                f'{line}{answering[owner]}{i2}, "position": {p2}, "time": {t2}, "last_time": {l2}, '
                f'"packet": {n2}, "last_packet": {m2}, "size": {s2}, {api.response}{who}{error}'
                f'"latency_ns": {latency}, {answered_end}'
            )

    def _ends(self, batch: ExchangeBatch, row: int, api: _Api) -> tuple[str, str]:
        """The ends of both lines: their bodies."""
        assert self._bodies is not None
        texts = []
        for turn, start in enumerate((int(batch.request.body[row]), int(batch.response.body[row]))):
            text = "null" if start < 0 else None
            if text is None and api.codecs is not None:
                definition, codec = api.codecs[turn]
                text, end = codec.json_at(batch.buffer, start)
                if not self._bodies.bare(definition, batch.buffer, start, end):
                    text = None
            if text is None:
                exchange = batch[row]
                message = exchange.response if turn else exchange.request
                text = "null" if message is None else self._bodies.json(message)
            texts.append(f', "body": {text}}}\n')
        return texts[0], texts[1]

    def _odd(self, batch: ExchangeBatch, row: int) -> str:
        """What is rare, by way of the record."""
        lines = []
        exchange = batch[row]
        for message, record in records(exchange):
            text = json.dumps(record | about_row(exchange.about))
            body = None if self._bodies is None else self._bodies.json(message)
            lines.append(f"{text}\n" if body is None else f'{text[:-1]}, "body": {body}}}\n')
        return "".join(lines)

    def _text(self, value: str | None) -> str:
        known = self._texts.get(value)
        if known is None:
            known = json.dumps(value)
            if len(self._texts) < REMEMBERED:
                self._texts[value] = known
        return known

    def _api(self, kind: Kind | None) -> _Api:
        known = self._apis.get(kind)
        if known is None:
            known = self._apis[kind] = _Api("", "", None) if kind is None else self._of_kind(kind)
        return known

    def _of_kind(self, kind: Kind) -> _Api:
        start = f'"api_key": {kind.key}, "api": {json.dumps(kind.api)}, "api_version": {kind.version}, '
        sides = (kind.request, kind.response)
        plain = self._bodies is not None and all(side and self._bodies.plain(side) for side in sides)
        return _Api(
            f'{start}"header_version": {kind.request_header}, "correlation_id": ',
            f'{start}"header_version": {kind.response_header}, "correlation_id": ',
            _codecs(kind) if plain and kind.supported else None,
        )

    def _error(self, first: int, count: int) -> str:
        return f'"error_code": {first}, "error": {self._text(error_name(first))}, "errors": {count}, '


def _codecs(kind: Kind) -> tuple[tuple[MessageSchema, Codec], tuple[MessageSchema, Codec]]:
    assert kind.request is not None
    assert kind.response is not None
    return (kind.request, kind.codecs[0]), (kind.response, kind.codecs[1])


def _rows(columns: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _numbers(side: Side) -> Iterator[tuple[object, ...]]:
    """For each message its index, position, times, packets and size."""
    times = _both(side.time, side.last_time)
    packets = _both(side.packet, side.last_packet)
    return zip(side.index.tolist(), side.position.tolist(), *times, *packets, side.size.tolist(), strict=True)


def _both(first: Ints, last: Ints) -> tuple[list[str], list[str]]:
    """Both columns as texts: they are mostly equal, and a long number's text takes time."""
    firsts = list(map(str, first.tolist()))
    lasts = firsts.copy()
    for row in (first != last).nonzero()[0].tolist():
        lasts[row] = str(last[row])
    return firsts, lasts
