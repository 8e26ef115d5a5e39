"""Aggregates of a run's tables, made by Spark: small tables for the usual questions.

Each is written to rollups/NAME/ beside the tables, in a catalog to the table rollup_NAME, if the tables that it needs
exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kwire.pipeline.catalog_tables import is_catalog
from kwire.pipeline.formats import save, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = 60_000_000_000  # ns
BROKER = "regexp_extract(connection, '>(.*)#', 1)"


class Rollup(NamedTuple):
    """needs: tables; about: title; sql: over views with the tables' names; order: a report's sort column, "-" for
    descending."""

    needs: tuple[str, ...]
    about: str
    sql: str
    order: str


ROLLUPS: dict[str, Rollup] = {
    "latency": Rollup(("exchanges",), "Latency by API, client and minute (a long poll counts as what it took)", f"""
        select time_ns div {MINUTE} * {MINUTE} as minute, api, client_id, count(*) as count,
          percentile_approx(latency_ns, 0.5, 10000) as p50_ns, percentile_approx(latency_ns, 0.9, 10000) as p90_ns,
          percentile_approx(latency_ns, 0.99, 10000) as p99_ns, max(latency_ns) as max_ns
        from exchanges where latency_ns is not null group by 1, 2, 3""", "-p99_ns"),
    "errors": Rollup(("exchanges",), "Errors by API, client and broker", f"""
        select error, error_code, api, client_id, {BROKER} as broker, count(*) as count, min(time_ns) as first_time,
          max(time_ns) as last_time
        from exchanges where error is not null group by 1, 2, 3, 4, 5""", "-count"),
    "topics": Rollup(("partitions",), "Topics by the bytes of records produced and fetched", """
        select topic, count(distinct partition) as partitions,
          coalesce(sum(bytes) filter (where api = 'Produce'), 0) as bytes_in,
          coalesce(sum(records) filter (where api = 'Produce'), 0) as records_in,
          coalesce(sum(bytes) filter (where api = 'Fetch'), 0) as bytes_out,
          coalesce(sum(records) filter (where api = 'Fetch'), 0) as records_out, count(error) as errors
        from partitions where api in ('Produce', 'Fetch') group by topic""", "-bytes_in"),
    "clients": Rollup(("clients",), "Clients: what they run, and which versions they speak", """
        select client_id, software, software_version, broker_itself, sum(connections) as connections,
          sum(exchanges) as exchanges, sum(errors) as errors, array_sort(array_distinct(flatten(collect_list(
            transform(apis, known -> concat(known.api, ' v', array_join(known.versions, ',v'))))))) as apis
        from clients group by 1, 2, 3, 4""", "-exchanges"),
    "rebalances": Rollup(("group_events",), "Rebalances of groups: their generations", """
        select `group`, group_type, generation, min(time_ns) as first_time, count(distinct member) as members,
          max(protocol) as protocol, max(latency_ns) as longest_ns, count(error) as errors
        from group_events where api = 'JoinGroup' or group_type <> 'classic' group by 1, 2, 3""", "first_time"),
    "quality": Rollup(("quality", "messages"), "What could not be read, or not as a whole", """
        select capture, what, note, count(*) as count, sum(bytes) as bytes from quality group by 1, 2, 3
        union all
        select capture, quality, regexp_replace(note, '[0-9][0-9,]*', 'n'), count(*), sum(size + 4) from messages
        where quality <> 'ok' group by 1, 2, 3""", "-count"),
}  # fmt: skip


def write_rollups(spark: SparkSession, folder: str, names: Iterable[str], form: str = "parquet") -> list[str]:
    """Writes the rollups whose tables exist; returns their names."""
    there = set(names)
    made = [name for name, rollup in ROLLUPS.items() if there.issuperset(rollup.needs)]
    for table in {table for name in made for table in ROLLUPS[name].needs}:
        table_of(spark, folder, table, form).createOrReplaceTempView(table)
    for name in made:
        frame = spark.sql(ROLLUPS[name].sql).coalesce(1)
        if is_catalog(folder):
            save(frame, folder, f"rollup_{name}", form)
        else:
            frame.write.mode("overwrite").parquet(os.path.join(folder, "rollups", name))
    return made
