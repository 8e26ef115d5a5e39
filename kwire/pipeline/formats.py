"""Reads and writes a run's tables with Spark, each in FOLDER/TABLE or a catalog: parquet, orc, delta, iceberg, others.

Iceberg needs a catalog: here one whose warehouse is the folder's parent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from kwire.errors import OutputError
from kwire.pipeline.catalog_tables import configured, is_catalog, named, save_as_table
from kwire.pipeline.columns import lake_ddl
from kwire.pipeline.paths import is_elsewhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


MODES = ("overwrite", "append", "overwrite-partitions", "error")
TIMES = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}  # else they are of Impala's type


def save(
    frame: DataFrame, folder: str, table: str, form: str, partitions: tuple[str, ...] = (), mode: str = "overwrite"
) -> None:  # fmt: skip
    """Writes a table. mode: one of MODES, for a table that exists."""
    if is_catalog(folder):
        with configured(frame.sparkSession, TIMES):
            save_as_table(frame, named(folder, table), form, partitions, mode)
        return
    if form == "iceberg":
        _save_iceberg(frame, _in_catalog(frame.sparkSession, folder, table), partitions, mode)
        return
    writer = frame.write.format(form).partitionBy(*partitions).mode(mode.removesuffix("-partitions"))
    if mode == "overwrite-partitions":
        writer = writer.option("partitionOverwriteMode", "dynamic")
    with configured(frame.sparkSession, TIMES):
        writer.save(os.path.join(folder, table))


def _save_iceberg(frame: DataFrame, name: str, partitions: tuple[str, ...], mode: str) -> None:
    writer = frame.writeTo(name)
    if mode in ("append", "overwrite-partitions") and frame.sparkSession.catalog.tableExists(name):
        if mode == "append":
            writer.append()
        else:
            writer.overwritePartitions()
        return
    if partitions:
        writer = writer.partitionedBy(*(frame[name] for name in partitions))
    writer.using("iceberg").createOrReplace()


def refuse_where_there_is(spark: SparkSession, folder: str, tables: Iterable[str], form: str) -> None:
    """Raises OutputError if one of the tables exists."""
    from pyspark.errors import AnalysisException

    for table in tables:
        try:
            if is_catalog(folder):
                there = spark.catalog.tableExists(named(folder, table))
            elif form == "iceberg":
                there = spark.catalog.tableExists(_in_catalog(spark, folder, table))
            else:
                there = bool(table_of(spark, folder, table, form).inputFiles())
        except AnalysisException:  # there is no such path, or nothing of that format in it
            there = False
        if there:
            where = named(folder, table) if is_catalog(folder) else os.path.join(folder, table)
            raise OutputError(where, "this is there already: --mode says what is to be done")


def table_of(spark: SparkSession, folder: str, table: str, form: str = "parquet") -> DataFrame:
    """A table of a run, with its partition columns."""
    if is_catalog(folder):
        return spark.table(named(folder, table))
    if form == "iceberg":
        return spark.table(_in_catalog(spark, folder, table))
    reader = spark.read.format(form)
    if form in ("parquet", "orc"):  # the others know their schema
        reader = reader.schema(lake_ddl(table))
    return reader.load(os.path.join(folder, table))


def _in_catalog(spark: SparkSession, folder: str, table: str) -> str:
    """The table's name in Iceberg's catalog. The folder is a namespace; without one, a table called partitions would
    mean Iceberg's metadata table."""
    warehouse, base = os.path.split(folder.rstrip("/") if is_elsewhere(folder) else os.path.abspath(folder))
    name = f"kwire_{sha256(warehouse.encode()).hexdigest()[:12]}"
    catalog = f"spark.sql.catalog.{name}"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", warehouse)
    escaped = base.replace("`", "``")
    return f"{name}.`{escaped}`.{table}"
