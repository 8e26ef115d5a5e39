"""Aggregates of a run's tables by day, made by Spark: small tables for the usual questions.

Each is written to rollups/NAME/date=…/ beside the tables, in a catalog to the table rollup_NAME, if the tables that it
needs exist. A day's rows come from that day's rows alone, so that what is added to some days changes only these; a
report merges days (report.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kwire.pipeline.catalog_tables import is_catalog
from kwire.pipeline.formats import save, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = 60_000_000_000  # ns
RUNS = "_runs.json"  # in rollups/: the runs whose rows they count
BROKER = "regexp_extract(connection, '>(.*)#', 1)"


class Rollup(NamedTuple):
    """needs: tables; about: title; sql: over views with the tables' names; order: a report's sort column, "-" for
    descending; merges: how a report makes one row of several days', by column: sum, min, max, union of lists, or count
    of what is in their union; what is in none is equal."""

    needs: tuple[str, ...]
    about: str
    sql: str
    order: str
    merges: dict[str, str]


ROLLUPS: dict[str, Rollup] = {
    "latency": Rollup(("exchanges",), "Latency by API, client and minute (a long poll counts as what it took)", f"""
        select date, time_ns div {MINUTE} * {MINUTE} as minute, api, client_id, count(*) as count,
          percentile_approx(latency_ns, 0.5, 10000) as p50_ns, percentile_approx(latency_ns, 0.9, 10000) as p90_ns,
          percentile_approx(latency_ns, 0.99, 10000) as p99_ns, max(latency_ns) as max_ns
        from exchanges where latency_ns is not null group by 1, 2, 3, 4""", "-p99_ns", {}),
    "errors": Rollup(("exchanges",), "Errors by API, client and broker", f"""
        select date, error, error_code, api, client_id, {BROKER} as broker, count(*) as count,
          min(time_ns) as first_time, max(time_ns) as last_time
        from exchanges where error is not null group by 1, 2, 3, 4, 5, 6""", "-count",
        {"count": "sum", "first_time": "min", "last_time": "max"}),
    "topics": Rollup(("partitions",), "Topics by the bytes of records produced and fetched", """
        select date, topic, array_sort(collect_set(partition)) as partitions,
          coalesce(sum(bytes) filter (where api = 'Produce'), 0) as bytes_in,
          coalesce(sum(records) filter (where api = 'Produce'), 0) as records_in,
          coalesce(sum(bytes) filter (where api = 'Fetch'), 0) as bytes_out,
          coalesce(sum(records) filter (where api = 'Fetch'), 0) as records_out, count(error) as errors
        from partitions where api in ('Produce', 'Fetch') group by 1, 2""", "-bytes_in",
        {"partitions": "count", "bytes_in": "sum", "records_in": "sum", "bytes_out": "sum", "records_out": "sum",
         "errors": "sum"}),
    "clients": Rollup(("clients",), "Clients: what they run, and which versions they speak", """
        select date, client_id, software, software_version, broker_itself, sum(connections) as connections,
          sum(exchanges) as exchanges, sum(errors) as errors, array_sort(array_distinct(flatten(collect_list(
            transform(apis, known -> concat(known.api, ' v', array_join(known.versions, ',v'))))))) as apis
        from clients group by 1, 2, 3, 4, 5""", "-exchanges",
        {"connections": "sum", "exchanges": "sum", "errors": "sum", "apis": "union"}),
    "rebalances": Rollup(("group_events",), "Rebalances of groups: their generations", """
        select date, `group`, group_type, generation, min(time_ns) as first_time,
          array_sort(collect_set(member)) as members,
          max(protocol) as protocol, max(latency_ns) as longest_ns, count(error) as errors
        from group_events where api = 'JoinGroup' or group_type <> 'classic' group by 1, 2, 3, 4""", "first_time",
        {"first_time": "min", "members": "count", "protocol": "max", "longest_ns": "max", "errors": "sum"}),
    "quality": Rollup(("quality", "messages"), "What could not be read, or not as a whole", """
        select date, capture, what, note, count(*) as count, sum(bytes) as bytes from quality group by 1, 2, 3, 4
        union all
        select date, capture, quality, regexp_replace(note, '[0-9][0-9,]*', 'n'), count(*), sum(size + 4) from messages
        where quality <> 'ok' group by 1, 2, 3, 4""", "-count", {"count": "sum", "bytes": "sum"}),
}  # fmt: skip


def write_rollups(
    spark: SparkSession, folder: str, names: Iterable[str], form: str = "parquet",
    days: Collection[str | None] | None = None,
) -> list[str]:  # fmt: skip
    """Writes the rollups whose tables exist; returns their names. days: only these, of Parquet in a folder, for the
    others are there and hold; None: all."""
    from pyspark.sql import functions as F

    there = set(names)
    made = [name for name, rollup in ROLLUPS.items() if there.issuperset(rollup.needs)]
    for table in {table for name in made for table in ROLLUPS[name].needs}:
        rows = table_of(spark, folder, table, form)
        if days is not None:
            timeless = F.col("date").isNull() if None in days else F.lit(False)
            rows = rows.where(F.col("date").isin([day for day in days if day]) | timeless)
        rows.createOrReplaceTempView(table)
    for name in made:
        frame = spark.sql(ROLLUPS[name].sql).repartition("date")  # a file a day
        if is_catalog(folder):
            save(frame, folder, f"rollup_{name}", form, ("date",))
        else:
            mode = "overwrite" if days is None else "overwrite-partitions"
            save(frame, os.path.join(folder, "rollups"), name, "parquet", ("date",), mode)
    return made


def counted_runs(folder: str) -> set[str]:
    """The runs whose rows a folder's rollups count, as far as is known."""
    try:
        return set(json.loads(Path(folder, "rollups", RUNS).read_text()))
    except (OSError, ValueError):
        return set()


def count_runs(folder: str, runs: Iterable[str]) -> None:
    """Notes the runs whose rows a folder's rollups count."""
    place = Path(folder, "rollups")
    place.mkdir(exist_ok=True)
    (place / f"{RUNS}.part").write_text(json.dumps(sorted(runs)))
    os.replace(place / f"{RUNS}.part", place / RUNS)
