"""Writes tables as Parquet, Arrow or CSV files while captures are read. A file gets its name when it is complete."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kwire.outputs import Output

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 1 << 16  # rows of a Parquet row group
SUFFIXES = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "raw csv": "csv"}
Opener = Callable[[Any, Any], Any]  # of a path or a binary file, and a schema
PRIVATE = ("bodies",)  # tables with the packets' contents: readable by their owner only


class Files:
    """write(name, batch) adds rows; close() completes the files, abandon() removes them.

    The files are DIR/NAME.parquet and so on, and get these names in close(). inputs: files that must not be
    overwritten. group: rows of a Parquet row group, about. Arrow is imported with the first rows, after workers were
    forked.
    """

    def __init__(
        self, folder: Path, names: Iterable[str], form: str = "parquet", inputs: Iterable[str | Path] = (),
        group: int = GROUP,
    ) -> None:  # fmt: skip
        self._made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._open, self._group = folder, OPENERS[form], group
        self._coded = form == "parquet"
        self.paths = {name: folder / f"{name}.{SUFFIXES[form]}" for name in names}
        self._outputs = {
            name: Output(path, inputs=inputs, private=name in PRIVATE) for name, path in self.paths.items()
        }
        self._waiting: dict[str, list[pa.RecordBatch]] = {name: [] for name in self.paths}
        self._counts = dict.fromkeys(self.paths, 0)
        self.rows = dict.fromkeys(self.paths, 0)
        self._writers: dict[str, Any] = {}

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """Adds rows, whose texts may be coded; they are written in groups."""
        self._waiting[name].append(self._shape(batch))
        self._counts[name] += batch.num_rows
        self.rows[name] += batch.num_rows
        if self._counts[name] >= self._group:
            self._flush(name)

    def _shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        from kwire.tables.schemas import coded_batch, plain_batch

        return coded_batch(batch) if self._coded else plain_batch(batch)

    def close(self) -> None:
        """Gives the files their names."""
        for name in self.paths:
            self._flush(name)
            self._writer(name).close()
        for output in self._outputs.values():
            output.close()

    def abandon(self) -> None:
        """Removes all that was written."""
        for writer in self._writers.values():
            with suppress(OSError, ValueError):  # as on a full disk; the parts go all the same
                writer.close()
        for output in self._outputs.values():
            output.abandon()
        if self._made:
            with suppress(OSError):  # it holds something, by now
                self._folder.rmdir()

    def _flush(self, name: str) -> None:
        import pyarrow as pa

        if self._waiting[name]:
            self._writer(name).write_table(pa.Table.from_batches(self._waiting[name]))
        self._waiting[name], self._counts[name] = [], 0

    def _writer(self, name: str) -> Any:
        from kwire.tables.schemas import SCHEMAS

        known = self._writers.get(name)
        if known is None:
            known = self._writers[name] = self._open(self._outputs[name].open(), SCHEMAS[name])
        return known


class ArrowStream:
    """A table in Arrow's stream format: write(name, batch) adds rows, close() ends it. Arrow is imported with the first
    rows, as in Files."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self._name, self._file = name, file
        self._writer: Any = None

    def write(self, _: str, batch: pa.RecordBatch) -> None:
        """Writes rows at once; their texts may be coded."""
        from kwire.tables.schemas import plain_batch

        self._begun().write_batch(plain_batch(batch))

    def close(self) -> None:
        """Ends the stream and flushes the file."""
        self._begun().close()
        self._file.flush()

    def _begun(self) -> Any:
        if self._writer is None:
            import pyarrow as pa

            from kwire.tables.schemas import SCHEMAS

            self._writer = pa.ipc.new_stream(self._file, SCHEMAS[self._name])
        return self._writer


class _Parquet:
    """Parquet. Texts are coded before they are written: those that come so need not be hashed again."""

    def __init__(self, path: Any, schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # times, positions and ids grow in small steps: deltas take half the size and time of dictionaries
        growing = {field.name for field in schema if field.type in (pa.int64(), pa.int32()) or _is_time(field.type)}
        texts = pa.dictionary(pa.int32(), pa.string())
        fields = [field.with_type(texts) if field.type == pa.string() else field for field in schema]
        self._writer = pq.ParquetWriter(
            path, pa.schema(fields), compression="zstd", compression_level=1, store_schema=False,
            use_dictionary=[field.name for field in schema if field.name not in growing],
            column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
            coerce_timestamps="us", allow_truncated_timestamps=True,  # Spark reads no others; NAME_ns keeps the rest
        )  # fmt: skip
        # for readers the columns are texts, not dictionaries
        told = base64.b64encode(schema.serialize().to_pybytes()).decode()
        self._writer.add_key_value_metadata({"ARROW:schema": told})

    def write_table(self, table: pa.Table) -> None:
        import pyarrow as pa

        from kwire.tables.arrow import coded

        columns = [coded(column) for column in table.columns]
        self._writer.write_table(pa.Table.from_arrays(columns, table.column_names).unify_dictionaries())

    def close(self) -> None:
        self._writer.close()


def _arrow(path: Any, schema: pa.Schema) -> Any:
    import pyarrow as pa

    return pa.ipc.new_file(path, schema)


def _csv(path: Any, schema: pa.Schema) -> Any:
    return _Csv(path, schema)


def _raw_csv(path: Any, schema: pa.Schema) -> Any:
    return _Csv(path, schema, raw=True)


class _Csv:
    """CSV, with lists as JSON. raw: texts as they are; otherwise made harmless for spreadsheets and terminals."""

    def __init__(self, path: Any, schema: pa.Schema, raw: bool = False) -> None:
        import pyarrow as pa
        import pyarrow.csv

        self._raw = raw
        fields = [pa.field(field.name, pa.string() if _nested(field.type) else field.type) for field in schema]
        self._schema = pa.schema(fields)
        self._writer = pyarrow.csv.CSVWriter(path, self._schema)

    def write_table(self, table: pa.Table) -> None:
        import json

        import pyarrow as pa

        columns = []
        for column in table.columns:
            if _nested(column.type):
                texts = [None if value is None else json.dumps(value) for value in column.to_pylist()]
                columns.append(pa.array(texts, pa.string()))
            elif pa.types.is_string(column.type) and not self._raw:
                columns.append(_cells(column))
            else:
                columns.append(column)
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts after visible.cell(); most columns need no change."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kwire.wire.visible import FORMULAS, cell

    odd = pc.match_substring_regex(column, f"[^ -~]|^[{re.escape(FORMULAS)}]")
    if not pc.any(odd).as_py():
        return column
    return pa.chunked_array([pa.array([text and cell(text) for text in column.to_pylist()], pa.string())])


def _is_time(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind))


def _nested(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(kind))


OPENERS: dict[str, Opener] = {"parquet": _Parquet, "arrow": _arrow, "csv": _csv, "raw csv": _raw_csv}
