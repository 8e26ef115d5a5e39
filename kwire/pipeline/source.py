"""spark.read.format("kwire"): captures as a Spark data source; its readers yield Arrow batches.

The captures of each folder (capture_folders.py) are joined for themselves. Those that fit into one split are read by
one task, as kwire table reads them, several such folders in a task; they are only listed before. For larger ones the
driver surveys all splits first (plan.py), to find what each may read by itself and the connections' names: Spark plans
a Python source in a process without a session, and its tasks cannot ask each other. dataframes.py has the survey
in tasks. Only columns of the user's schema are made: Spark tells a Python source of no other column pruning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from kwire.errors import KwireError
from kwire.pipeline.capture_folders import CaptureFolder, Values, every
from kwire.pipeline.columns import AskedColumns, asked, ddl
from kwire.pipeline.options import PipelineOptions, in_short
from kwire.pipeline.plan import SUMS, Task, TaskPlan, read_task, stitch, survey_all, wanted
from kwire.pipeline.pushdown import Test, test_of
from kwire.pipeline.splits import Split, plan
from kwire.pipeline.stores import brought
from kwire.pipeline.stream_source import KwireStream
from kwire.pipeline.workers import LEAST, few_collections, surveyor
from kwire.tables.build import BodyTexts, Builder, Emit, read_into
from kwire.tables.columns import COLUMNS, JUDGEMENTS

TASK, OPENED = 32 << 20, 1 << 16  # bytes of small folders' captures in a task; what opening a file counts as

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class KwireSource(DataSource):
    """options: as in options.py; errors in them are raised at load()."""

    hadoop: Mapping[str, str] = {}  # settings of file systems, from the session that it is registered with

    @in_short
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = PipelineOptions.of(options, self.hadoop)

    @classmethod
    def name(cls) -> str:
        return "kwire"

    @in_short
    def schema(self) -> str:
        return ", ".join([ddl(self._options.table), *(f"`{key}` string" for key in self._options.divided_by())])

    @in_short
    def reader(self, schema: StructType) -> KwireReader:
        return KwireReader(self._options, schema, self._options.divided_by())

    def streamReader(self, schema: StructType) -> KwireStream:
        reader = self.reader(schema)
        return KwireStream(self._options, reader.planned, reader.read, reader.bodies)


class Rows(InputPartition):
    """Rows made by the driver. values: of the folder's keys."""

    def __init__(self, data: bytes, values: Values) -> None:
        self.data, self.values = data, values


class Reads(InputPartition):
    """A split to be read."""

    def __init__(self, task: Task, plan: TaskPlan, values: Values) -> None:
        self.task, self.names, self.values = replace(task, ordinals={}), plan.names, values


class WholeFolders(InputPartition):
    """Folders to be read as a whole each, without a survey before."""

    def __init__(self) -> None:
        self.folders: list[CaptureFolder] = []
        self.left = TASK


class KwireReader(DataSourceReader):
    """Reads one table, with the columns of this schema; filters may test them. keys: of the captures' folders."""

    def __init__(self, options: PipelineOptions, schema: StructType, keys: Sequence[str]) -> None:
        self._options, self._wanted, self._keys = options, schema, keys
        self._tests: list[Test] = []

    @cached_property
    def _asked(self) -> AskedColumns:
        return asked(self._options.table, self._wanted, self._keys)

    @property
    def _columns(self) -> list[str]:
        """The table's own columns that are made; one at least, of which there are rows."""
        made = [name for name in self._asked.names if name not in self._keys]
        return made or [COLUMNS[self._options.table][0][0]]

    @property
    def bodies(self) -> BodyTexts | None:
        return body_texts([self._options.table])

    @in_short
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes the filters that can be tested on Arrow columns; returns the others."""
        tests = [(filter, test_of(filter, self._asked.schema)) for filter in filters]
        self._tests += [test for _, test in tests if test is not None]
        return [filter for filter, test in tests if test is None]

    @in_short
    def partitions(self) -> Sequence[InputPartition]:
        assert self._asked.names  # raises for a wrong schema before anything is read
        options, stores = self._options, self._options.stores()
        packed, out = WholeFolders(), list[InputPartition]()
        for folder in options.folders(stores, self._keeps if self._tests else every):
            if options.table not in JUDGEMENTS and folder.size > min(LEAST, options.split_size):
                splits = plan(folder.paths, options.split_size, stores=stores)
                if len(splits) > 1:
                    out += self.planned(self._plan(splits), folder.values)
                    continue
            cost = folder.size + OPENED * len(folder.paths)
            if packed.folders and cost > packed.left:
                out.append(packed)
                packed = WholeFolders()
            packed.folders.append(folder)
            packed.left -= cost
        return [*out, packed] if packed.folders or not out else out

    def planned(self, made: TaskPlan, values: Values = ()) -> Sequence[InputPartition]:
        """The partitions of a plan: its rows, and its splits to be read."""
        table = self._options.table
        assert self._asked.names
        out: list[InputPartition] = [Rows(_bytes([batch for _, batch in made.rows], table), values)]
        if table not in SUMS:
            out += [Reads(task, made, values) for task in made.tasks]
        return out

    def _keeps(self, key: str, value: str | None) -> bool:
        """Whether the filters leave anything of what lies in folders of this key and value."""
        name = next((name for name in self._asked.schema.names if name.lower() == key.lower()), None)
        if key not in self._keys or name is None:
            return True
        one = pa.RecordBatch.from_arrays([pa.array([value], pa.string())], [name])
        return all(bool(test.mask(one)[0].as_py()) for test in self._tests if test.column == name)

    @in_short
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        with few_collections():
            self._read(partition, found)
        return iter(found)

    def _read(self, partition: InputPartition, found: list[pa.RecordBatch]) -> None:
        options = self._options
        values: dict[str, str | None] = {}

        def emit(_: str, batch: pa.RecordBatch) -> None:
            kept = self._kept(batch, values)
            if kept.num_rows:
                found.append(kept)

        if isinstance(partition, WholeFolders):
            for folder in partition.folders:
                values = dict(folder.values)
                self._folder(folder, emit, found)
            return
        assert isinstance(partition, Rows | Reads)
        values = dict(partition.values)
        if isinstance(partition, Rows):
            for batch in pa.ipc.open_stream(partition.data):
                emit(options.table, batch)
        else:
            read_task(
                partition.task, [options.table], emit, options.settings(), partition.names, bodies=self.bodies,
                columns=self._columns,
            )  # fmt: skip

    def _folder(self, folder: CaptureFolder, emit: Emit, found: list[pa.RecordBatch]) -> None:
        options, before, stores = self._options, len(found), self._options.stores()
        with TemporaryDirectory() as near:
            far = [(path, stores.of(path)) for path in folder.paths]
            paths = [path if store is None else brought(path, store, near) for path, store in far]
            try:
                self._whole(paths, emit)
            except KwireError:  # one of the files cannot be read: by splits, the others still can
                if options.table in JUDGEMENTS:
                    raise
                del found[before:]
                for part in self.planned(self._plan(plan(paths, options.split_size), jobs=1), folder.values):
                    self._read(part, found)

    def _whole(self, paths: list[str], emit: Emit) -> None:
        builder = Builder([self._options.table], emit, self.bodies, columns=self._columns)
        builder.finish(read_into(builder, paths, self._options.settings()))

    def _plan(self, splits: Sequence[Split], jobs: int | None = None) -> TaskPlan:
        settings, tables = self._options.settings(), [self._options.table]
        want = wanted(tables)
        files = survey_all(splits, surveyor(settings, want, jobs), settings, want)
        return stitch(files, tables, settings, bodies=self.bodies)

    def _kept(self, batch: pa.RecordBatch, values: Mapping[str, str | None]) -> pa.RecordBatch:
        """The rows that pass the filters, in the user's schema. values: of the folder's keys."""
        names, schema = self._asked
        arrays = [
            pa.repeat(pa.scalar(values.get(name), kind), batch.num_rows) if name in self._keys
            else batch.column(name).cast(kind, safe=not pa.types.is_timestamp(kind))
            for name, kind in zip(names, schema.types, strict=True)
        ]  # fmt: skip
        out = pa.RecordBatch.from_arrays(arrays, schema=schema)
        for test in self._tests:
            out = out.filter(test.mask(out))
        return out


def body_texts(tables: Iterable[str]) -> BodyTexts | None:
    """How bodies become JSON, without secrets, where one of the tables holds them."""
    if "bodies" not in tables:
        return None
    from kwire.render.bodies import BodyRenderer

    return BodyRenderer()


def _bytes(batches: list[pa.RecordBatch], table: str) -> bytes:
    from kwire.tables.schemas import SCHEMAS

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMAS[table]) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data
