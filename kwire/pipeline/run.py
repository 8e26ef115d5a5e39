"""kwire pipeline run: captures to a folder of tables and rollups."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kwire.errors import NoFolder
from kwire.pipeline import hive
from kwire.pipeline.binary_files import bring
from kwire.pipeline.duplicates import NEEDED, Copy, copies, named_apart, without_copies
from kwire.pipeline.failures import in_a_line
from kwire.pipeline.formats import refuse_where_there_is, save, table_of
from kwire.pipeline.job import Job, survey_splits, write_rows
from kwire.pipeline.ledger import Ledger, ToRead, enter, running
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.plan import stitch, survey_all, wanted
from kwire.pipeline.rollups import ROLLUPS, write_rollups
from kwire.pipeline.splits import SIZE, expand, plan
from kwire.pipeline.stores import Stores, brought, of_session
from kwire.staging import staging
from kwire.tables.build import build
from kwire.tables.columns import JUDGEMENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kwire.pipeline.hive import WrittenFile


@dataclass(slots=True)
class RunOutcome:
    """What a run did. rows: by table; seams: bytes that travelled; parts, again: of connections, and how many had to be
    read a second time; failed: files that could not be read, with why; known, grown: how many files earlier
    runs had read, and which of these became longer since."""

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


def session(
    master: str | None = None, name: str = "kwire", settings: Mapping[str, str] | None = None
) -> SparkSession:  # fmt: skip
    """The session that there is, or a new one with these settings. Raises NoSpark when Spark cannot be."""
    from kwire.pipeline import need_spark

    need_spark()
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    builder = builder.config("spark.ui.showConsoleProgress", "false").config(
        "spark.sql.execution.arrow.pyspark.enabled", "true"
    )
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # under spark-submit its configuration says what is logged
        builder = builder.config("spark.log.level", "OFF")
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    with in_a_line():
        return builder.getOrCreate()


def run(
    spark: SparkSession, paths: Sequence[str], folder: str, job: Job, *, split_size: int = SIZE, form: str = "parquet",
    rollups: bool = True, variant: bool = False, drop_duplicates: bool = False, work: str | None = None,
    mode: str = "overwrite", incremental: bool = False,
) -> RunOutcome:  # fmt: skip
    """Reads captures into folder/TABLE/. variant: bodies as Spark's
    type of that name. drop_duplicates: what several points captured is there once, as copies.py says. work: where all
    workers see what is under way; the folder itself, unless it is in another file system. mode: one of formats.MODES,
    for the tables; rollups are always of all that is there. incremental: only files that no run has read yet, whose
    rows are added; Parquet in a folder of this machine's only. Raises OSError, OutputError, SameNames,
    FilesUnreachable, NoFolder, SparkFailed."""
    paths, folder = [local(path) for path in paths], local(folder)
    if mode == "error":
        refuse_where_there_is(spark, folder, job.names, form)
    if not is_elsewhere(folder) and mode.startswith("overwrite") and not incremental:
        hive.spare(
            folder,
            [*job.names, *(f"rollups/{name}" for name in ROLLUPS if rollups)],
            [path for path in paths if not is_elsewhere(path)],
        )
    ours = form == "parquet" and not is_elsewhere(folder)
    with (
        in_a_line(), staging(local(work) if work else _workplace(spark, folder)) as staged,
        running(folder) if ours else nullcontext("run") as run,
    ):  # fmt: skip
        _try_out(spark, folder, form, staged)
        stores = of_session(spark)
        chosen = ToRead(_found(spark, paths, staged, stores))
        if incremental:
            mode, chosen = "append", Ledger(folder, job.names).choose(chosen.new, stores)
        if incremental and not chosen.new:
            done = RunOutcome(dict.fromkeys(job.names, 0))
        else:
            done = _tables(
                spark, chosen.new, folder, job, split_size, form, variant, drop_duplicates, mode, run, staged, stores
            )
            if ours:
                read = [path for path in chosen.new if path not in done.failed]
                enter(folder, run, job.names, read, anew=mode == "overwrite", stores=stores)
            if rollups:
                write_rollups(spark, folder, job.names, form)
    done.known, done.grown = len(chosen.known), chosen.grown
    return done


def _workplace(spark: SparkSession, folder: str) -> str:
    if not is_elsewhere(folder):
        return folder
    if re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master or ""):
        return tempfile.gettempdir()
    raise NoFolder(f"{folder}: on a cluster this needs --work DIR too, a folder that all workers see")


def _try_out(spark: SparkSession, folder: str, form: str, staged: str) -> None:
    """Raises what Spark says when it cannot write there, or in this format: before hours of work, not behind them."""
    if is_elsewhere(folder):
        path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]
        path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).mkdirs(path)
    if form != "parquet":
        save(spark.range(0), staged, "trial", form)


def _found(spark: SparkSession, paths: Sequence[str], staged: str, stores: Stores) -> list[str]:
    """The captures. What Arrow cannot open where it is, Spark brings to where workers see it."""
    here = expand([path for path in paths if not is_elsewhere(path)])
    far = [path for path in paths if is_elsewhere(path)]
    there = [found for path in far if stores.of(path) for found in stores.listed(path)]
    rest = [path for path in far if not stores.of(path)]
    return here + there + (bring(spark, rest, os.path.join(staged, "landed")) if rest else [])


def _tables(
    spark: SparkSession, there: Sequence[str], folder: str, job: Job, split_size: int, form: str, variant: bool,
    drop_duplicates: bool, mode: str, run: str, staged: str, stores: Stores,
) -> RunOutcome:  # fmt: skip
    names, judged = job.names, [name for name in job.names if name in JUDGEMENTS]
    job = replace(job, names=tuple(name for name in names if name not in judged))
    if drop_duplicates:
        named_apart(there)
        job = replace(job, names=tuple(dict.fromkeys([*job.names, *NEEDED])))
    splits = plan(there, split_size, stores=stores)
    surveyed = survey_splits(spark, splits, job, staged, finals=not drop_duplicates)
    files = survey_all(splits, lambda _: surveyed.surveys, job.settings, wanted(job.names))
    planned = stitch(files, job.names, job.settings, bodies=job.bodies, origins=drop_duplicates)
    written = write_rows(surveyed, planned, job, staged, run)
    if judged:
        good = [path for path in there if path not in planned.failed]
        written += _judged(good, judged, job, staged, run, stores)
    rows = dict.fromkeys(names, 0)
    for found in written:
        if found.table in rows:
            rows[found.table] += found.rows
    rows |= _placed(spark, written, names, folder, staged, form, variant, copies(planned.origins), mode)
    return RunOutcome(
        rows, planned.packets, len(splits), sum(split.end - split.start for split in splits), surveyed.seams,
        planned.parts, planned.again, planned.exchanges, planned.failed,
    )  # fmt: skip


def _judged(
    paths: Sequence[str], names: Sequence[str], job: Job, staged: str, run: str, stores: Stores
) -> list[WrittenFile]:  # fmt: skip
    """Tables that judge captures as a whole: they are read once more, from beginning to end, here."""
    rows = hive.Hive(staged, f"{run}-judged")
    with tempfile.TemporaryDirectory() as near:
        here = [path if (store := stores.of(path)) is None else brought(path, store, near) for path in paths]
        build(here, names, rows.write, job.settings)
    return rows.close()


def _placed(
    spark: SparkSession, written: Sequence[WrittenFile], names: Sequence[str], folder: str, staged: str, form: str,
    variant: bool, twice: Sequence[Copy], mode: str,
) -> dict[str, int]:  # fmt: skip
    """Brings staged tables to their places; how many rows they have now, where that changed."""
    if twice:
        with without_copies(spark, twice, lambda name: _staged(spark, staged, name)) as rest:
            one_by_one = [name for name in names if name not in JUDGEMENTS]
            convert(spark, staged, folder, [name for name in names if name in JUDGEMENTS], form, mode)
            return convert(spark, staged, folder, one_by_one, form, mode, variant, rest)
    whole = form != "parquet" or is_elsewhere(folder)
    by_spark = [name for name in names if whole or (variant and name == "bodies")]
    moved = [name for name in names if name not in by_spark]
    if moved:
        files = [found for found in written if found.table in moved]
        places = {f"{found.table}/{found.partition}" for found in files} if mode == "overwrite-partitions" else set()
        hive.place(folder, staged, files, moved if mode == "overwrite" else places, keep=True)
        for name in moved:  # those without rows are tables too
            os.makedirs(os.path.join(folder, name), exist_ok=True)
    convert(spark, staged, folder, by_spark, form, mode, variant)
    return {}


def convert(
    spark: SparkSession, staged: str, folder: str, names: Sequence[str], form: str, mode: str, variant: bool = False,
    rest: Callable[[str, DataFrame], DataFrame] | None = None,
) -> dict[str, int]:  # fmt: skip
    """Tables of the run as the session writes them: in another format, as orc, delta, iceberg; in another file system;
    bodies as variants. rest: what of each table is written; gives how many rows that was."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    out = {}
    for name in names:
        frame = _staged(spark, staged, name)
        if rest is not None:
            frame = rest(name, frame)
        if variant and name == "bodies":
            frame = frame.selectExpr("* except (body)", "try_parse_json(body) as body")
        seen = Observation()
        if rest is not None:
            frame = frame.observe(seen, F.count(F.lit(1)).alias("rows"))
        save(frame, folder, name, form, ("date", "api") if hive.has_api(name) else ("date",), mode)
        if rest is not None:
            out[name] = int(seen.get["rows"])
    return out


def _staged(spark: SparkSession, staged: str, name: str) -> DataFrame:
    os.makedirs(os.path.join(staged, name), exist_ok=True)
    return table_of(spark, staged, name)
