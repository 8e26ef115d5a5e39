"""kwire pipeline against kwire table, in CPU seconds: python tests/bench/pipeline.py [CAPTURE...] [--shapes short,...]

    [--one] [--grow 100,500,2000] [--small 10000] [--tables messages] [--split-size 64] [--master local[1]] [--core]

Of each capture, a row: CPU seconds of kwire table --jobs 1, of a first run on Spark with its start, of a second run in
the same session and how they are shared between Spark's JVM, its Python workers and the driver; the second over kwire
table; the largest Python worker and kwire table's peak; bytes of seams in percent of the input, parts read again;
files and rows of both, and whether the rows are equal, whatever their order. All processes are counted, also those that
ended. --shapes: captures of shapes.py, --packets each; --one: a capture in which one connection carries everything;
--grow: captures of so many MB; --small: a folder of so many captures; --core: the steps without Spark too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shapes import SHAPES
from traffic import make

from kwire.capture.files import open_capture
from kwire.pipeline import plan as planning
from kwire.pipeline.provisional import fixed
from kwire.pipeline.row_bytes import RowBytes, rows_of
from kwire.pipeline.splits import expand, plan
from kwire.session.reader import Settings

PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
PACKETS = 7_300  # that traffic.py makes of a MB
WORKER, TABLE = b"pyspark.daemon", b"kwire.cli.main"
SMALL = 100  # packets of a small file
COLUMNS = (
    "capture", "packets", "MB", "table", "cold", "warm", "JVM", "workers", "driver", "warm / table", "worker MB",
    "table MB", "seams", "again", "files", "rows",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*", type=Path)
    parser.add_argument("--shapes", default="", metavar="SHAPE,SHAPE")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--grow", default="", metavar="MB,MB")
    parser.add_argument("--small", type=int, default=0, metavar="FILES")
    parser.add_argument("--tables", default="messages")
    parser.add_argument("--split-size", type=int, default=64, metavar="MB")
    parser.add_argument("--master", default="local[1]")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--on-spark", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.on_spark:
        print(json.dumps(on_spark(given.captures[0], given)))
        return
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for capture in captures(given):
        of_capture(capture, given)


def captures(given: argparse.Namespace) -> Iterator[Path]:
    """Those that are given, and those that are made for the time of their turn."""
    yield from given.captures
    wanted: list[tuple[str, Callable[[Path], object]]] = []
    for shape in filter(None, given.shapes.split(",")):
        wanted.append((f"{shape}.pcap", lambda path, shape=shape: SHAPES[shape](path, given.packets)))  # type: ignore[misc]
    if given.one:
        wanted.append(("one-connection.pcap", lambda path: make(path, given.packets, connections=1)))
    for size in map(int, filter(None, given.grow.split(","))):
        wanted.append((f"{size}MB.pcap", lambda path, size=size: make(path, size * PACKETS)))  # type: ignore[misc]
    if given.small:
        wanted.append((f"{given.small} files", lambda path: small(path, given.small)))
    for name, makes in wanted:
        with tempfile.TemporaryDirectory() as folder:
            makes(Path(folder, name))
            yield Path(folder, name)


def small(folder: Path, files: int) -> None:
    """A folder of captures that follow each other, of SMALL packets each."""
    with tempfile.TemporaryDirectory() as made:
        SHAPES["short"](Path(made, "all"), files * SMALL)
        data = Path(made, "all").read_bytes()
    folder.mkdir()
    at = 24
    for number in range(files):
        begin = at
        for _ in range(SMALL):
            if at < len(data):
                at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        (folder / f"{number:06}.pcap").write_bytes(data[:24] + data[begin:at])


def of_capture(path: Path, given: argparse.Namespace) -> None:
    paths = [Path(name) for name in expand([path])]
    size = sum(one.stat().st_size for one in paths)
    packets = sum(len(block) for one in paths for block in open_capture(one).blocks())
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as spark:
        command = [sys.executable, "-c", "from kwire.cli.main import main; main()", "table", *map(str, paths)]
        with peak_of(TABLE) as table_peak:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [*command, "-o", plain, "--jobs", "1", "--tables", given.tables], check=True, capture_output=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        table = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        with peak_of(WORKER) as peak:
            out = subprocess.run(
                [
                    sys.executable, __file__, str(path), "--on-spark", spark, "--master", given.master,
                    "--tables", given.tables, "--split-size", str(given.split_size),
                ],
                capture_output=True, text=True, check=True, env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            )  # fmt: skip
        found = json.loads(out.stdout.splitlines()[-1])
        names = given.tables.split(",")
        ours, theirs = ([sum_of(folder, name) for name in names] for folder in (plain, spark))
        files = " and ".join(str(len(list(Path(folder).rglob("*.parquet")))) for folder in (plain, spark))
    warm = found["warm"]
    rows = f"{sum(count for count, _ in ours):,} " + (
        "equal" if ours == theirs else f"OTHERS {sum(count for count, _ in theirs):,}"
    )
    cells = (
        path.name, f"{packets:,}", f"{size / 1e6:,.0f}", f"{table:.1f}", f"{sum(found['cold']):.1f}",
        f"{sum(warm):.1f}", *(f"{part:.1f}" for part in warm), f"{sum(warm) / table:.2f}", f"{peak[0] / 1e6:,.0f}",
        f"{table_peak[0] / 1e6:,.0f}", f"{found['seams'] / size:.3%}", f"{found['again']:,} of {found['parts']:,}",
        files, rows,
    )  # fmt: skip
    print("| " + " | ".join(cells) + " |", flush=True)
    if given.core:
        core(paths, names, given.split_size)


def sum_of(folder: str, table: str) -> tuple[int, int]:
    """The number of a table's rows, and a sum over them that does not depend on their order or on partitions."""
    import duckdb

    from kwire.tables.columns import COLUMNS as TABLES

    place = Path(folder, table)
    place = place / "**" / "*.parquet" if place.is_dir() else place.with_suffix(".parquet")
    columns = ", ".join(f'"{name}"' for name, kind, _ in TABLES[table] if kind != "timestamp")
    with duckdb.connect() as database:
        found = database.execute(
            f"select count(*), sum(hash(row({columns}))) from read_parquet('{place}', hive_partitioning=true,"
            " hive_types_autocast=false)"
        ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1] or 0)


def core(paths: list[Path], names: list[str], split_size: int) -> None:
    """Without Spark: what the steps take, and what kwire table takes, in one process each, CPU time alone."""
    from kwire.tables.build import build

    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    settings, want = Settings(), planning.wanted(names)
    counts: dict[str, int] = {}

    def count(name: str, batch: Any) -> None:
        counts[name] = counts.get(name, 0) + batch.num_rows

    plain = cpu_of(lambda: build(paths, names, count))
    wanted, counts = counts, {}
    splits = plan(paths, split_size << 20)
    surveys: list[Any] = []
    made: dict[Any, list[tuple[str, bytes]]] = {}
    found: list[planning.TaskPlan] = []

    def survey() -> None:
        for split in splits:
            rows = RowBytes()
            surveys.append(planning.survey_with_rows(split, names, rows.write, settings, want, finals=True))
            pickle.dumps(surveys[-1].final.take_parts())
            made[split.path, split.number] = rows.close()

    def stitch() -> None:
        checked = planning.survey_all(splits, lambda _: surveys, settings, want)
        found.append(planning.stitch(checked, names, settings))

    def name_rows() -> None:
        for name, batch in found[0].rows:
            count(name, batch)
        for task in found[0].tasks:
            if not task.made:
                planning.read_task(task, names, count, settings, found[0].names)
                continue
            for name, data in made[task.split.path, task.split.number]:
                for batch in rows_of(data):
                    count(name, fixed(name, batch, task.ordinals, found[0].names))

    surveyed, stitched, named = cpu_of(survey), cpu_of(stitch), cpu_of(name_rows)
    seams = sum(len(zlib.compress(pickle.dumps(one))) for one in surveys)
    same = "the same rows" if counts == wanted else f"OTHER ROWS {counts} {wanted}"
    print(
        f"  core: build {plain:.2f} s; survey {surveyed:.2f}, stitch {stitched:.2f}, names {named:.2f} s: "
        f"{(surveyed + stitched + named) / plain:.2f} x; seams {seams:,} bytes; {same}",
        flush=True,
    )


def on_spark(path: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Two runs in one session: the first one cold, with Spark's start."""
    from kwire.pipeline.job import Job
    from kwire.pipeline.run import run, session

    spark = session(given.master)
    spark.sparkContext.setLogLevel("OFF")
    used = [(0.0, 0.0, 0.0)]
    for _ in range(2):
        job = Job(tuple(given.tables.split(",")))
        done = run(spark, [str(path)], str(given.on_spark), job, split_size=given.split_size << 20, rollups=False)
        used.append(cpu_used())
    cold, warm = ([new - old for old, new in zip(*pair, strict=True)] for pair in (used[:2], used[1:]))
    spark.stop()
    return {"cold": cold, "warm": warm, "seams": done.seams, "parts": done.parts, "again": done.again}


class Process(NamedTuple):
    """parent: its number; own, ended: CPU seconds of itself, and of its children that ended; size: bytes of memory."""

    parent: int
    command: bytes
    own: float
    ended: float
    size: int


def processes() -> dict[int, Process]:
    """This process and those below it, by number."""
    found: dict[int, Process] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text().rpartition(")")[2].split()
            command, pages = (place / "cmdline").read_bytes(), int((place / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        own, ended = sum(map(int, stat[11:13])) / TICKS, sum(map(int, stat[13:15])) / TICKS
        found[int(place.name)] = Process(int(stat[1]), command, own, ended, pages * PAGE)
    top, out = os.getpid(), {}
    for number in found:
        above = number
        while above in found and above != top:
            above = found[above].parent
        if above == top:
            out[number] = found[number]
    return out


def cpu_used() -> tuple[float, float, float]:
    """CPU seconds so far of Spark's JVM, of its Python workers, and of this process; with those that ended."""
    jvm = workers = 0.0
    there = processes()
    driver = there.pop(os.getpid())
    for process in there.values():
        if WORKER in process.command:
            workers += process.own + process.ended
        else:
            jvm, workers = jvm + process.own, workers + process.ended
    return jvm, workers, driver.own + driver.ended


@contextmanager
def peak_of(name: bytes) -> Iterator[list[int]]:
    """A list of one number: the bytes of the largest process below this one with this name in its command, so far."""
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            most[0] = max([most[0], *(process.size for process in processes().values() if name in process.command)])

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def cpu_of(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
