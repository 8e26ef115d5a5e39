"""kwire pipeline run: captures to a folder of tables and rollups."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kwire.pipeline import hive
from kwire.pipeline.addresses import is_elsewhere
from kwire.pipeline.contents import bring
from kwire.pipeline.copies import NEEDED, copies, named_apart, without_copies
from kwire.pipeline.job import Job, staging, survey_splits, write_rows
from kwire.pipeline.plan import stitch, survey_all, wanted
from kwire.pipeline.rollups import table_of, write_rollups
from kwire.pipeline.splits import SIZE, expand, plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TAG = "batch"


@dataclass(slots=True)
class Outcome:
    """What a run did. rows: by table; seams: bytes that travelled; parts, again: of connections, and how many had to be
    read a second time; failed: files that could not be read, with why."""

    rows: dict[str, int] = field(default_factory=dict)
    packets: int = 0
    splits: int = 0
    size: int = 0
    seams: int = 0
    parts: int = 0
    again: int = 0
    stitched: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def session(master: str | None = None, name: str = "kwire") -> SparkSession:
    """The session that there is, or a new one. Raises NoSpark when Spark cannot be."""
    from kwire.pipeline import need_spark

    need_spark()
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    return (
        builder.config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )


def run(
    spark: SparkSession, paths: Sequence[str], folder: str, job: Job, *, split_size: int = SIZE, form: str = "parquet",
    rollups: bool = True, variant: bool = False, drop_duplicates: bool = False,
) -> Outcome:  # fmt: skip
    """Reads captures into folder/TABLE/, which it writes anew; what lies in other file systems by way of the folder.
    variant: bodies as Spark's type of that name. drop_duplicates: what several points captured is there once, as
    copies.py says. Raises OSError, SameNames, Unreachable."""
    names, landed = job.names, staging(folder)
    far = [path for path in paths if is_elsewhere(path)]
    surveyed = None
    try:
        there = expand([path for path in paths if path not in far]) + (bring(spark, far, landed) if far else [])
        if drop_duplicates:
            named_apart(there)
            job = replace(job, names=tuple(dict.fromkeys([*names, *NEEDED])))
        splits = plan(there, split_size)
        surveyed = survey_splits(spark, splits, job)
        want = wanted(job.names)
        surveys = surveyed.surveys
        files = survey_all(splits, lambda _: surveys, job.settings, want)
        planned = stitch(files, job.names, job.settings, bodies=job.bodies, origins=drop_duplicates)
        staged = staging(folder)
        os.makedirs(staged, exist_ok=True)
        written = write_rows(surveyed, planned, job, staged, TAG)
        twice = copies(planned.origins)
        counts: dict[str, int] | None = None
        if twice:
            with without_copies(spark, twice, lambda name: _staged(spark, staged, name)) as rest:
                counts = convert(spark, staged, folder, names, form, variant, rest)
        elif form == "parquet":
            written = [found for found in written if found.table in names]
            bodies = [found for found in written if variant and found.table == "bodies"]
            hive.place(folder, staged, [found for found in written if found not in bodies], names, keep=bool(bodies))
            if bodies:
                convert(spark, staged, folder, ["bodies"], form, variant)
        else:
            convert(spark, staged, folder, names, form, variant)
    finally:
        if surveyed is not None:
            surveyed.release()
        shutil.rmtree(landed, ignore_errors=True)
    out = Outcome(
        dict.fromkeys(names, 0), planned.packets, len(splits), sum(split.end - split.start for split in splits),
        surveyed.seams, planned.parts, planned.again, planned.exchanges, planned.failed,
    )  # fmt: skip
    for found in written:
        if found.table in out.rows:
            out.rows[found.table] += found.rows
    out.rows |= counts or {}
    if rollups:
        write_rollups(spark, folder, names, form)
    return out


def convert(
    spark: SparkSession, staged: str, folder: str, names: Sequence[str], form: str, variant: bool = False,
    rest: Callable[[str, DataFrame], DataFrame] | None = None,
) -> dict[str, int]:  # fmt: skip
    """Tables of the run as the session writes them: in another format, as orc, delta, iceberg; bodies as variants.
    rest: what of each table is written. Gives the rows of each, where that is asked."""
    out = {}
    for name in names:
        columns = ["date", *(["api"] if hive.has_api(name) else [])]
        frame = _staged(spark, staged, name)
        if rest is not None:
            frame = rest(name, frame)
        if variant and name == "bodies":
            frame = frame.selectExpr("* except (body)", "try_parse_json(body) as body")
        writer = frame.write.format(form).mode("overwrite").partitionBy(*columns)
        writer.save(os.path.join(folder, name))
        if rest is not None:
            out[name] = table_of(spark, folder, name, form).count()
    shutil.rmtree(staged)
    return out


def _staged(spark: SparkSession, staged: str, name: str) -> DataFrame:
    os.makedirs(os.path.join(staged, name), exist_ok=True)
    return table_of(spark, staged, name)
