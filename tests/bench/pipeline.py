"""kwire pipeline against kwire table: python tests/bench/pipeline.py [CAPTURE...] [--one] [--grow 100,500,2000]

Of each capture: packets, megabytes and messages a second of kwire table with one process and two, of the pipeline's
core without Spark, of the pipeline on local[1] and local[2], cold and warm, and of tshark; the CPU time of the core
over that of kwire table; bytes of seams for each GB of input, how many parts had to be read again, and the largest
Python worker. --one: of a made capture in which one connection carries everything; --grow: of made ones of so many MB,
how cost grows. Only ratios of one run mean something.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traffic import make

from kwire.capture.files import open_capture
from kwire.pipeline import plan as planning
from kwire.pipeline.provisional import fixed
from kwire.pipeline.row_bytes import RowBytes, rows_of
from kwire.pipeline.splits import plan
from kwire.session.reader import Settings

PAGE = os.sysconf("SC_PAGE_SIZE")
TSHARK = 200_000  # packets that tshark reads
PACKETS = 7_300  # that traffic.py makes of a MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*")
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--grow", default="", metavar="MB,MB")
    parser.add_argument("--tables", default="messages")
    parser.add_argument("--split-size", type=int, default=64, metavar="MB")
    parser.add_argument("--on-spark", metavar="MASTER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.on_spark:
        print(json.dumps(on_spark(given.captures[0], given.on_spark, given.tables, given.split_size)))
        return
    for capture in given.captures:
        of_capture(Path(capture), given.tables, given.split_size)
    with tempfile.TemporaryDirectory() as folder:
        if given.one:
            alone = Path(folder, "one-connection.pcap")
            make(alone, 600_000, connections=1)
            of_capture(alone, given.tables, given.split_size)
        for size in (int(text) for text in given.grow.split(",") if text):
            grown = Path(folder, f"{size}MB.pcap")
            make(grown, size * PACKETS)
            of_capture(grown, given.tables, given.split_size, peers=False)
            grown.unlink()


def of_capture(path: Path, tables: str, split_size: int, peers: bool = True) -> None:
    size = path.stat().st_size
    packets = sum(len(block) for block in open_capture(path).blocks())
    print(f"\n{path.name}: {packets:,} packets, {size / 1e6:,.0f} MB")
    core(path, tables.split(","), split_size)
    for jobs in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", "from kwire.cli.main import main; main()", "table", str(path)]
            taken, cpu = timed([*command, "-o", folder, "--jobs", str(jobs), "--tables", tables])
        show(f"kwire table --jobs {jobs}", packets, size, taken, cpu)
    for master in ("local[1]", "local[2]"):
        peak = Peak()
        command = [sys.executable, __file__, str(path), "--on-spark", master, "--tables", tables]
        out = subprocess.run(
            [*command, "--split-size", str(split_size)], capture_output=True, text=True, check=True,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
        worker = peak.stop()
        found = json.loads(out.stdout.splitlines()[-1])
        show(f"pipeline {master} cold", packets, size, found["cold"])
        show(f"pipeline {master} warm", packets, size, found["warm"])
        print(
            f"    {found['messages']:,} messages, {found['messages'] / found['warm']:,.0f}/s; seams "
            f"{found['seams'] / size * 1e9:,.0f} bytes for a GB ({found['seams'] / size:.3%}); "
            f"parts {found['parts']:,}, read again {found['again']:,}; largest worker {worker / 1e6:,.0f} MB"
        )
    if peers and shutil.which("tshark"):
        taken, cpu = timed(
            ["tshark", "-r", str(path), "-c", str(TSHARK), "-Y", "kafka", "-T", "fields", "-e", "kafka.api_key"]
        )
        share = min(1, TSHARK / packets)
        show(f"tshark ({TSHARK:,} packets)", packets * share, size * share, taken, cpu)


def core(path: Path, names: list[str], split_size: int) -> None:
    """Without Spark: what the steps take, and what kwire table takes, in one process each, CPU time alone."""
    from kwire.tables.build import build

    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    settings, want = Settings(), planning.wanted(names)
    counts: dict[str, int] = {}

    def count(name: str, batch: Any) -> None:
        counts[name] = counts.get(name, 0) + batch.num_rows

    plain = cpu_of(lambda: build([path], names, count))
    wanted, counts = counts, {}
    splits = plan([path], split_size << 20)
    surveys: list[Any] = []
    made: dict[int, list[tuple[str, bytes]]] = {}
    found: list[planning.TaskPlan] = []

    def survey() -> None:
        for split in splits:
            rows = RowBytes()
            surveys.append(planning.survey_with_rows(split, names, rows.write, settings, want, finals=True))
            pickle.dumps(surveys[-1].final.take_parts())
            made[split.number] = rows.close()

    def stitch() -> None:
        checked = planning.survey_all(splits, lambda _: surveys, settings, want)
        found.append(planning.stitch(checked, names, settings))

    def name_rows() -> None:
        for name, batch in found[0].rows:
            count(name, batch)
        for task in found[0].tasks:
            for name, data in made[task.split.number]:
                for batch in rows_of(data):
                    count(name, fixed(name, batch, task.ordinals, found[0].names))

    surveyed, stitched, named = cpu_of(survey), cpu_of(stitch), cpu_of(name_rows)
    seams = sum(len(zlib.compress(pickle.dumps(one))) for one in surveys)
    same = "the same rows" if counts == wanted else f"OTHER ROWS {counts} {wanted}"
    print(
        f"  core: build {plain:.2f} s; survey {surveyed:.2f}, stitch {stitched:.2f}, names {named:.2f} s: "
        f"{(surveyed + stitched + named) / plain:.2f} x; seams {seams:,} bytes; {same}"
    )


def on_spark(path: str, master: str, tables: str, split_size: int) -> dict[str, Any]:
    """Two runs in one session: the first one cold."""
    from kwire.pipeline.job import Job
    from kwire.pipeline.run import run, session

    spark = session(master)
    spark.sparkContext.setLogLevel("OFF")
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            begun = time.perf_counter()
            done = run(spark, [path], folder, Job(tuple(tables.split(","))), split_size=split_size << 20, rollups=False)
            times.append(time.perf_counter() - begun)
    spark.stop()
    return {
        "cold": times[0], "warm": times[1], "messages": done.rows.get("messages", 0), "seams": done.seams,
        "parts": done.parts, "again": done.again,
    }  # fmt: skip


class Peak:
    """The largest Python worker of Spark while it runs, bytes."""

    def __init__(self) -> None:
        self._most, self._on = 0, True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._on = False
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while self._on:
            for found in Path("/proc").glob("[0-9]*"):
                try:
                    if b"pyspark.daemon" in (found / "cmdline").read_bytes():
                        self._most = max(self._most, int((found / "statm").read_text().split()[1]) * PAGE)
                except (OSError, ValueError, IndexError):
                    continue
            time.sleep(0.2)


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds on the clock, and of CPU."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def show(what: str, packets: float, size: float, taken: float, cpu: float | None = None) -> None:
    used = "" if cpu is None else f", {cpu:.1f} s of CPU"
    print(f"  {what:<24} {taken:6.1f} s  {packets / taken:>11,.0f} packets/s  {size / taken / 1e6:>7,.1f} MB/s{used}")


if __name__ == "__main__":
    main()
