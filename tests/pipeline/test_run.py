"""Jobs that write tables: batches, streams in any order and in several runs, tasks and batches that run twice."""

from __future__ import annotations

import importlib.util
import os
import random
import socket
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from calls import Call

from kwire.errors import FilesUnreachable, NoReport, OutputError, SparkFailed
from kwire.pipeline import job as jobs
from kwire.pipeline.binary_files import bring
from kwire.pipeline.compact import rewrite, rewrites
from kwire.pipeline.job import Job
from kwire.pipeline.report import reports
from kwire.pipeline.rollups import ROLLUPS
from kwire.pipeline.run import run, session
from kwire.pipeline.steps import RunStep
from kwire.pipeline.stream import BatchStream, run_stream
from kwire.tables.columns import DEFAULT

FEW = ("messages", "exchanges", "connections", "quality")


@pytest.fixture
def parts(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> Callable[..., list[Path]]:
    """A capture in five files of a folder in, put there in this order."""
    packets = packets_of(unpacked("old39.pcap.gz"))
    ends = [0, 60, 190, 330, 505, len(packets)]
    source = tmp_path / "in"
    source.mkdir()

    def put(order: Iterable[int], when: int = 0) -> list[Path]:
        paths = []
        for turn, number in enumerate(order):
            path = save(tmp_path / f"{number}.pcap", packets[ends[number] : ends[number + 1]])
            os.utime(path, (1e9 + when + turn, 1e9 + when + turn))
            paths.append(path.rename(source / path.name))
        return paths

    return put


def test_a_batch_job_writes_the_tables_and_rollups(
    spark: Any,
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    expected: Call,
    written: Call,
) -> None:
    paths = [unpacked(name) for name in ("classic.pcap.gz", "notkafka.pcap")]
    run(spark, [str(paths[1])], str(tmp_path), Job(FEW), rollups=False)  # the next run takes its place
    steps, before = list[RunStep](), spark.sparkContext.getLocalProperty("spark.job.description")
    done = run(spark, [str(path) for path in paths], str(tmp_path), Job(DEFAULT), split_size=9000, watch=steps.append)
    assert {step.size for step in steps if step.name == "read"} <= {done.size}
    assert spark.sparkContext.getLocalProperty("spark.job.description") == before
    want = expected(paths, DEFAULT)
    assert written(tmp_path, DEFAULT) == want
    assert done.rows == {name: len(rows) for name, rows in want.items()}
    assert (tmp_path / "messages" / "date=2026-11-21" / "api=JoinGroup").is_dir()
    assert not list(tmp_path.glob(".kwire-*"))
    files = [path for name in DEFAULT for path in (tmp_path / name).rglob("*.parquet")]
    assert len(files) == len({path.parent for path in files})  # what several tasks write little of is in one file
    found = {report.name: report for report in reports(tmp_path)}
    assert list(found) == list(ROLLUPS)
    assert found["topics"].rows[0][:4] == ["classic-orders", 4, 3757, 200]
    assert ("notkafka.pcap", "not Kafka", "AMQP version 0.9.1", 1) in {tuple(row[:4]) for row in found["quality"].rows}


def test_a_run_that_adds_reads_what_no_run_has_read(
    spark: Any, tmp_path: Path, unpacked: Callable[[str], Path], expected: Call, written: Call
) -> None:
    paths = [unpacked(name) for name in ("kafkajs.pcap", "consumer848.pcap", "classic.pcap.gz")]
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(paths[0].read_bytes())
    out = tmp_path / "out"

    def add(*more: Path) -> tuple[int, int]:
        done = run(spark, list(map(str, more)), str(out), Job(FEW), rollups=False, incremental=True)
        return done.splits, done.known

    assert add(paths[0]) == (1, 0)
    assert add(*paths[:2], copy) == (1, 2)
    run(spark, [str(paths[2])], str(out), Job(FEW), rollups=False, mode="append")
    small = list(rewrites(out))
    assert {"messages", "exchanges"} <= {found.table for found in small}
    for found in small:
        rewrite(found, out)
    assert written(out, FEW) == expected(paths, FEW)
    assert add(*paths) == (0, 3)
    with pytest.raises(OutputError, match="this is there already"):
        run(spark, [str(paths[2])], str(out), Job(FEW), rollups=False, mode="error")
    run(spark, [str(paths[0])], str(out), Job(("messages",)), rollups=False, mode="overwrite-partitions")
    apis = {eval(row)["api"] for row in expected(paths[:1], ["messages"])["messages"]}
    rest = [row for row in expected(paths, ["messages"])["messages"] if eval(row)["api"] not in apis]
    assert written(out, ["messages"])["messages"] == sorted(rest + expected(paths[:1], ["messages"])["messages"])


def test_other_formats_are_written_by_the_session(
    spark: Any,
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    expected: Call,
    written: Call,
) -> None:
    path = unpacked("kafkajs.pcap")
    run(spark, [str(path)], str(tmp_path), Job(FEW), form="orc", rollups=False)
    assert written(tmp_path, FEW, "orc") == expected([path], FEW)


def test_a_corrupt_file_fails_alone(
    spark: Any,
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    expected: Call,
    written: Call,
) -> None:
    good, bad = unpacked("kafkajs.pcap"), tmp_path / "bad.pcap.gz"
    bad.write_bytes(b"\x1f\x8bno gzip at all")
    done = run(spark, [str(good), str(bad)], str(tmp_path / "out"), Job(FEW), rollups=False)
    assert written(tmp_path / "out", ["messages"]) == expected([good], ["messages"])
    quality = written(tmp_path / "out", ["quality"])["quality"]
    assert (list(done.failed), len(quality)) == ([str(bad)], 1)
    assert "'what': 'damaged'" in quality[0]


def test_a_task_that_dies_is_done_again(
    spark: Any, tmp_path: Path, unpacked: Callable[[str], Path], expected: Call, written: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path, marks = unpacked("kafkajs.pcap"), tmp_path / "marks"
    marks.mkdir()
    surveying, writing = jobs._surveying, jobs._writing

    def once(what: str, inner: Any) -> Any:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            given = list(batches)
            mark = marks / what
            if given and not mark.exists():
                list(inner(given))  # the work is done, and then lost
                mark.touch()
                os._exit(3)
            rows: Iterable[Any] = inner(given)
            return rows

        return run

    monkeypatch.setattr(jobs, "_surveying", lambda *given: once("survey", surveying(*given)))
    monkeypatch.setattr(jobs, "_writing", lambda *given: once("write", writing(*given)))
    run(spark, [str(path)], str(tmp_path / "out"), Job(FEW), split_size=8000, rollups=False)
    assert sorted(mark.name for mark in marks.iterdir()) == ["survey", "write"]
    assert written(tmp_path / "out", FEW) == expected([path], FEW)


def test_a_stream_in_several_runs_gives_the_tables_of_a_batch(
    spark: Any, tmp_path: Path, parts: Call, expected: Call, written: Call
) -> None:
    out, paths = tmp_path / "out", []
    for order, when in (((0, 1), 0), ((2, 3, 4), 50)):
        paths += parts(order, when)
        run_stream(
            spark, str(tmp_path / "in"), str(out), Job(DEFAULT), split_size=9000, lateness=0, most=2, rollups=False
        )  # fmt: skip
        assert written(out, DEFAULT) == expected(paths, DEFAULT)


def test_a_stream_takes_files_in_any_order(
    spark: Any, tmp_path: Path, parts: Call, expected: Call, written: Call
) -> None:
    order = random.Random(7).sample(range(5), 5)
    paths = sorted(parts(order))
    out = tmp_path / "out"
    run_stream(spark, str(tmp_path / "in"), str(out), Job(FEW), lateness=1 << 60, most=2, rollups=False)
    assert written(out, FEW) == expected(paths, FEW)


class Killed(BaseException):
    """The driver is gone."""


@pytest.mark.parametrize("before", ["write", "save", "end"])
def test_a_driver_that_dies_in_a_batch_loses_and_doubles_nothing(
    spark: Any, tmp_path: Path, parts: Call, expected: Call, written: Call,
    monkeypatch: pytest.MonkeyPatch, before: str,
) -> None:  # fmt: skip
    paths = [str(path) for path in parts(range(5))]
    out = str(tmp_path / "out")
    batches = [paths[:2], paths[2:4], paths[4:]]

    def stream() -> BatchStream:
        return BatchStream(spark, out, Job(FEW), 9000, 0)

    def die(*_: Any) -> None:
        raise Killed

    stream().batch(0, batches[0])
    with monkeypatch.context() as patch:
        if before == "write":
            patch.setattr("kwire.pipeline.stream.write_rows", die)
        elif before == "save":
            patch.setattr(BatchStream, "_save", die)
        with pytest.raises(Killed) if before != "end" else nullcontext():
            stream().batch(1, batches[1])
    stream().batch(1, batches[1])  # Spark asks again for what it does not know to be done
    stream().batch(2, batches[2])
    stream().finish()
    assert written(tmp_path / "out", FEW) == expected([Path(path) for path in paths], FEW)


def test_tables_go_to_another_file_system(
    spark: Any,
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    expected: Call,
    written: Call,
) -> None:
    path, far = unpacked("kafkajs.pcap"), tmp_path / "far"
    far.mkdir()
    spark.conf.set("fs.viewfs.mounttable.lake.link./all", far.as_uri())
    for rollups in (False, True):  # the second run takes the place of the first
        run(spark, [path.as_uri()], "viewfs://lake/all/a", Job(FEW), rollups=rollups)
    assert written(far / "a", FEW) == expected([path], FEW)
    assert [report.name for report in reports(far / "a")] == ["latency", "errors", "quality"]


@pytest.mark.parametrize(
    ("folder", "form", "error", "said"),
    [
        ("nofs://x/y", "parquet", SparkFailed, "nofs"),
        ("out", "nothing", SparkFailed, "Failed to find the data source: nothing"),
    ],
)
def test_what_cannot_be_written_is_said_before_any_work(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, form: str, error: type, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        run(spark, ["never read"], folder, Job(FEW), form=form)


@pytest.mark.parametrize(
    ("remote", "said"),
    [("sc://127.0.0.1:{port}", "no server of Spark Connect answers: "), ("http://127.0.0.1", "write sc://HOST:PORT")],
)
def test_a_server_of_spark_connect_that_is_not_there_is_said_at_once(remote: str, said: str) -> None:
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("grpc_status") is None:
        pytest.skip("Spark Connect needs pyspark[connect]")
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(SparkFailed, match=said):
            session(remote=remote.format(port=taken.getsockname()[1]))


def test_a_stream_from_another_file_system_keeps_what_waits(
    spark: Any, tmp_path: Path, parts: Call, expected: Call, written: Call
) -> None:
    out, paths = tmp_path / "out", []
    landed = out / ".kwire-stream" / "landed"
    for order, when, lateness in (((0, 1), 0, 1 << 60), ((2, 3, 4), 50, 0)):
        paths += parts(order, when)
        spark.conf.set("fs.viewfs.mounttable.arriving.link./in", (tmp_path / "in").as_uri())
        run_stream(
            spark, "viewfs://arriving/in", out.as_uri(), Job(FEW), split_size=9000, lateness=lateness, most=2,
            rollups=False,
        )  # fmt: skip
        assert written(out, FEW) == expected(paths, FEW)
        assert len(list(landed.glob("*/*/*"))) == (2 if lateness else 0)


def test_there_is_no_report_without_rollups(tmp_path: Path) -> None:
    with pytest.raises(NoReport, match="no rollups there"):
        list(reports(tmp_path))


def test_captures_in_another_file_system_are_brought_here_and_then_cut(
    spark: Any, tmp_path: Path, packets_of: Call, save: Call, unpacked: Callable[[str], Path],
    expected: Call, written: Call,
) -> None:  # fmt: skip
    far = tmp_path / "far"
    far.mkdir()
    packets = packets_of(unpacked("kafkajs.pcap"))
    paths = [save(far / "a %41#b.pcap", packets[:50]), save(far / "c.pcap", packets[50:])]
    (far / "_SUCCESS").touch()
    spark.conf.set("fs.viewfs.mounttable.kwire.link./captures", far.as_uri())
    out = tmp_path / "out"
    done = run(spark, ["viewfs://kwire/captures"], str(out), Job(FEW), split_size=6000, rollups=False)
    assert written(out, FEW) == expected(paths, FEW)
    assert done.splits > 2
    assert sorted(path.name for path in out.iterdir()) == sorted([*FEW, "files"])
    landed = bring(spark, [f"file:{paths[0]}"], str(tmp_path / "landed"))
    assert [Path(path).name for path in landed] == ["a %41#b.pcap"]
    assert Path(landed[0]).read_bytes() == paths[0].read_bytes()
    for source, said in (("viewfs://kwire/captures/none.pcap", "does not exist"), ("nofs://x/y.pcap", "nofs")):
        with pytest.raises(FilesUnreachable, match=f"{source}: .*{said}"):
            run(spark, [source], str(out), Job(FEW), rollups=False)
