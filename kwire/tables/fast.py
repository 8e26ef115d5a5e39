"""Rows of messages and exchanges from what the fast path read: no object for any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.session.bulk import Batch, Side
from kwire.session.record import error_name
from kwire.tables.arrow import mended, slices
from kwire.tables.schemas import SCHEMAS

Numbers = NDArray[np.int64]


def message_batches(batch: Batch) -> list[pa.RecordBatch]:
    """The rows of the table messages: of all requests, then of all responses."""
    shared, count = _shared(batch), len(batch)
    code, name = _errors(batch)
    kinds = batch.kinds
    out = []
    for side, kind in ((batch.request, "request"), (batch.response, "response")):
        asked = kind == "request"
        headers = [known.request_header if asked else known.response_header for known in kinds]
        columns = shared | _place(side) | {
            "kind": _same(kind, count),
            "header_version": _taken(headers, batch.kind, pa.int8()),
            "error_code": pa.nulls(count, pa.int16()) if asked else code,
            "error": pa.nulls(count, pa.string()) if asked else name,
            "errors": pa.array(np.zeros(count, np.int32) if asked else batch.errors.astype(np.int32)),
            "latency_ns": pa.nulls(count, pa.int64()) if asked else pa.array(_latency(batch)),
            "quality": _same("ok", count),
            "note": pa.nulls(count, pa.string()),
        }  # fmt: skip
        out.append(_record_batch("messages", columns))
    return out


def exchange_batch(batch: Batch) -> pa.RecordBatch:
    """The rows of the table exchanges."""
    count = len(batch)
    code, name = _errors(batch)
    wrong = batch.errors > 0
    columns = _shared(batch) | {
        "time": pa.array(batch.request.time),
        "request_index": pa.array(batch.request.index),
        "request_size": pa.array(batch.request.size.astype(np.int32)),
        "response_index": pa.array(batch.response.index),
        "response_size": pa.array(batch.response.size.astype(np.int32)),
        "response_time": pa.array(batch.response.time),
        "latency_ns": pa.array(_latency(batch)),
        "error_code": code,
        "error": name,
        "errors": pa.array(batch.errors.astype(np.int32)),
        "outcome": _taken(["ok", "error"], wrong.astype(np.int64), pa.string()),
        "note": pa.nulls(count, pa.string()),
    }
    return _record_batch("exchanges", columns)


def _shared(batch: Batch) -> dict[str, pa.Array]:
    """What both messages of an exchange have in common."""
    conversations, kinds = batch.conversations, batch.kinds
    clients = slices(
        batch.buffer, batch.client_start, np.maximum(batch.client_length, 0), batch.client_length >= 0, pa.string()
    )
    return {
        "capture": _taken([mended(known.capture) for known in conversations], batch.conversation, pa.string()),
        "connection": _taken([known.name for known in conversations], batch.conversation, pa.string()),
        "api_key": _taken([kind.key for kind in kinds], batch.kind, pa.int16()),
        "api": _taken([kind.api for kind in kinds], batch.kind, pa.string()),
        "api_version": _taken([kind.version for kind in kinds], batch.kind, pa.int16()),
        "correlation_id": pa.array(batch.correlation_id.astype(np.int32)),
        "client_id": clients,
    }


def _place(side: Side) -> dict[str, pa.Array]:
    return {
        "index": pa.array(side.index),
        "position": pa.array(side.position),
        "time": pa.array(side.time),
        "last_time": pa.array(side.last_time),
        "size": pa.array(side.size.astype(np.int32)),
    }


def _latency(batch: Batch) -> Numbers:
    return batch.response.time - batch.request.last_time


def _errors(batch: Batch) -> tuple[pa.Array, pa.Array]:
    """The code and the name of each first error, null where there is none."""
    codes, which = np.unique(batch.first_error, return_inverse=True)
    none = batch.errors == 0
    names = [error_name(code) for code in codes.tolist()]
    chosen = pa.array(which.astype(np.int64), mask=none)
    return pa.array(batch.first_error.astype(np.int16), mask=none), pa.array(names, pa.string()).take(chosen)


def _taken(values: Sequence[Any], which: Numbers, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind).take(pa.array(which))


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def _record_batch(table: str, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    schema = SCHEMAS[table]
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
