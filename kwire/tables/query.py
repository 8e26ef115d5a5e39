"""SQL over the tables of captures, with an in-memory DuckDB.

A table is built when a statement first names it. Until then it exists without rows, so that wrong statements fail
before a capture is read. DuckDB is locked first: no statement reaches files, loads extensions or changes settings.
Statements run in a thread, because DuckDB checks for Ctrl-C too late. Times are UTC without a time zone, for which
DuckDB has more functions, and keep their ns.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import duckdb
import pyarrow as pa

from kwire.capture.files import Capture
from kwire.errors import KwireError, QueryError, UnknownName
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.tables.build import BodyTexts
from kwire.tables.columns import COLUMNS
from kwire.tables.jobs import build_with_jobs
from kwire.tables.schemas import SCHEMAS
from kwire.tables.sqltext import depth, split

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

LONGEST, DEEPEST = (
    1 << 20,
    500,
)  # characters and nesting of a query: DuckDB's parser takes unbounded memory for nested input
AT_ONCE = 10_000  # rows that are converted to Python values at a time
LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # Python variables are not tables
    "temp_directory": "",  # nothing is spilled to files
    "lock_configuration": "true",
}
NO_COLUMN = re.compile(r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"')
EVERY_COLUMN = sorted({column for columns in COLUMNS.values() for column, _, _ in columns})
OF_LAKES = {"date": "the day, UTC", "capture_point": "whose files of that day were judged together"}
Progress = Callable[[Capture], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a statement. Its column names are unique."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    @property
    def kinds(self) -> list[str]:
        """For each column "number", "time" or "text" (everything else)."""
        return [_kind(field) for field in self.table.schema]

    def rows(self, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The first most rows as plain values: None, bool, int, float, str, bytes, lists and dicts of these. Times are
        ns since the epoch; those out of range or within lists are ISO text."""
        table = self.table if most is None else self.table.slice(0, most)
        for batch in table.to_batches(AT_ONCE):
            yield from zip(*(_values(column) for column in batch.columns), strict=True)

    def write(self, file: BinaryIO, form: str, stream: bool = False) -> None:
        """Writes form "parquet" or "arrow"; stream: Arrow's stream format, for pipes. Raises QueryError for a type that
        the form lacks."""
        import pyarrow.parquet as pq

        try:
            if form == "parquet":
                pq.write_table(
                    self.table, file, compression="zstd", coerce_timestamps="us", allow_truncated_timestamps=True
                )
            else:
                begin = pa.ipc.new_stream if stream else pa.ipc.new_file
                with begin(file, self.table.schema) as writer:
                    writer.write_table(self.table)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise QueryError(f"{form} cannot hold this result: {_one_line(str(error))}") from None


class QuerySession:
    """SQL over captures. missing() says which tables a text needs, load() builds them, run() gives the result. loaded:
    tables already built; bodies: makes the JSON of the table bodies; jobs: number of processes that build; lake: query
    these tables instead of captures."""

    def __init__(
        self, paths: Sequence[str | Path], settings: Settings | None = None, bodies: BodyTexts | None = None,
        jobs: int = 1, lake: Mapping[str, Dataset] | None = None,
    ) -> None:  # fmt: skip
        self._paths, self._settings, self._bodies = list(paths), settings or Settings(), bodies
        self._jobs = jobs
        self._lake = lake
        self.loaded: set[str] = set(lake or ())
        self._db = duckdb.connect(":memory:", config=dict(LOCKED))
        self._names = duckdb.connect(":memory:", config=dict(LOCKED))  # tells which tables a query names
        for name, schema in SCHEMAS.items():
            if lake is None:
                self._db.register(name, _without_zone(schema.empty_table()))
            self._names.register("columns", schema.empty_table())
            self._names.execute(f"create table {name} as from columns")  # what is registered counts as a view
        for name, dataset in (lake or {}).items():
            self._db.register(name, dataset)

    def missing(self, text: str) -> set[str]:
        """The tables that the statements name and that are not loaded yet. Raises KwireError where the text is known to
        be wrong."""
        found: set[str] = set()
        statements = _statements(text)
        for statement in statements:
            found |= self._named(statement, alone=len(statements) == 1)
        return found - self.loaded if self._lake is None else set()

    def load(self, names: set[str], progress: Progress | None = None) -> tuple[Reading, int]:
        """Builds tables; returns the Reading and the number of exchanges. Raises CaptureError, OSError, JobError."""
        parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
        reading, exchanges = build_with_jobs(
            self._paths, sorted(names), lambda name, batch: parts[name].append(batch), self._settings, self._jobs,
            self._bodies, progress,
        )  # fmt: skip
        for name, batches in parts.items():
            self._db.register(name, _without_zone(pa.Table.from_batches(batches, SCHEMAS[name])))
        self.loaded |= names
        return reading, exchanges

    def run(self, text: str) -> Result | None:
        """Runs the statements; returns the result of the last one, None if it gives no rows. Raises QueryError,
        UnknownName, KeyboardInterrupt."""
        result = None
        for statement in _statements(text):
            table = self._patiently(statement)
            result = Result(_tidy(table)) if table is not None and self._gives_rows(statement) else None
        return result

    def tables(self) -> list[str]:
        """The tables of captures, then those that statements created."""
        there = {str(row[0]) for row in self._db.sql("show tables").fetchall()}
        return [*(name for name in COLUMNS if name in there), *sorted(there - COLUMNS.keys())]

    def describe(self, name: str) -> list[tuple[str, str, str]]:
        """A table's columns: name, type, description. Raises UnknownName."""
        if name not in self.tables():
            raise self._no_table(name)
        what = {column: text for column, _, text in COLUMNS.get(name, ())} | OF_LAKES
        quoted = name.replace('"', '""')
        rows = self._db.sql(f'describe "{quoted}"').fetchall()
        return [(str(row[0]), str(row[1]), what.get(row[0], "")) for row in rows]

    def keywords(self) -> list[str]:
        """DuckDB's keywords and functions, for completion."""
        found = self._db.sql(
            "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
            " union select function_name from duckdb_functions() where function_name ~ '^[a-z]\\w+$'"
        )
        return sorted(str(row[0]) for row in found.fetchall())

    def _named(self, statement: str, alone: bool) -> set[str]:
        """The tables of captures that a statement names. alone: it is the only statement, so it can be checked."""
        if re.match(r"(describe|show)\b", statement, re.IGNORECASE):
            return set()
        try:
            kinds = [parsed.type for parsed in self._db.extract_statements(statement)]
            if alone and kinds in ([duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN]):
                explained = kinds == [duckdb.StatementType.EXPLAIN]
                self._db.sql(statement if explained else f"explain {statement}")
        except duckdb.Error as error:
            raise self._problem(error, statement) from None
        if kinds == [duckdb.StatementType.SELECT]:
            with contextlib.suppress(duckdb.Error):  # it does not know tables that statements created
                return {name.lower() for name in self._names.get_table_names(statement)} & COLUMNS.keys()
        words = re.findall(r"\w+", statement)  # DuckDB does not give the names in CREATE VIEW, PIVOT and such
        return {word.lower() for word in words} & COLUMNS.keys()

    def _gives_rows(self, statement: str) -> bool:
        (parsed,) = self._db.extract_statements(statement)
        pivot = parsed.type == duckdb.StatementType.MULTI
        return pivot or duckdb.ExpectedResultType.NOTHING not in parsed.expected_result_type

    def _patiently(self, statement: str) -> pa.Table | None:
        def work() -> pa.Table | None:
            relation = self._db.sql(statement)
            return None if relation is None else relation.to_arrow_table()

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            try:
                while not running.done():  # a signal is heard only between two waits
                    wait([running], 0.1)
                return running.result()
            except duckdb.Error as error:
                raise self._problem(error, statement) from None
            except (KeyboardInterrupt, SystemExit):
                while not running.done():
                    self._db.interrupt()
                    wait([running], 0.05)
                raise

    def _problem(self, error: Exception, statement: str) -> KwireError:
        """A DuckDB error as a KwireError: one line, with the nearest known names."""
        text = str(error)
        if found := re.search(r"Table with name (.+?) does not exist", text):
            return self._no_table(found[1])
        if found := NO_COLUMN.search(text):
            name = found[1] or found[2]
            candidates = re.search(r"Candidate bindings: (.*)", text)
            known = re.findall(r'"(?:[^"]+\.)?([^".]+)"', candidates[1]) if candidates else EVERY_COLUMN
            near = difflib.get_close_matches(name.lower(), known, 3, 0.5)
            return UnknownName("column", name, tuple(dict.fromkeys(near)))
        if found := re.search(r"Values were not provided for the following", text):
            return QueryError("the query has parameters, which nothing gives values")
        message, _, place = re.sub(r"^[A-Za-z ]+ Error: ", "", text).partition("\n\nLINE ")
        where = f", line {place.partition(':')[0]}" if place and "\n" in statement else ""
        return QueryError(_one_line(message.partition("\nDatabase is launched")[0]) + where)

    def _no_table(self, name: str) -> KwireError:
        known = self.tables()
        near = difflib.get_close_matches(name.lower(), known, 2)
        return (
            UnknownName("table", name, tuple(near))
            if near
            else QueryError(f"no table {name}; there are {', '.join(known)}")
        )


def _statements(text: str) -> list[str]:
    if not text.isascii() and re.search("[\ud800-\udfff]", text):
        raise QueryError("the query is no UTF-8")
    if len(text) > LONGEST:
        raise QueryError(f"the query has {len(text):,} characters; {LONGEST:,} are read")
    if (deep := depth(text)) > DEEPEST:
        raise QueryError(f"the query has parentheses {deep:,} deep; {DEEPEST} are read")
    whole, rest = split(text)
    found = [*whole, rest] if rest else whole
    if not found:
        raise QueryError("the query is empty")
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _kind(field: pa.Field) -> str:
    kind = field.type
    if pa.types.is_timestamp(kind):
        return "time"
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "number" if number else "text"


def _tidy(table: pa.Table) -> pa.Table:
    """The table with unique column names, with DuckDB's wide integer sums as int64, and with times as UTC."""
    names: list[str] = []
    for name in table.column_names:
        number, fresh = 1, name
        while fresh in names:
            fresh, number = f"{name}_{number}", number + 1
        names.append(fresh)
    columns = []
    for column in table.columns:
        if pa.types.is_decimal128(column.type) and column.type.scale == 0:
            with contextlib.suppress(pa.ArrowInvalid):  # beyond 64 bits
                column = column.cast(pa.int64())
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp(column.type.unit, "UTC"))
        columns.append(column)
    return pa.Table.from_arrays(columns, names)


def _without_zone(table: pa.Table) -> pa.Table:
    times = {field.name: pa.timestamp("ns") for field in table.schema if pa.types.is_timestamp(field.type)}
    return table.cast(pa.schema([field.with_type(times.get(field.name, field.type)) for field in table.schema]))


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        with contextlib.suppress(pa.ArrowInvalid):  # out of range for ns
            return list(column.cast(pa.timestamp("ns", kind.tz)).cast(pa.int64()).to_pylist())
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_primitive(kind) or pa.types.is_string(kind) or pa.types.is_null(kind):
        return list(column.to_pylist())
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, list):
        if value and all(isinstance(inner, tuple) and len(inner) == 2 for inner in value):  # a map
            return _plain(dict(value))
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
