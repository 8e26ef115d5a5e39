"""kwire pipeline run: captures to a folder of tables and rollups."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from socket import create_connection
from typing import TYPE_CHECKING

from kwire.errors import FilesUnreachable, SparkFailed
from kwire.pipeline import hive
from kwire.pipeline.binary_files import bring
from kwire.pipeline.catalog_tables import CatalogRun, fit, is_catalog, named, try_out
from kwire.pipeline.columns import lake_ddl
from kwire.pipeline.duplicates import NEEDED, copies, named_apart, without_copies
from kwire.pipeline.failures import in_a_line
from kwire.pipeline.formats import refuse_where_there_is, save
from kwire.pipeline.job import DISK, Job, rows_by_split, survey_splits, table_frame, write_rows
from kwire.pipeline.judging import by_point, date_of, judged
from kwire.pipeline.ledger import ToRead, enter, full, of_folder, running, runs
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.plan import span, stitch, survey_all, wanted
from kwire.pipeline.rollups import ROLLUPS, count_runs, counted_runs, write_rollups
from kwire.pipeline.splits import SIZE, expand, plan
from kwire.pipeline.steps import Steps, Watch
from kwire.pipeline.stores import Stores, of_session
from kwire.pipeline.survey import LearnedNames
from kwire.staging import staging
from kwire.tables.columns import JUDGEMENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Rest = Callable[[str, DataFrame], DataFrame]


QUICK = "-XX:TieredStopAtLevel=1"  # Spark only moves kwire's bytes: compiling it well takes longer than it then saves
CONNECT, ANSWERS = 15002, 30  # the port of Spark Connect; s to wait for its server


@dataclass(slots=True)
class RunOutcome:
    """What a run did. rows: by table; seams: bytes sent to the driver; parts, again: parts of connections, and how many
    were read twice; failed: files that could not be read, with the reason; known, grown: number of files read by
    earlier runs, and files that became longer since; days: of the first packets of those that were read, by path;
    dates: days that got rows, None if that is not known."""

    rows: dict[str, int] = field(default_factory=dict)
    packets: int = 0
    splits: int = 0
    size: int = 0
    seams: int = 0
    parts: int = 0
    again: int = 0
    stitched: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    known: int = 0
    grown: list[str] = field(default_factory=list)
    days: dict[str, str | None] = field(default_factory=dict)
    dates: set[str | None] | None = None


def session(
    master: str | None = None, name: str = "kwire", settings: Mapping[str, str] | None = None,
    remote: str | None = None,
) -> SparkSession:  # fmt: skip
    """The active Spark session, or a new one with these settings. remote: address of a Spark Connect server. Raises
    NoSpark, SparkFailed."""
    from kwire.pipeline import need_spark

    need_spark(remote is not None)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    builder = builder.config("spark.sql.execution.arrow.pyspark.enabled", "true")
    if remote:
        _reach(remote)
        builder = builder.remote(remote)
    elif master:
        builder = builder.master(master)
    if not remote:
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        if master and master.startswith("local"):
            builder = builder.config("spark.driver.defaultJavaOptions", QUICK)
    if (
        not remote and "PYSPARK_GATEWAY_PORT" not in os.environ
    ):  # under spark-submit its configuration says what is logged
        builder = builder.config("spark.log.level", "OFF")
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    with in_a_line():
        return builder.getOrCreate()


def run(
    spark: SparkSession, paths: Sequence[str], folder: str, job: Job, *, split_size: int = SIZE, form: str = "parquet",
    rollups: bool = True, variant: bool = False, drop_duplicates: bool = False, mode: str = "overwrite",
    incremental: bool = False, watch: Watch | None = None,
) -> RunOutcome:  # fmt: skip
    """Reads captures into folder/TABLE/, or tables of a catalog (catalog_tables.py). split_size: bytes; variant: bodies
    as Spark's variant type. drop_duplicates: keep one recording of what several points captured (duplicates.py). mode:
    one of formats.MODES, for the tables; rollups always cover all rows. incremental: add only files that no run has
    read yet; only Parquet in a local folder, or tables of a catalog. watch: is called with the step that the run is at,
    from another thread. Raises OSError, OutputError, SameNames, FilesUnreachable, SparkFailed."""
    paths, folder = [local(path) for path in paths], local(folder)
    if not hasattr(spark, "_jsparkSession"):  # a server of Spark Connect works in another folder than this
        paths, folder = [_absolute(path) for path in paths], _absolute(folder)
    mode = "append" if incremental else mode
    if mode == "error":
        with in_a_line():
            refuse_where_there_is(spark, folder, job.names, form)
    if not is_elsewhere(folder) and mode.startswith("overwrite"):
        hive.spare(
            folder,
            [*job.names, *(f"rollups/{name}" for name in ROLLUPS if rollups)],
            [path for path in paths if not is_elsewhere(path)],
        )
    listed = CatalogRun(spark, folder, form, job.names) if is_catalog(folder) else None
    ours = form == "parquet" and not is_elsewhere(folder)
    with (
        in_a_line(), running(folder) if ours else nullcontext("run") as run, Steps(spark, watch) as steps,
        ExitStack() as until,
    ):  # fmt: skip
        steps.begin("find captures")
        if is_catalog(folder):
            try_out(spark, folder, form)
            for name in job.names:
                rows = spark.createDataFrame([], lake_ddl(name))
                fit(_shaped(rows, name, variant), named(folder, name), form, hive.partitions_of(name), mode)
        else:
            _try_out(spark, folder, job.names[0], form)
        stores = of_session(spark)
        chosen, before = ToRead(captures_of(spark, paths, folder, stores, until)), None
        if incremental:
            before = listed.ledger() if listed else of_folder(folder, job.names)
            chosen = before.choose(chosen.new, stores)
        if incremental and not chosen.new:
            done = RunOutcome(dict.fromkeys(job.names, 0))
        else:
            if listed:
                listed.begin(anew=mode == "overwrite")
            done = _tables(
                spark, chosen.new, folder, job, split_size, form, variant, drop_duplicates, mode, run, stores,
                steps, before.days if before else {},
            )  # fmt: skip
            if listed:
                listed.end(done.days, stores)
            if ours:
                enter(folder, run, job.names, done.days, anew=mode == "overwrite", stores=stores)
            if rollups:
                steps.begin("rollups", note=f"{sum(done.rows.values()):,} rows written")
                counted = incremental and runs(folder) - {run} <= counted_runs(folder)
                write_rollups(spark, folder, job.names, form, done.dates if counted else None)
                if ours:
                    count_runs(folder, runs(folder))
    done.known, done.grown = len(chosen.known), chosen.grown
    return done


def _reach(remote: str) -> None:
    """Raises SparkFailed if no server answers: Spark's own client would retry for ten minutes."""
    found = re.match(r"sc://(\[[^]]+\]|[^:/;]+)(?::(\d{1,5}))?(?:[/;]|$)", remote)
    if found is None:
        raise SparkFailed(f"{remote}: write sc://HOST:PORT")
    address = found[1].strip("[]"), int(found[2] or CONNECT)
    try:
        create_connection(address, ANSWERS).close()
    except OSError as error:
        raise SparkFailed(f"{remote}: no server of Spark Connect answers: {error.strerror or error}") from error


def _absolute(path: str) -> str:
    return path if is_elsewhere(path) else os.path.abspath(path)


def _try_out(spark: SparkSession, folder: str, table: str, form: str) -> None:
    """Raises Spark's error if it cannot write there or in this format, before hours of work."""
    if is_elsewhere(folder) and form == "parquet":  # what has no rows makes no files
        save(spark.range(0).selectExpr("id", "id as date"), folder, table, form, ("date",), "append")
    elif form != "parquet" and hasattr(spark, "_jsparkSession"):  # behind Spark Connect there is no folder of ours
        with tempfile.TemporaryDirectory() as trial:
            save(spark.range(0), trial, "trial", form)


def captures_of(spark: SparkSession, paths: Sequence[str], folder: str, stores: Stores, until: ExitStack) -> list[str]:
    """The captures' paths. Files that Arrow cannot open are copied by Spark to where workers see them, for the time of
    the run."""
    here = expand([path for path in paths if not is_elsewhere(path)])
    far = [path for path in paths if is_elsewhere(path)]
    there = [listed for path in far if stores.of(path) for listed in stores.listed(path)]
    rest = [path for path in far if not stores.of(path)]
    if not rest:
        return here + there
    if is_elsewhere(folder) and not (spark.conf.get("spark.master", None) or "").startswith("local"):
        raise FilesUnreachable(f"{rest[0]}: workers of a cluster cannot read this file system by themselves")
    landed = until.enter_context(staging(tempfile.gettempdir() if is_elsewhere(folder) else folder))
    return here + there + bring(spark, rest, landed)


def _tables(
    spark: SparkSession, there: Sequence[str], folder: str, job: Job, split_size: int, form: str, variant: bool,
    drop_duplicates: bool, mode: str, run: str, stores: Stores, steps: Steps,
    known: Mapping[str, str | None],
) -> RunOutcome:  # fmt: skip
    """known: days of the captures that earlier runs read, by path."""
    judgements = [name for name in job.names if name in JUDGEMENTS]
    names = [name for name in job.names if name not in judgements]
    job = replace(job, names=tuple(names))
    if drop_duplicates:
        named_apart(there)
        job = replace(job, names=tuple(dict.fromkeys([*job.names, *NEEDED])))
    splits = plan(there, split_size, stores=stores)
    size = sum(split.end - split.start for split in splits)
    steps.begin("read", size, f"{size:,} bytes in {len(splits):,} splits")
    with ExitStack() as until:
        surveyed = until.enter_context(survey_splits(spark, splits, job, finals=not drop_duplicates))
        steps.begin("stitch")
        files = survey_all(splits, lambda _: surveyed.surveys, job.settings, wanted(job.names))
        planned = stitch(
            files, job.names, job.settings, bodies=job.bodies, origins=drop_duplicates, fetch=surveyed.parts
        )
        steps.begin(
            "write tables",
            note=f"{planned.packets:,} packets; seams {surveyed.seams:,} bytes; {planned.again:,} of {planned.parts:,} "
            "parts read again",
        )
        rows = rows_by_split(surveyed, planned, job)
        twice = copies(planned.origins)
        whole = form != "parquet" or is_elsewhere(folder)
        by_spark = [name for name in names if whole or (variant and name == "bodies") or twice]
        if len(by_spark) > 1 and any(not task.made for task in planned.tasks):
            until.callback(rows.persist(DISK).unpersist)
        counts = dict.fromkeys([*names, *judgements], 0)
        ours = [name for name in names if name not in by_spark]
        written = _written(rows, ours, planned.names, folder, mode, run)
        rest = None
        if twice:
            rest = until.enter_context(
                without_copies(spark, twice, lambda name: table_frame(rows, name, planned.names))
            )
        for name in by_spark:
            counts[name] = _saved(table_frame(rows, name, planned.names), folder, name, form, mode, variant, rest)
        days = {made[0].split.path: date_of(span(made)[0]) for made in files if made[0].error is None}
    if judgements:
        points = by_point({full(path): day for path, day in days.items()}, known)
        steps.begin("judge", note=f"{len(points):,} capture points and days")
        with judged(spark, points, judgements, job.settings, stores) as rows:
            if whole:
                for name in judgements:
                    again = "overwrite-partitions" if known else mode
                    counts[name] = _saved(table_frame(rows, name, LearnedNames()), folder, name, form, again)
            else:
                places = [f"{name}/{one.partition}" for name in judgements for one in points] if known else ()
                written += _written(rows, judgements, LearnedNames(), folder, mode, run, places)
    for file in written:
        counts[file.table] += file.rows
    return RunOutcome(
        counts, planned.packets, len(splits), size, surveyed.seams, planned.parts, planned.again, planned.exchanges,
        planned.failed, days=days, dates=None if by_spark or whole else {file.date for file in written},
    )  # fmt: skip


def _written(
    rows: DataFrame, names: Sequence[str], learned: LearnedNames, folder: str, mode: str, run: str,
    again: Iterable[str] = (),
) -> list[hive.WrittenFile]:  # fmt: skip
    """Writes tables into a folder that all workers see; returns their files. again: partitions, as
    TABLE/date=…, whose rows these replace."""
    if not names:
        return []
    with staging(folder) as staged:
        files = write_rows(rows, names, learned, staged, run)
        places = {place for place in again if os.path.isdir(os.path.join(folder, place))}
        if mode == "overwrite-partitions":
            places |= {f"{found.table}/{found.partition}" for found in files}
        hive.place(folder, staged, files, names if mode == "overwrite" else places)
    for name in names:  # those without rows are tables too
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    return files


def _saved(
    frame: DataFrame, folder: str, name: str, form: str, mode: str, variant: bool = False, rest: Rest | None = None
) -> int:  # fmt: skip
    """Writes a table with Spark, in any format and file system; returns the number of rows. rest: drops duplicates."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if rest is not None:
        frame = rest(name, frame)
    frame = _shaped(frame, name, variant)
    seen = Observation()
    save(frame.observe(seen, F.count(F.lit(1)).alias("rows")), folder, name, form, hive.partitions_of(name), mode)
    try:
        return int(seen.get["rows"])
    except (Py4JError, KeyError):  # Delta makes a catalog's new table in a query of its own, which observes nothing
        return frame.count()


def _shaped(frame: DataFrame, name: str, variant: bool) -> DataFrame:
    if variant and name == "bodies":
        return frame.selectExpr("* except (body)", "try_parse_json(body) as body")
    return frame
