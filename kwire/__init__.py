"""kwire shows what Kafka says on the wire. This page is the public Python API; everything else may change.

Names are those of the official messages ("FetchResponse"); older names work too. A message is a dict of the official
field names, first letter a capital: int, float, bool, str, bytes, uuid.UUID, None, lists and dicts. Of a version's
fields all are present; a tagged one is present exactly when it is on the wire; unknown tagged fields stand under
"_tagged" as {tag: bytes}. Whatever is raised on purpose is a KwireError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.errors import (
    CaptureError,
    DecodeError,
    EncodeError,
    KwireError,
    OutputError,
    QueryError,
    SchemaError,
    UnknownName,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from kwire.analyze.findings import Finding
    from kwire.codec.frames import Frame
    from kwire.codec.span import Span
    from kwire.records import Batches
    from kwire.render.page import Page
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange
    from kwire.session.session import Session
    from kwire.tables.stream import CaptureTables
from kwire.schema.errorcodes import errors

__all__ = [
    "CaptureError",
    "CaptureTables",
    "ConnectionInfo",
    "DecodeError",
    "EncodeError",
    "Exchange",
    "ExchangeBatch",
    "Finding",
    "Frame",
    "KwireError",
    "OutputError",
    "Page",
    "QueryError",
    "SchemaError",
    "Session",
    "Span",
    "UnknownName",
    "annotate",
    "decode",
    "decode_frame",
    "diagnose",
    "encode",
    "errors",
    "explain",
    "open",
    "read",
    "read_batches",
    "read_records",
    "to_arrow",
    "to_pandas",
    "to_polars",
]
__version__ = "0.1.0"

_LATE = {  # classes that are imported when they are asked for, since numpy comes with them
    "CaptureTables": "kwire.tables.stream", "ConnectionInfo": "kwire.session.connection_info",
    "Exchange": "kwire.session.exchange", "ExchangeBatch": "kwire.session.batch", "Finding": "kwire.analyze.findings",
    "Frame": "kwire.codec.frames", "Page": "kwire.render.page", "Session": "kwire.session.session",
    "Span": "kwire.codec.span",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'kwire' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)


Bytes = bytes | bytearray | memoryview


def decode(name: str, version: int, data: Bytes) -> dict[str, Any]:
    """A message's body from its bytes, all of which must be used. Raises DecodeError, UnknownName."""
    from kwire.codec.library import builtin_library

    return builtin_library().codec(name, version).decode(data)


def encode(name: str, version: int, message: dict[str, Any]) -> bytes:
    """A message's body as bytes; fields that are missing get their defaults. Raises EncodeError, UnknownName."""
    from kwire.codec.library import builtin_library

    return builtin_library().codec(name, version).encode(message)


def annotate(name: str, version: int, data: Bytes) -> Span:
    """The span tree of a message's body: every byte accounted for. Bad bytes end in an undecoded span, never in an
    exception. Raises UnknownName."""
    from kwire.codec.annotate import annotate
    from kwire.codec.library import builtin_library

    return annotate(builtin_library().plan(name, version), memoryview(data))


def decode_frame(data: Bytes, *, api: str | int | None = None, version: int | None = None) -> Frame:
    """A frame: header and body, with or without its size prefix. Without api it is a request; with api and version,
    the response to such a request. Raises UnknownName; for bad bytes see the frame's quality and note."""
    from kwire.codec.frames import decode_frame

    return decode_frame(data, api=api, version=version)


def read(path: str | Path, *, ports: Iterable[int] = (), **filters: Any) -> Iterator[Exchange]:
    """A capture's exchanges in time order; path is a pcap or pcapng, maybe gzip or zstd, "-" is stdin.

    ports: only these, which are brokers'. filters, one value or several: api, client_id, client, broker, topic, group,
    id (correlation id), connection, error; errors=True; settled=True, without errors of a start; slower, start and end
    in ns; unless=[{"api": "Fetch"}], without what fits. An exchange has request and response (either may be None) with
    time (ns), size, data, errors and body(), and latency (ns), error, about. Raises CaptureError, OSError, UnknownName.
    """
    return (exchange for batch in read_batches(path, ports=ports, **filters) for exchange in batch)


def read_batches(*paths: str | Path, ports: Iterable[int] = (), **filters: Any) -> Iterator[ExchangeBatch]:
    """The same exchanges many at a time: numpy columns, a row an exchange, as batch.latency (ns), batch.errors and
    batch.request.time; batch[i] is an Exchange. Several captures are read as one. ports, filters and what is raised: as
    read has it."""
    from kwire.session.reader import Settings
    from kwire.session.reading import Reading
    from kwire.session.select import Selection

    chosen = Selection.of(**filters)
    reading = Reading(paths, Settings(frozenset(ports)), tracking=True)
    wanted = (chosen.wanted(batch, tracking=True) for batch in reading.batches())
    return (batch for batch in wanted if len(batch))


def diagnose(*paths: str | Path, ports: Iterable[int] = (), detectors: Iterable[str] = ()) -> Iterator[Finding]:
    """What is wrong in captures, worst first, as kwire doctor finds it. detectors: only these (kwire doctor --list has
    their names); ports: as read has it. A finding has detector, severity ("error", "warning", "note"), text, about,
    evidence (packets) and advice. Raises CaptureError, OSError, and KwireError for a detector that there is not."""
    from kwire.analyze.doctor import Doctor, chosen
    from kwire.session.reader import Settings
    from kwire.session.reading import Reading

    doctor = Doctor(chosen(detectors, ()))
    reading = Reading(paths, Settings(frozenset(ports)), tracking=True, ended=doctor.close)
    for batch in reading.batches():
        doctor.add(batch)
    return iter(doctor.diagnose().gathered().findings)


def open(*paths: str | Path) -> CaptureTables:
    """Captures as tables that DuckDB, Polars, pandas and pyarrow read as Arrow streams, without a file and in bounded
    memory: the object itself is the table messages, table(name) another one; each use reads the captures anew. Needs
    kwire[table]. Raises UnknownName for a table, CaptureError and OSError while it is read.

        duckdb.sql("select api, count(*) from capture group by 1")   # behind: capture = kwire.open("night.pcap")
        polars.DataFrame(kwire.open("night.pcap").table("exchanges"))
    """
    from kwire.render.bodies import BodyRenderer
    from kwire.tables.stream import CaptureTables

    return CaptureTables(paths, bodies=BodyRenderer())


def to_arrow(path: str | Path, table: str = "messages", *, stream: bool = False) -> Any:
    """A table of a capture as a pyarrow.Table, or as a pyarrow.RecordBatchReader, which never holds more than a part of
    it; kwire table --columns tells which there are. Needs kwire[table]. Raises CaptureError, OSError, UnknownName."""
    reader = open(path).table(table).reader()
    return reader if stream else reader.read_all()


def to_pandas(path: str | Path, table: str = "messages") -> Any:
    """The same as a pandas.DataFrame."""
    return to_arrow(path, table).to_pandas()


def to_polars(path: str | Path, table: str = "messages") -> Any:
    """The same as a polars.DataFrame."""
    import polars

    return polars.from_arrow(to_arrow(path, table))


def read_records(data: Bytes, total: int = 256 << 20) -> Batches:
    """The record batches in data (magic 0 to 2, every compression), a list; a cut last one is left out and counted in
    its truncated_bytes. total bounds what all of them may decompress to, bytes, the objects of their records counted:
    a batch beyond that has no records, and a note. Raises DecodeError."""
    from kwire.records import read_records

    return read_records(data, total=total)


def explain(name: str, version: int | None = None) -> Page:
    """The reference page of a message at a version (None: the newest). Raises UnknownName."""
    from kwire.render.page import page_of

    return page_of(name, version)
