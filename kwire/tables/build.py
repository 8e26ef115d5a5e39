"""Fills the tables from captures, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kwire.analyze.client_columns import clients_of
from kwire.analyze.clients import Clients
from kwire.analyze.stats import Stats
from kwire.capture.files import Capture
from kwire.errors import UnknownName
from kwire.schema.keys import FETCH
from kwire.session.batch import ExchangeBatch
from kwire.session.broker_ids import BrokerIds
from kwire.session.connection_info import ConnectionInfo
from kwire.session.decoded import Decoded
from kwire.session.exchange import Exchange, Message
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.session.record import records
from kwire.tables import exchange_columns, group_events, partitions, rows
from kwire.tables.columns import EXCHANGE, JUDGEMENTS
from kwire.tables.held_connections import HeldConnections
from kwire.tables.schemas import COLUMNS, SCHEMAS, Makes, batch_of_rows, plain_batch

if TYPE_CHECKING:
    from kwire.tables.judgements import Judgements

SCANNED = {"partitions", "batches", "group_events", "clients", "connections"}  # that need bodies walked over
BODIED = {"partitions", "batches", "group_events", "clients"}  # tables that need decoded bodies
NAMED = {"partitions", "batches"}  # tables that need topic names
HEAD = {name for name, _, _ in EXCHANGE} | {
    "latency_ns",
    "error_code",
    "error",
}  # the first columns of tables made from bodies
ROWS = 20_000  # rows that are converted to Arrow at a time

Emit = Callable[[str, pa.RecordBatch], None]


class BodyTexts(Protocol):
    """Turns bodies into JSON."""

    def json(self, message: Message) -> str: ...


def tables_of(
    paths: Sequence[str | Path], names: Iterable[str], settings: Settings | None = None, *,
    bodies: BodyTexts | None = None, progress: Callable[[Capture], None] | None = None,
) -> dict[str, pa.Table]:  # fmt: skip
    """These tables of captures as Arrow tables in memory. Raises CaptureError, OSError, UnknownName."""
    wanted = list(dict.fromkeys(names))
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in wanted}
    build(paths, wanted, lambda name, batch: parts[name].append(batch), settings, bodies=bodies, progress=progress)
    return {name: pa.Table.from_batches(found, SCHEMAS[name]) for name, found in parts.items()}


def build(
    paths: Sequence[str | Path], names: Iterable[str], emit: Emit, settings: Settings | None = None, *,
    bodies: BodyTexts | None = None, progress: Callable[[Capture], None] | None = None,
) -> Reading:  # fmt: skip
    """Reads captures in bounded memory and calls emit(table name, rows). Raises CaptureError, OSError, UnknownName."""
    builder = Builder(names, emit, bodies)
    reading = read_into(builder, paths, settings or Settings(), progress)
    builder.finish(reading)
    return reading


def read_into(
    builder: Builder, paths: Sequence[str | Path], settings: Settings,
    progress: Callable[[Capture], None] | None = None,
) -> Reading:  # fmt: skip
    """Reads captures into a builder."""
    reading = into(builder, paths, settings, progress)
    for batch in reading.batches(scans=builder.scans):
        builder.add(batch)
    return reading


def into(
    builder: Builder, paths: Sequence[str | Path], settings: Settings,
    progress: Callable[[Capture], None] | None = None,
) -> Reading:  # fmt: skip
    """A Reading for a builder. Tables keep second recordings of a connection, since rows name their capture; judgements
    count a connection once."""
    return Reading(
        list(paths), settings, tracking=builder.tracking, ended=builder.close, progress=progress,
        apart=not builder.names <= JUDGEMENTS.keys(),
    )  # fmt: skip


class Builder:
    """Takes batches and connections, and emits rows. tracking: whether topic names are needed.

    bodies: makes the JSON of the table bodies, which is empty without it. whole: whether to emit remarks on whole
    captures. columns: make only these, None: all. most: rows from dicts that are converted at a time. scans:
    whether regular bodies must be walked over. exchanges: how many were added. hold: whether rows of connections wait
    until finish() for their brokers' ids. coded: whether texts may come coded (arrow.coded).
    """

    def __init__(
        self, names: Iterable[str], emit: Emit, bodies: BodyTexts | None = None, whole: bool = True,
        columns: Collection[str] | None = None, most: int = ROWS, hold: bool = True, coded: bool = False,
    ) -> None:  # fmt: skip
        self.names = frozenset(names)
        for name in self.names - COLUMNS.keys():
            raise UnknownName("table", name, tuple(COLUMNS))
        self._judged = self.names & JUDGEMENTS.keys()
        self.tracking = bool(self.names & NAMED or self._judged)
        self.scans = (
            bool(self.names & SCANNED or self._judged)
            or columns is None
            or not exchange_columns.JUDGED.isdisjoint(columns)
        )
        self._columns = columns
        self._emit: Emit = emit if coded else lambda name, batch: emit(name, plain_batch(batch))
        self._bodies = bodies
        self._rows: dict[str, list[rows.Row]] = {name: [] for name in self.names}
        self._whole, self._most, self.exchanges = whole, most, 0
        self.clients, self._stats, self.broker_ids = Clients(), Stats(), BrokerIds()
        self._held = HeldConnections(columns) if hold else None
        self._judgements = _judgements(self._judged) if self._judged else None

    def add(self, batch: ExchangeBatch) -> None:
        """Adds exchanges."""
        if len(batch):
            self.decoded(Decoded(batch))

    def decoded(self, decoded: Decoded) -> None:
        """Adds a batch; its decoded bodies are shared with the caller."""
        batch = decoded.batch
        self.exchanges += len(batch)
        if self._judgements is not None:
            self._judgements.add(batch)
        common = exchange_columns.shared(batch)
        if "connections" in self.names:
            self.broker_ids.learn(batch)
        if "messages" in self.names:
            self._emit("messages", exchange_columns.message_batch(batch, self._columns, common))
        if "exchanges" in self.names:
            self._emit("exchanges", exchange_columns.exchange_batch(batch, self._columns, common))
        if self.names & BODIED:
            self._put_bodied(decoded, common)
        if self._bodies is not None:
            for exchange in batch:
                self._put_bodies(exchange)

    def _put_bodied(self, decoded: Decoded, common: Makes) -> None:
        """Emits the rows that come from bodies."""
        batch, columns = decoded.batch, self._columns
        head = exchange_columns.exchange_batch(batch, HEAD if columns is None else HEAD.intersection(columns), common)
        for number, kind in enumerate(batch.kinds):
            if kind is None or not self._asks(kind.key):
                continue
            rows_of = partitions.rows_of if kind.key in partitions.PARTITIONED else group_events.rows_of
            for name, found in rows_of(decoded, number, head, self.names, columns):
                self._emit(name, found)
        if "clients" in self.names:
            self.clients.merge([client for _, client in clients_of(decoded)])

    def _asks(self, key: int) -> bool:
        """Whether bodies of this API are needed for the wanted tables."""
        if key in partitions.PARTITIONED:
            return "partitions" in self.names or ("batches" in self.names and key <= FETCH)
        return "group_events" in self.names and key in group_events.GROUP_TYPES

    def close(self, connection: ConnectionInfo) -> None:
        """Adds a connection that has ended."""
        if self._judgements is not None:
            self._judgements.close(connection)
        if "connections" in self.names:
            self._put("connections", rows.connection_row(connection, self._stats.row_of(connection)))
        if "quality" in self.names and connection.verdict is not None:
            client, broker = connection.ends
            verdict = connection.verdict.verdict
            name = f"{client}>{broker}#{connection.tcp.epoch}"
            self._put("quality", {
                "capture": connection.capture, "connection": name, "time": connection.tcp.first_time,
                "what": "not Kafka", "note": " ".join(filter(None, (verdict.what, verdict.detail))),
            })  # fmt: skip

    def finish(self, reading: Reading, clients: bool = True) -> None:
        """Emits the remaining rows. clients: whether to emit the table clients."""
        if "clients" in self.names and clients and self.clients.found:
            self._emit("clients", client_batch(self.clients, self._columns))
        if "quality" in self.names:
            self._quality(reading)
        for name, row in self._judgements.rows() if self._judgements is not None else ():
            self._put(name, row)
        for name in self.names:
            self._flush(name)
        for batch in self._held.release(self.broker_ids) if self._held is not None else ():
            self._emit("connections", batch)

    def emit(self, name: str, batch: pa.RecordBatch) -> None:
        """Emits rows; those of connections in finish()."""
        if name == "connections" and self._held is not None:
            self._held.add(batch)
        else:
            self._emit(name, batch)

    def _quality(self, reading: Reading) -> None:
        for connection, kind, skipped in reading.take_skipped(None):
            self._put("quality", {
                "capture": connection.capture, "connection": connection.name, "time": skipped.time,
                "what": "skipped", "kind": kind, "position": skipped.position, "bytes": skipped.length,
                "note": skipped.reason,
            })  # fmt: skip
        for capture, what, note in reading.remarks if self._whole else ():
            self.remark(capture, what, note)

    def given_up(self, connection: ConnectionInfo, note: str) -> None:
        """Notes a connection whose rest is not waited for any more."""
        self._put("quality", {
            "capture": connection.capture, "connection": connection.name,
            "time": connection.tcp.last_time, "what": "given up", "note": note,
        })  # fmt: skip

    def remark(self, capture: str, what: str, note: str) -> None:
        """Notes a remark on a whole capture."""
        self._put("quality", {"capture": capture, "what": what, "note": note})

    def _put_bodies(self, exchange: Exchange) -> None:
        assert self._bodies is not None
        for message, row in records(exchange):
            body = self._bodies.json(message)
            if body != "null":
                kept = {name: row[name] for name in ("capture", "connection", "kind", "index", "api", "api_version")}
                self._put("bodies", kept | {"body": body})

    def _put(self, name: str, row: rows.Row) -> None:
        if name not in self._rows:
            return
        self._rows[name].append(row)
        if len(self._rows[name]) >= self._most:
            self._flush(name)

    def _flush(self, name: str) -> None:
        found, self._rows[name] = self._rows[name], []
        if found:
            held = self._held if name == "connections" else None
            self.emit(name, batch_of_rows(name, found, self._columns if held is None else held.columns))


def _judgements(names: Collection[str]) -> Judgements:
    from kwire.tables.judgements import Judgements  # late: imports all detectors

    return Judgements(names)


def client_batch(clients: Clients, columns: Collection[str] | None = None) -> pa.RecordBatch:
    """The table clients."""
    return batch_of_rows("clients", list(rows.client_rows(clients)), columns)
