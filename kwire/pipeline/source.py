"""spark.read.format("kwire"): captures as a Spark data source; its readers yield Arrow batches.

Where a split begins, what of its connections it may read by itself and how they are called is found on the driver,
which surveys all splits before tasks are made (plan.py); each task then reads its own split.
kwire.pipeline.register(spark) makes the format known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from kwire.pipeline.arrivals import KwireStream
from kwire.pipeline.columns import ddl, narrowed
from kwire.pipeline.options import Options
from kwire.pipeline.plan import SUMS, Plan, Task, read_task, stitch, survey_all, wanted
from kwire.pipeline.pushdown import Test, test_of
from kwire.pipeline.splits import expand, plan
from kwire.pipeline.workers import surveyor

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class KwireSource(DataSource):
    """options: table (messages), splitSize (128m), port, host; see options.py."""

    @classmethod
    def name(cls) -> str:
        return "kwire"

    def schema(self) -> str:
        return ddl(Options.of(self.options).table)

    def reader(self, schema: StructType) -> KwireReader:
        return KwireReader(Options.of(self.options), schema.fieldNames())

    def streamReader(self, schema: StructType) -> KwireStream:
        reader = self.reader(schema)
        return KwireStream(Options.of(self.options), reader.planned, reader.read)


class Rows(InputPartition):
    """Rows that are there already."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Reads(InputPartition):
    """A split that is to be read."""

    def __init__(self, task: Task, plan: Plan) -> None:
        self.task, self.names = replace(task, ordinals={}), plan.names


class KwireReader(DataSourceReader):
    """Of one table, these columns."""

    def __init__(self, options: Options, columns: Sequence[str]) -> None:
        self._options, self._columns = options, list(columns)
        self._schema = narrowed(options.table, self._columns)
        self._tests: list[Test] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes those that columns alone can answer."""
        for filter in filters:
            test = test_of(filter, self._options.table)
            if test is None:
                yield filter
            else:
                self._tests.append(test)

    def partitions(self) -> Sequence[InputPartition]:
        options, table = self._options, self._options.table
        settings = options.settings()
        splits = plan(expand(options.paths), options.split_size)
        if not splits:
            return [Rows(b"")]
        want = wanted([table])
        files = survey_all(splits, surveyor(settings, want), settings, want)
        return self.planned(stitch(files, [table], settings))

    def planned(self, made: Plan) -> Sequence[InputPartition]:
        """What is to be read of a plan, and what it has already."""
        table = self._options.table
        out: list[InputPartition] = [Rows(_bytes([batch for _, batch in made.rows], table))]
        if table not in SUMS:
            out += [Reads(task, made) for task in made.tasks]
        return out

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Rows):
            found: list[pa.RecordBatch] = list(pa.ipc.open_stream(partition.data)) if partition.data else []
        else:
            assert isinstance(partition, Reads)
            found = []
            options = self._options
            read_task(
                partition.task, [options.table], lambda _, batch: found.append(batch), options.settings(),
                partition.names,
            )  # fmt: skip
        for batch in found:
            for test in self._tests:
                batch = batch.filter(test.mask(batch))
            if batch.num_rows:
                yield batch.select(self._columns).cast(self._schema)


def _bytes(batches: list[pa.RecordBatch], table: str) -> bytes:
    from kwire.tables.schemas import SCHEMAS

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMAS[table]) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data
