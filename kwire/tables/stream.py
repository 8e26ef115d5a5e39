"""A capture's tables as Arrow streams: batches are made as they are consumed, so memory stays bounded.

Whatever speaks the Arrow C stream interface (DuckDB, Polars, pandas, pyarrow) takes them without a file in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from kwire.errors import UnknownName
from kwire.session.reader import Settings
from kwire.tables.build import BodyTexts, Builder, into
from kwire.tables.columns import COLUMNS
from kwire.tables.schemas import SCHEMAS


class TableStream:
    """One table of captures. Each use reads the captures again and may raise CaptureError, OSError."""

    def __init__(
        self, paths: Sequence[str | Path], name: str, settings: Settings | None = None, bodies: BodyTexts | None = None
    ) -> None:
        self.paths, self.name, self.schema = list(paths), name, SCHEMAS[name]
        self._settings, self._bodies = settings or Settings(), bodies

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a pyarrow RecordBatchReader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; batches as large as blocks of packets yield."""
        made: list[pa.RecordBatch] = []
        builder = Builder([self.name], lambda _, batch: made.append(batch), self._bodies)
        reading = into(builder, self.paths, self._settings)
        for batch in reading.batches(scans=builder.scans):
            builder.add(batch)
            yield from made
            made.clear()
        builder.finish(reading)
        yield from made


class CaptureTables:
    """Captures as tables; as an Arrow stream, the table messages. names: all tables; bodies: makes the JSON of the
    table bodies."""

    names = tuple(COLUMNS)

    def __init__(
        self, paths: Sequence[str | Path], settings: Settings | None = None, bodies: BodyTexts | None = None
    ) -> None:
        self.paths, self._settings, self._bodies = list(paths), settings, bodies

    def table(self, name: str) -> TableStream:
        """A table by name. Raises UnknownName."""
        if name not in COLUMNS:
            raise UnknownName("table", name, self.names)
        return TableStream(self.paths, name, self._settings, self._bodies if name == "bodies" else None)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table("messages").__arrow_c_stream__(requested_schema)
