"""spark.read.format("kwire"): captures as a Spark data source; its readers yield Arrow batches.

Captures that fit into one split are read by one task, as kwire table reads them. For larger ones the driver surveys all
splits first (plan.py), to find what each may read by itself and the connections' names; then each task reads its split.
Only columns of the user's schema are made: Spark tells a Python source of no other column pruning.
kwire.pipeline.register(spark) registers the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from kwire.errors import KwireError
from kwire.pipeline.columns import AskedColumns, asked, ddl
from kwire.pipeline.options import PipelineOptions, in_short
from kwire.pipeline.plan import SUMS, Task, TaskPlan, read_task, stitch, survey_all, wanted
from kwire.pipeline.pushdown import Test, test_of
from kwire.pipeline.splits import Split, plan
from kwire.pipeline.stream_source import KwireStream
from kwire.pipeline.workers import LEAST, few_collections, surveyor
from kwire.tables.build import BodyTexts, Builder, Emit, read_into
from kwire.tables.columns import JUDGEMENTS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class KwireSource(DataSource):
    """options: as in options.py; errors in them are raised at load()."""

    @in_short
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = PipelineOptions.of(options)

    @classmethod
    def name(cls) -> str:
        return "kwire"

    def schema(self) -> str:
        return ddl(self._options.table)

    def reader(self, schema: StructType) -> KwireReader:
        return KwireReader(self._options, schema)

    def streamReader(self, schema: StructType) -> KwireStream:
        reader = self.reader(schema)
        return KwireStream(self._options, reader.planned, reader.read, reader.bodies)


class Rows(InputPartition):
    """Rows made by the driver."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Reads(InputPartition):
    """A split to be read."""

    def __init__(self, task: Task, plan: TaskPlan) -> None:
        self.task, self.names = replace(task, ordinals={}), plan.names


class WholeFiles(InputPartition):
    """Files to be read as a whole, without a survey."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths


class KwireReader(DataSourceReader):
    """Reads one table, with the columns of this schema; filters may test them."""

    def __init__(self, options: PipelineOptions, schema: StructType) -> None:
        self._options, self._wanted = options, schema
        self._tests: list[Test] = []

    @cached_property
    def _asked(self) -> AskedColumns:
        return asked(self._options.table, self._wanted)

    @property
    def bodies(self) -> BodyTexts | None:
        """How bodies become JSON, without secrets, where they are what the table holds."""
        if self._options.table != "bodies":
            return None
        from kwire.render.bodies import BodyRenderer

        return BodyRenderer()

    @in_short
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes the filters that can be tested on Arrow columns; returns the others."""
        tests = [(filter, test_of(filter, self._asked.schema)) for filter in filters]
        self._tests += [test for _, test in tests if test is not None]
        return [filter for filter, test in tests if test is None]

    @in_short
    def partitions(self) -> Sequence[InputPartition]:
        assert self._asked.names  # raises for a wrong schema before anything is read
        paths = self._options.files()
        splits = plan(paths, self._options.split_size)
        if (
            self._options.table in JUDGEMENTS
            or len(splits) == 1
            or _size(splits) <= min(LEAST, self._options.split_size)
        ):
            return [WholeFiles(paths)]
        return self.planned(self._plan(splits))

    def planned(self, made: TaskPlan) -> Sequence[InputPartition]:
        """The partitions of a plan: its rows, and its splits to be read."""
        table = self._options.table
        assert self._asked.names
        out: list[InputPartition] = [Rows(_bytes([batch for _, batch in made.rows], table))]
        if table not in SUMS:
            out += [Reads(task, made) for task in made.tasks]
        return out

    @in_short
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        with few_collections():
            self._read(partition, found)
        return iter(found)

    def _read(self, partition: InputPartition, found: list[pa.RecordBatch]) -> None:
        options = self._options

        def emit(_: str, batch: pa.RecordBatch) -> None:
            kept = self._kept(batch)
            if kept.num_rows:
                found.append(kept)

        if isinstance(partition, Rows):
            for batch in pa.ipc.open_stream(partition.data):
                emit(options.table, batch)
        elif isinstance(partition, Reads):
            read_task(
                partition.task, [options.table], emit, options.settings(), partition.names, bodies=self.bodies,
                columns=self._asked.names,
            )  # fmt: skip
        else:
            assert isinstance(partition, WholeFiles)
            try:
                self._whole(partition.paths, emit)
            except KwireError:  # one of the files cannot be read: by splits, the others still can
                if options.table in JUDGEMENTS:
                    raise
                found.clear()
                for part in self.planned(self._plan(plan(partition.paths, options.split_size), jobs=1)):
                    self._read(part, found)

    def _whole(self, paths: list[str], emit: Emit) -> None:
        builder = Builder([self._options.table], emit, self.bodies, columns=self._asked.names)
        builder.finish(read_into(builder, paths, self._options.settings()))

    def _plan(self, splits: Sequence[Split], jobs: int | None = None) -> TaskPlan:
        settings, tables = self._options.settings(), [self._options.table]
        want = wanted(tables)
        files = survey_all(splits, surveyor(settings, want, jobs), settings, want)
        return stitch(files, tables, settings, bodies=self.bodies)

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass the filters, in the user's schema."""
        names, schema = self._asked
        arrays = [
            batch.column(name).cast(kind, safe=not pa.types.is_timestamp(kind))
            for name, kind in zip(names, schema.types, strict=True)
        ]
        out = pa.RecordBatch.from_arrays(arrays, schema=schema)
        for test in self._tests:
            out = out.filter(test.mask(out))
        return out


def _size(splits: Sequence[Split]) -> int:
    return sum(split.end - split.start for split in splits)


def _bytes(batches: list[pa.RecordBatch], table: str) -> bytes:
    from kwire.tables.schemas import SCHEMAS

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMAS[table]) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data
