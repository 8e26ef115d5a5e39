"""Rows of messages and exchanges from what the fast path read: no object for any of them, and no column that nobody
asked for: each is made by a function of its own, when its name is among the wanted ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.session.bulk import Batch, Side
from kwire.session.record import error_name
from kwire.tables.arrow import mended, slices
from kwire.tables.schemas import schema_of

JUDGED = frozenset({"error_code", "error", "errors", "quality", "note", "outcome"})  # columns that rest on the bodies

Numbers = NDArray[np.int64]
Names = Collection[str]
Makes = dict[str, Callable[[], pa.Array]]


def message_batches(
    batch: Batch, columns: Names | None = None, common: Makes | None = None
) -> list[pa.RecordBatch]:  # fmt: skip
    """The rows of the table messages: of all requests, then of all responses. columns: only these, None: all; common:
    see shared()."""
    both, count = common or shared(batch), len(batch)
    request = both | _place(batch.request) | {
        "kind": lambda: _same("request", count),
        "header_version": lambda: _taken([kind.request_header for kind in batch.kinds], batch.kind, pa.int8()),
        "error_code": lambda: pa.nulls(count, pa.int16()),
        "error": lambda: pa.nulls(count, pa.string()),
        "errors": lambda: pa.array(np.zeros(count, np.int32)),
        "latency_ns": lambda: pa.nulls(count, pa.int64()),
    }  # fmt: skip
    response = (
        both
        | _place(batch.response)
        | {
            "kind": lambda: _same("response", count),
            "header_version": lambda: _taken([kind.response_header for kind in batch.kinds], batch.kind, pa.int8()),
        }
    )
    return [_record_batch("messages", makes, columns) for makes in (request, response)]


def exchange_batch(batch: Batch, columns: Names | None = None, common: Makes | None = None) -> pa.RecordBatch:
    """The rows of the table exchanges. columns: only these, None: all; common: see shared()."""
    request, response = batch.request, batch.response
    makes = (common or shared(batch)) | {
        "time": lambda: pa.array(request.time),
        "request_index": lambda: pa.array(request.index),
        "request_size": lambda: pa.array(request.size.astype(np.int32)),
        "response_index": lambda: pa.array(response.index),
        "response_size": lambda: pa.array(response.size.astype(np.int32)),
        "response_time": lambda: pa.array(response.time),
        "outcome": lambda: _taken(["ok", "error"], (batch.errors > 0).astype(np.int64), pa.string()),
    }  # fmt: skip
    return _record_batch("exchanges", makes, columns)


def shared(batch: Batch) -> Makes:
    """Columns that the rows of both tables have in common, each made once."""
    conversations, kinds, length = batch.conversations, batch.kinds, batch.client_length
    makes: Makes = _errors(batch) | {
        "latency_ns": lambda: pa.array(batch.response.time - batch.request.last_time),
        "capture": lambda: _taken([mended(known.capture) for known in conversations], batch.conversation, pa.string()),
        "connection": lambda: _taken([known.name for known in conversations], batch.conversation, pa.string()),
        "api_key": lambda: _taken([kind.key for kind in kinds], batch.kind, pa.int16()),
        "api": lambda: _taken([kind.api for kind in kinds], batch.kind, pa.string()),
        "api_version": lambda: _taken([kind.version for kind in kinds], batch.kind, pa.int16()),
        "correlation_id": lambda: pa.array(batch.correlation_id.astype(np.int32)),
        "client_id": lambda: slices(
            batch.buffer, batch.client_start, np.maximum(length, 0), length >= 0, pa.string()
        ),
        "quality": lambda: _same("ok", len(batch)),
        "note": lambda: pa.nulls(len(batch), pa.string()),
    }  # fmt: skip
    return {name: cache(make) for name, make in makes.items()}


def _place(side: Side) -> Makes:
    return {
        "index": lambda: pa.array(side.index),
        "position": lambda: pa.array(side.position),
        "time": lambda: pa.array(side.time),
        "last_time": lambda: pa.array(side.last_time),
        "size": lambda: pa.array(side.size.astype(np.int32)),
    }


def _errors(batch: Batch) -> Makes:
    """The code and the name of each first error, null where there is none, and how many there are."""

    def name() -> pa.Array:
        wrong = batch.errors > 0
        codes, which = np.unique(batch.first_error[wrong], return_inverse=True)
        chosen = np.zeros(len(batch), np.int64)
        chosen[wrong] = which
        names = [error_name(code) for code in codes.tolist()] or [None]
        return pa.array(names, pa.string()).take(pa.array(chosen, mask=~wrong))

    return {
        "error_code": lambda: pa.array(batch.first_error.astype(np.int16), mask=batch.errors == 0),
        "error": name,
        "errors": lambda: pa.array(batch.errors.astype(np.int32)),
    }


def _taken(values: Sequence[Any], which: Numbers, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind).take(pa.array(which))


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def _record_batch(table: str, makes: Makes, columns: Names | None) -> pa.RecordBatch:
    schema = schema_of(table, columns)
    return pa.RecordBatch.from_arrays([makes[name]() for name in schema.names], schema=schema)
