"""Captures to Parquet, beside tshark on the same capture in the same run; and how the cost grows with the size.

    pip install '.[table,bench]' && python tests/bench/tables.py [CAPTURE] [--rounds 3] [--growth]

tshark extracts three Kafka fields; kwire writes the tables messages and exchanges, with one job and with two. --growth
makes captures of 10 MB to 1 GB (traffic.py) and writes all of kwire's tables of headers from them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from captures import TSHARK, count, run
from traffic import make

FIELDS = ("kafka.api_key", "kafka.api_version", "kafka.correlation_id")
PACKETS = {10: 70_000, 100: 700_000, 1000: 7_000_000}  # megabytes: packets


def table(path: Path, folder: Path, jobs: int) -> list[str]:
    names = ("--tables", "messages,exchanges")
    return [sys.executable, "-m", "kwire", "table", str(path), "-o", str(folder), *names, "--jobs", str(jobs)]


def beside_tshark(path: Path, folder: Path, rounds: int) -> None:
    packets = count(path)
    fields = [part for field in FIELDS for part in ("-e", field)]
    commands = {
        "tshark": [*TSHARK, "-r", str(path), "-T", "fields", *fields],
        "kwire table, 1 job": table(path, folder, 1),
        "kwire table, 2 jobs": table(path, folder, 2),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            found[name].append(run(command))
    theirs = median(seconds for seconds, _ in found["tshark"])
    print("| | seconds | packets/s | peak memory | times tshark's rate |\n|---|---|---|---|---|")
    for name, times in found.items():
        seconds, memory = median(time for time, _ in times), max(peak for _, peak in times)
        print(f"| {name} | {seconds:.2f} | {packets / seconds:,.0f} | {memory:.0f} MB | {theirs / seconds:.1f} × |")


def growth(folder: Path, rounds: int) -> None:
    print("\n| capture | packets | seconds, 1 job | 2 jobs | µs a packet, 1 job | peak memory |")
    print("|---|---|---|---|---|---|")
    for packets in PACKETS.values():
        path = folder / "grown.pcap"
        make(path, packets)
        times = {jobs: [run(table(path, folder / "tables", jobs)) for _ in range(rounds)] for jobs in (1, 2)}
        one, two = (median(seconds for seconds, _ in found) for found in times.values())
        memory, size = max(peak for _, peak in times[1]), path.stat().st_size / 1e6
        print(f"| {size:,.0f} MB | {packets:,} | {one:.2f} | {two:.2f} | {one / packets * 1e6:.2f} | {memory:.0f} MB |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = given.capture or folder / "bench.pcap"
        if given.capture is None:
            make(path, 600_000)
        beside_tshark(path, folder / "tables", given.rounds)
        if given.growth:
            growth(folder, given.rounds)


if __name__ == "__main__":
    main()
