"""A run's tables in a catalog of Spark's: with the prefix lake.kafka. they are lake.kafka.messages and so on.

Where a function takes the folder of the tables, catalog:/PREFIX stands for these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import uuid4

from kwire.errors import OutputError

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
    """Writes a table: with mode overwrite in the place of one that has the same columns. Raises OutputError."""
    if mode == "overwrite":
        _spare(frame, name)
    frame.write.format(form).partitionBy(*partitions).mode(mode).saveAsTable(name)


def try_out(spark: SparkSession, folder: str, form: str, mode: str) -> None:
    """Makes a table without rows and drops it: raises Spark's error where that fails, and OutputError for a mode that
    catalogs have not."""
    if mode not in ("error", "append", "overwrite"):
        raise OutputError(folder.removeprefix(CATALOG), f"tables of a catalog are not written with --mode {mode}")
    trial = named(folder, f"kwire_trial_{uuid4().hex[:8]}")
    spark.range(0).write.format(form).mode("error").saveAsTable(trial)
    spark.sql(f"drop table {trial}")


def fit(frame: DataFrame, name: str, form: str, partitions: Iterable[str], mode: str) -> None:
    """Raises OutputError or Spark's error if rows like these, of which there are none, cannot be written to a table
    that exists."""
    if mode == "overwrite":
        _spare(frame, name)
    elif mode == "append" and frame.sparkSession.catalog.tableExists(name):
        save_as_table(frame, name, form, partitions, mode)


def _spare(frame: DataFrame, name: str) -> None:
    """Raises OutputError for a table with other columns: it is somebody else's."""
    spark = frame.sparkSession
    if spark.catalog.tableExists(name):
        there = {column.lower() for column in spark.table(name).columns}
        if there != {column.lower() for column in frame.columns}:
            raise OutputError(name, "a table with other columns is there, which overwriting would lose")
