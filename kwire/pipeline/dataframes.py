"""Tables of captures as frames, which Spark makes in its tasks in one pass over the captures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kwire.errors import UnknownName
from kwire.pipeline.columns import nearest
from kwire.pipeline.failures import in_a_line
from kwire.pipeline.job import Job, rows_by_split, survey_splits, table_frame
from kwire.pipeline.paths import local
from kwire.pipeline.plan import stitch, survey_all, wanted
from kwire.pipeline.run import captures_of
from kwire.pipeline.source import body_texts
from kwire.pipeline.splits import SIZE, plan
from kwire.pipeline.stores import of_session
from kwire.tables.columns import COLUMNS, JUDGEMENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def opened(
    spark: SparkSession, paths: str | Sequence[str], tables: Sequence[str] = ("messages",), split_size: int = SIZE
) -> Iterator[dict[str, DataFrame]]:
    """The tables of captures, for as long as the context lasts. When it is entered, Spark reads the captures once, in
    its tasks, and keeps the rows on its executors' disks. split_size: bytes. Raises UnknownName, OSError,
    FilesUnreachable, SparkFailed."""
    paths = [paths] if isinstance(paths, str) else paths
    known = tuple(name for name in COLUMNS if name not in JUDGEMENTS)
    for table in tables:
        if table not in known:
            raise UnknownName("table", table, nearest(table, known))
    job, stores = Job(tuple(tables), bodies=body_texts(tables)), of_session(spark)
    with in_a_line(), ExitStack() as until:
        there = captures_of(spark, [local(path) for path in paths], tempfile.gettempdir(), stores, until)
        splits = plan(there, split_size, stores=stores)
        surveyed = until.enter_context(survey_splits(spark, splits, job, finals=True))
        files = survey_all(splits, lambda _: surveyed.surveys, job.settings, wanted(job.names))
        planned = stitch(files, job.names, job.settings, bodies=job.bodies, fetch=surveyed.parts)
        rows = rows_by_split(surveyed, planned, job)
        yield {table: table_frame(rows, table, planned.names) for table in tables}
