"""Tables of a run as the session reads and writes them, each in FOLDER/TABLE: parquet, orc, delta, iceberg and others.

Iceberg knows tables by their catalogs: here one whose warehouse is the folder's own place.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

from kwire.pipeline.columns import ddl
from kwire.pipeline.paths import is_elsewhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def save(frame: DataFrame, folder: str, table: str, form: str, partitions: tuple[str, ...] = ()) -> None:
    """Writes a table, in place of the one that is there."""
    if form == "iceberg":
        writer = frame.writeTo(_in_catalog(frame.sparkSession, folder, table))
        if partitions:
            writer = writer.partitionedBy(*(frame[name] for name in partitions))
        writer.using(form).createOrReplace()
    else:
        frame.write.format(form).mode("overwrite").partitionBy(*partitions).save(os.path.join(folder, table))


def table_of(spark: SparkSession, folder: str, table: str, form: str = "parquet") -> DataFrame:
    """A table of a run, with its partitions' columns."""
    if form == "iceberg":
        return spark.table(_in_catalog(spark, folder, table))
    reader = spark.read.format(form)
    if form in ("parquet", "orc"):  # the others know their schema
        reader = reader.schema(ddl(table) + ", `date` string")
    return reader.load(os.path.join(folder, table))


def _in_catalog(spark: SparkSession, folder: str, table: str) -> str:
    """As Iceberg calls a table. The folder is a namespace, since without one a table partitions would be taken for what
    Iceberg itself says of a table."""
    warehouse, base = os.path.split(folder.rstrip("/") if is_elsewhere(folder) else os.path.abspath(folder))
    name = f"kwire_{sha256(warehouse.encode()).hexdigest()[:12]}"
    catalog = f"spark.sql.catalog.{name}"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", warehouse)
    escaped = base.replace("`", "``")
    return f"{name}.`{escaped}`.{table}"
