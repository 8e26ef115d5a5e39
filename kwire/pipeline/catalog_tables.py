"""A run's tables in a catalog of Spark's: with the prefix lake.kafka. they are lake.kafka.messages and so on.

Where a function takes the folder of the tables, catalog:/PREFIX stands for these.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from kwire.errors import OutputError
from kwire.pipeline.ledger import ANEW, FILES, SCHEMA, UNKNOWN, Ledger, entries, refuse_others
from kwire.pipeline.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG = "catalog:/"


def is_catalog(folder: str) -> bool:
    """Whether tables of a catalog are meant."""
    return folder.startswith(CATALOG)


def named(folder: str, table: str) -> str:
    """The table's name in the catalog."""
    return folder.removeprefix(CATALOG) + table


def save_as_table(frame: DataFrame, name: str, form: str, partitions: Iterable[str], mode: str) -> None:
    """Writes a table. mode: one of formats.MODES; overwrite takes the place of one that has the same columns. Raises
    OutputError."""
    if mode.startswith("overwrite"):
        _spare(frame, name)
    if mode == "overwrite-partitions" and frame.sparkSession.catalog.tableExists(name):
        with configured(frame.sparkSession, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
            frame.select(*frame.sparkSession.table(name).columns).write.insertInto(name, overwrite=True)
        return
    frame.write.format(form).partitionBy(*partitions).mode(mode.removesuffix("-partitions")).saveAsTable(name)


def try_out(spark: SparkSession, folder: str, form: str) -> None:
    """Makes a table without rows and drops it: raises Spark's error where that fails."""
    trial = named(folder, f"kwire_trial_{uuid4().hex[:8]}")
    spark.range(0).write.format(form).mode("error").saveAsTable(trial)
    spark.sql(f"drop table {trial}")


def fit(frame: DataFrame, name: str, form: str, partitions: Iterable[str], mode: str) -> None:
    """Raises OutputError or Spark's error if rows like these, of which there are none, cannot be written to a table
    that exists."""
    if mode == "overwrite":
        _spare(frame, name)
    elif mode != "error" and frame.sparkSession.catalog.tableExists(name):
        save_as_table(frame, name, form, partitions, mode)


class CatalogRun:
    """A run's entries in the table files: one at its beginning, without a path, and at its end one for each capture.
    Rows cannot be taken out of every catalog's tables, so what a killed run left is refused, not removed."""

    def __init__(self, spark: SparkSession, folder: str, form: str, tables: Sequence[str]) -> None:
        self._spark, self._folder, self._form, self._tables = spark, folder, form, tables
        self._run = f"run-{uuid4().hex[:12]}"
        self._name = named(folder, FILES)

    def ledger(self) -> Ledger:
        """What is known of the captures in the tables. Raises OutputError if that is not all."""
        rows = [row.asDict() for row in self._spark.table(self._name).collect()] if self._there(self._name) else []
        ended = {row["run"] for row in rows if row["read_ns"] is not None}
        for row in rows:
            if row["run"] not in ended and set(row["tables"]) & set(self._tables):
                raise OutputError(self._name, f"{row['run']} ended in its midst: {ANEW}")
        read = [row for row in rows if row["path"] is not None]
        for table in self._tables:
            name = named(self._folder, table)
            refuse_others(read, table, name)
            if not read and self._there(name) and not self._spark.table(name).isEmpty():
                raise OutputError(name, UNKNOWN)
        return Ledger(read)

    def begin(self, anew: bool) -> None:
        """Notes that the run writes. anew: it takes the place of all others."""
        self._enter([{"run": self._run, "tables": list(self._tables)}], "overwrite" if anew else "append")

    def end(self, days: Mapping[str, str | None], stores: Stores) -> None:
        """Notes that it has read these captures. days: of their first packets, by path."""
        over = {"run": self._run, "tables": list(self._tables), "read_ns": time.time_ns()}
        self._enter([over, *entries(self._run, self._tables, days, stores).to_pylist()], "append")

    def _enter(self, rows: list[dict[str, Any]], mode: str) -> None:
        frame = self._spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)).coalesce(1)
        save_as_table(frame, self._name, self._form, (), mode)

    def _there(self, name: str) -> bool:
        return bool(self._spark.catalog.tableExists(name))


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets these settings of the session in this context."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)


def _spare(frame: DataFrame, name: str) -> None:
    """Raises OutputError for a table with other columns: it is somebody else's."""
    spark = frame.sparkSession
    if spark.catalog.tableExists(name):
        there = {column.lower() for column in spark.table(name).columns}
        if there != {column.lower() for column in frame.columns}:
            raise OutputError(name, "a table with other columns is there, which overwriting would lose")
