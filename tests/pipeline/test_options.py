"""What a reader's options may say, and which filters are taken."""

from __future__ import annotations

import pytest

from kwire.errors import UnknownName
from kwire.pipeline.addresses import is_elsewhere, local
from kwire.pipeline.columns import ddl, narrowed
from kwire.pipeline.options import OptionError, Options, size_of
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
    found = Options.of({"PATH": "file:///caps/a.pcap", "Table": "exchanges", "splitsize": "1k", "PORT": "9092, 9093"})
    assert found.paths == ("/caps/a.pcap",)
    assert (found.table, found.split_size, found.ports) == ("exchanges", 1024, frozenset({9092, 9093}))
    several = Options.of({"paths": '["a", "b"]', "maxFilesPerTrigger": "3", "lateness": "2", "host": "::1"})
    assert (several.paths, several.max_files, several.lateness) == (("a", "b"), 3, 2_000_000_000)
    assert several.hosts == frozenset({(0, 1)})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": "70000"}, "70000 is no port"),
        ({"path": "hdfs://name/x.pcap"}, "hdfs://name/x.pcap is not on this machine"),
        ({"host": "kafka"}, "kafka is no address"),
        ({"maxFilesPerTrigger": "few"}, "maxFilesPerTrigger: few is no number"),
    ],
)
def test_what_options_cannot_be(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Options.of(given)


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
    assert narrowed("messages", ["size", "api"]).names == ["size", "api"]
    with pytest.raises(UnknownName, match="no column sise"):
        narrowed("messages", ["sise"])


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
        test = test_of(filter, "messages")
        assert test is not None
        assert [bool(found) for found in test.mask(batch).fill_null(False).to_pylist()] == want
    assert test_of(EqualTo(("api", "deeper"), 1), "messages") is None
    assert test_of(EqualTo(("nothing",), 1), "messages") is None
