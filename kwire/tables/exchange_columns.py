"""Rows of the tables messages and exchanges from a batch, column by column: no object per row, and every column has its
own maker, which runs only if the column is wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.capture.packet_numbers import PacketFiles
from kwire.codec.quality import QUALITIES
from kwire.session.batch import ExchangeBatch, Side
from kwire.session.exchange import TOKEN
from kwire.tables.arrow import chosen, coded, error_names, numbers, slices, take
from kwire.tables.body_columns import BodyColumns
from kwire.tables.schemas import Makes, record_batch

JUDGED = frozenset(
    {"error_code", "error", "errors", "quality", "note", "outcome"}
)  # columns that need the bodies walked over
OUTCOMES = ("ok", "error", "no answer", "no answer wanted", "orphan")
NUMBERS = ("index", "position", "time", "last_time", "packet", "last_packet", "size")

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Names = Collection[str]


def message_batch(batch: ExchangeBatch, columns: Names | None = None, common: Makes | None = None) -> pa.RecordBatch:
    """The rows of the table messages: the request, then the response of each exchange. columns: only these, None: all;
    common: see shared()."""
    sides = (batch.request, batch.response)
    there = np.flatnonzero(_both(*(side.there for side in sides)))
    row, answers = there // 2, there % 2 == 1
    paired = answers & batch.request.there[row]

    def number(name: str) -> Callable[[], pa.Array]:
        kind = pa.int32() if name == "size" else pa.int64()
        return lambda: numbers(_both(*(getattr(side, name) for side in sides))[there], kind)

    def of(make: Callable[[], pa.Array], where: Mask | None = None) -> Callable[[], pa.Array]:
        """A column of exchanges repeated for their messages; null where where is False."""
        return lambda: take(make(), row, where)

    makes = {name: of(make) for name, make in (common or shared(batch)).items()}
    makes |= {name: number(name) for name in NUMBERS}
    places = _places(batch)
    if places is not None:
        packets = {name: _both(*(getattr(side, name) for side in sides))[there] for name in ("packet", "last_packet")}
        files = places.split(packets["packet"])[0]
        makes["capture"] = lambda: chosen(places.names, files, pa.string())
        makes |= {name: partial(numbers, places.split(found)[1], pa.int64()) for name, found in packets.items()}
    headers = [(kind and kind.request_header, kind and kind.response_header) for kind in batch.kinds]
    kind = batch.kind[row] * 2 + answers
    wrong = answers & (batch.errors[row] > 0)
    errors = _errors(batch)
    makes |= {
        "kind": lambda: chosen(("request", "response"), answers, pa.string()),
        "header_version": lambda: chosen([version for both in headers for version in both], kind, pa.int8()),
        "error_code": of(errors["error_code"], wrong),
        "error": of(errors["error"], wrong),
        "errors": lambda: numbers(np.where(answers, batch.errors[row], 0), pa.int32()),
        "latency_ns": lambda: numbers(batch.latency[row], pa.int64(), paired),
        "quality": lambda: chosen(QUALITIES, _both(*(side.quality for side in sides))[there], pa.string()),
        "note": lambda: chosen(batch.texts, _both(*(side.note for side in sides))[there], pa.string()),
    }
    return record_batch("messages", makes, columns)


def exchange_batch(batch: ExchangeBatch, columns: Names | None = None, common: Makes | None = None) -> pa.RecordBatch:
    """The rows of the table exchanges. columns: only these, None: all; common: see shared()."""
    request, response = batch.request, batch.response
    paired = request.there & response.there

    def number(side: Side, name: str) -> Callable[[], pa.Array]:
        kind = pa.int32() if name.endswith("size") else pa.int64()
        return lambda: numbers(getattr(side, name), kind, side.there)

    makes = (common or shared(batch)) | _errors(batch) | BodyColumns(batch).makes | {
        "time": lambda: numbers(batch.time, pa.int64()),
        "request_index": number(request, "index"),
        "request_size": number(request, "size"),
        "request_packet": number(request, "packet"),
        "response_index": number(response, "index"),
        "response_size": number(response, "size"),
        "response_packet": number(response, "packet"),
        "response_time": number(response, "time"),
        "latency_ns": lambda: numbers(batch.latency, pa.int64(), paired),
        "outcome": lambda: chosen(OUTCOMES, outcomes(batch), pa.string()),
        "note": lambda: _notes(batch),
    }  # fmt: skip
    places = _places(batch)
    if places is not None:
        files, first = places.split(batch.packet)
        makes["capture"] = lambda: chosen(places.names, files, pa.string())
        makes["request_packet"] = lambda: numbers(first, pa.int64(), request.there)
        makes["response_packet"] = lambda: numbers(places.split(response.packet)[1], pa.int64(), response.there)
    return record_batch("exchanges", makes, columns)


def shared(batch: ExchangeBatch) -> Makes:
    """Makers of the columns that both tables have in common; each result is cached."""
    connections, kinds, length = batch.connections, batch.kinds, batch.client_length
    makes: Makes = {
        "capture": lambda: chosen([known.capture for known in connections], batch.connection, pa.string()),
        "connection": lambda: chosen([known.name for known in connections], batch.connection, pa.string()),
        "api_key": lambda: chosen([kind and kind.key for kind in kinds], batch.kind, pa.int16()),
        "api": lambda: _apis(batch),
        "api_version": lambda: chosen([kind and kind.version for kind in kinds], batch.kind, pa.int16()),
        "correlation_id": lambda: numbers(batch.correlation_id, pa.int32(), batch.identified),
        "client_id": lambda: coded(
            slices(batch.buffer, batch.client_start, np.maximum(length, 0), length >= 0, pa.string())
        ),
    }  # fmt: skip
    return {name: cache(make) for name, make in makes.items()}


def _places(batch: ExchangeBatch) -> PacketFiles | None:
    """The files of the packets, if captures follow each other as files; all connections of a batch share them."""
    places = batch.connections[0].places if batch.connections else None
    return places if places is not None and len(places.names) > 1 else None


def outcomes(batch: ExchangeBatch) -> Numbers:
    """The outcome of each exchange, an index into OUTCOMES."""
    answered = np.where(batch.request.there, (batch.errors > 0).astype(np.int64), 4)
    return np.where(batch.response.there, answered, np.where(batch.silent, 3, 2))


def _apis(batch: ExchangeBatch) -> pa.Array:
    names = [kind and kind.api for kind in batch.kinds]
    return chosen([*names, TOKEN], np.where(batch.token, len(names), batch.kind), pa.string())


def _errors(batch: ExchangeBatch) -> Makes:
    """Makers of the first error's code and name (null without errors) and of the number of errors."""

    wrong = batch.errors > 0
    return {
        "error_code": lambda: numbers(batch.first_error, pa.int16(), wrong),
        "error": lambda: error_names(batch.first_error, wrong),
        "errors": lambda: numbers(batch.errors, pa.int32()),
    }


def _notes(batch: ExchangeBatch) -> pa.Array:
    """The notes of request and response, joined by "; "."""
    first, second = (side.note for side in (batch.request, batch.response))
    texts = list(batch.texts)
    both: dict[tuple[int, int], int] = {}
    which = np.where(first > 0, first, second)
    for row in np.flatnonzero((first > 0) & (second > 0)).tolist():
        pair = int(first[row]), int(second[row])
        if pair not in both:
            both[pair] = len(texts)
            texts.append(f"{batch.texts[pair[0]]}; {batch.texts[pair[1]]}")
        which[row] = both[pair]
    return chosen(texts, which, pa.string())


def _both(first: Numbers | Mask, second: Numbers | Mask) -> Any:
    """Two columns interleaved: request, response, request, response."""
    return np.stack((first, second), axis=1).reshape(-1)
