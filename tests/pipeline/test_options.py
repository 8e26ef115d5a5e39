"""What a reader's options and schema may say, and which filters are taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import KwireError, OptionError
from kwire.pipeline.columns import asked, ddl
from kwire.pipeline.options import PipelineOptions, in_short, size_of
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.stores import Stores
from kwire.tables.columns import COLUMNS


@pytest.mark.parametrize(
    ("text", "size"),
    [("128MiB", 128 << 20), ("64m", 64 << 20), ("512k", 512 << 10), ("1g", 1 << 30), ("4000", 4000), ("9 b", 9)],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "0", "m", "-1", "big", "1.5g"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(OptionError, match=f"{text} is no size"):
        size_of(text)


def test_options_in_any_case() -> None:
    found = PipelineOptions.of(
        {"PATH": "file:///caps/a.pcap", "Table": "exchanges", "splitsize": "1k", "PORT": "9092, 9093"}
    )
    assert found.paths == ("/caps/a.pcap",)
    assert (found.table, found.split_size, found.ports) == ("exchanges", 1024, frozenset({9092, 9093}))
    assert PipelineOptions.of({"path": "a", "fs.s3a.endpoint": "x"}, {"fs.a": "1"}).hadoop == {
        "fs.a": "1", "fs.s3a.endpoint": "x",
    }  # fmt: skip
    foreign = PipelineOptions.of({"path": "a", "header": "true"})
    assert foreign.table == "messages"
    several = PipelineOptions.of({"paths": '["a", "b"]', "maxFilesPerTrigger": "3", "lateness": "2", "host": "::1"})
    assert (several.paths, several.max_files, several.lateness) == (("a", "b"), 3, 2_000_000_000)
    assert several.hosts == frozenset({(0, 1)})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": "70000"}, "70000 is no port"),
        ({"host": "kafka"}, "kafka is no address"),
        ({"maxFilesPerTrigger": "few"}, "maxFilesPerTrigger: few is no number"),
        ({"table": "mesages"}, "no table mesages; did you mean messages"),
        ({"table": "x"}, "no table x; did you mean messages, exchanges, "),
        ({"splitsiez": "1m"}, "no option splitsiez; did you mean splitSize?"),
        ({"ports": "9092"}, "no option ports; did you mean port?"),
        ({"path": ""}, "no captures: load() needs a file, a folder or several of them"),
        ({"paths": "[]"}, "no captures: load() needs a file, a folder or several of them"),
    ],
)
def test_what_options_cannot_be(given: dict[str, str], said: str) -> None:
    with pytest.raises(KwireError) as caught:
        PipelineOptions.of({"path": "x.pcap"} | given)
    assert str(caught.value).startswith(said)


def test_files_of_paths(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", ".hidden", "sub/c.pcap", "empty/_done"):
        Path(tmp_path, name).parent.mkdir(exist_ok=True)
        Path(tmp_path, name).touch()

    def files(path: str, some: bool = True) -> list[str]:
        options, stores = PipelineOptions.of({"path": f"{tmp_path}/{path}"}), Stores()
        found = (
            [path for folder in options.folders(stores) for path in folder.paths] if some else options.arrived(stores)
        )
        return [str(Path(file).relative_to(tmp_path)) for file in found]

    assert files("") == ["a.pcap", "b.pcap"]
    assert files("?.pcap") == ["a.pcap", "b.pcap"]
    assert files("s*") == ["sub/c.pcap"]
    assert files("*.pcapng", some=False) == files("empty", some=False) == []
    for path, said in (("empty", "no captures there"), ("no.pcap", "no such file"), ("*.pcapng", "no such file")):
        with pytest.raises(OptionError, match=f"{path.replace('*', '.')}: {said}"):
            files(path)


def test_errors_are_told_without_the_frames_below() -> None:
    @in_short
    def work(error: Exception) -> None:
        raise error

    for error, said in (
        (OptionError("x is no port"), "x is no port"), (FileNotFoundError(2, "No such file", "a"), "a: No such file")
    ):  # fmt: skip
        with pytest.raises(OptionError) as caught:
            work(error)
        assert str(caught.value) == said
        assert [entry.name for entry in caught.traceback][1:] == ["tell"]


@pytest.mark.parametrize(
    ("path", "here"),
    [
        ("file:///a%20b#c", "/a%20b#c"), ("file:/a", "/a"), ("a%20b:c", "a%20b:c"), ("C:/x", "C:/x"),
        ("hdfs://h/x", None), ("s3a://bucket/x", None), ("GS:/x", None),
    ],
)  # fmt: skip
def test_which_paths_are_of_this_machine(path: str, here: str | None) -> None:
    assert is_elsewhere(path) is (here is None)
    assert here is None or local(path) == here


def test_columns_of_every_table_have_a_type() -> None:
    assert all(f"`{column}` " in ddl(table) for table, columns in COLUMNS.items() for column, _, _ in columns)


def test_columns_of_a_users_schema() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    names, schema = asked(
        "messages", types.StructType().add("Size", "long").add("api", "string").add("errors", "integer")
    )
    assert (names, schema.names) == (["size", "api", "errors"], ["Size", "api", "errors"])
    assert [str(kind) for kind in schema.types] == ["int64", "string", "int32"]
    for name, kind, said in (
        ("sise", "integer", "no column sise; did you mean size"),
        ("size", "short", "messages: size is int, not smallint"),
        ("time", "long", "messages: time is timestamp, not bigint"),
    ):  # fmt: skip
        with pytest.raises(KwireError, match=said):
            asked("messages", types.StructType().add(name, kind))


def test_filters_as_tests() -> None:
    pytest.importorskip("pyspark")
    import pyarrow as pa
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNull, Not, StringStartsWith

    from kwire.pipeline.pushdown import test_of

    batch = pa.RecordBatch.from_pydict({
        "api": pa.array(["Fetch", "Produce", None]), "size": pa.array([5, 50, 500], pa.int32())
    })  # fmt: skip
    cases = [
        (EqualTo(("api",), "Fetch"), [True, False, False]),
        (Not(EqualTo(("api",), "Fetch")), [False, True, False]),
        (In(("size",), (5, 500)), [True, False, True]),
        (GreaterThan(("size",), 40), [False, True, True]),
        (IsNull(("api",)), [False, False, True]),
        (Not(IsNull(("api",))), [True, True, False]),
        (StringStartsWith(("api",), "Pro"), [False, True, False]),
    ]
    for filter, want in cases:
        test = test_of(filter, batch.schema)
        assert test is not None
        assert [bool(found) for found in test.mask(batch).fill_null(False).to_pylist()] == want
    assert test_of(EqualTo(("api", "deeper"), 1), batch.schema) is None
    assert test_of(EqualTo(("kind",), "request"), batch.schema) is None
