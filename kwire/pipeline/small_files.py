"""Few files come of a run: small ones that its tasks wrote into the same partition are joined, again in tasks.

Tasks only add files to the staging folder, so that one that dies or runs twice does no harm.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from kwire.pipeline.compact import TARGET, merge
from kwire.pipeline.hive import WrittenFile
from kwire.pipeline.lake_files import Store, create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = 1 << 20  # bytes below which a file is joined with others
TASKS, OF_A_TASK = 8, 1 << 26  # most tasks for little, bytes of a task for much


def joined(
    spark: SparkSession, staged: str, files: Sequence[WrittenFile], tag: str, store: Store = None
) -> list[WrittenFile]:
    """The files with the small ones of each partition as one. tag: prefix of file names; store: of the folder."""
    groups: dict[tuple[str, str], list[list[WrittenFile]]] = {}
    left: dict[tuple[str, str], int] = {}
    total = 0
    for file in sorted(files):
        size, place = file.size, (file.table, file.partition)
        if size >= SMALL:
            continue
        if left.get(place, 0) < size:
            groups.setdefault(place, []).append([])
            left[place] = TARGET
        groups[place][-1].append(file)
        left[place] -= size
        total += size
    work = [group for found in groups.values() for group in found if len(group) > 1]
    if not work:
        return list(files)
    tasks = min(len(work), max(TASKS, total // OF_A_TASK))
    made = spark.range(0, len(work), 1, tasks).mapInArrow(_joining(work, staged, tag, store), "data binary").collect()
    gone = {file for group in work for file in group}
    return [file for file in files if file not in gone] + [pickle.loads(row.data) for row in made]


def _joining(work: Sequence[Sequence[WrittenFile]], staged: str, tag: str, store: Store) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                group = work[number]
                file = group[0]._replace(
                    file=f"{tag}-{uuid4().hex[:12]}-{group[0].table}.parquet", rows=sum(file.rows for file in group)
                )
                with create(_path(staged, file), store) as target:
                    merge([_path(staged, small) for small in group], target, store)
                yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(file)], pa.binary())], ["data"])

    return run


def _path(staged: str, file: WrittenFile) -> str:
    return os.path.join(staged, *file[:3])
