"""Reading captures, beside tshark on the same capture in the same run.

    python tests/bench/captures.py [CAPTURE] [--rounds 3]

Without CAPTURE one is made (traffic.py). tshark extracts four header fields, which is less than kwire gives; with
bodies it writes its JSON. Prints packets and megabytes a second, peak memory, and how many times as fast kwire is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from traffic import make

KWIRE = [sys.executable, "-m", "kwire", "read", "--format", "json"]
FIELDS = ("kafka.api_key", "kafka.api_version", "kafka.correlation_id", "kafka.client_id")
TSHARK = ["tshark", "-d", "tcp.port==9092,kafka"]


def run(command: list[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a command whose output is thrown away."""
    begun = time.perf_counter()
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen(command, stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 3):  # 3: no Kafka in it
        raise SystemExit(f"{command[0]} failed with {child.returncode}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def compare(path: Path, packets: int, rounds: int, pairs: list[tuple[str, list[str], list[str]]]) -> None:
    for what, ours, theirs in pairs:
        times: list[list[tuple[float, float]]] = [[], []]
        for _ in range(rounds):
            for turn, command in enumerate((ours, theirs)):
                times[turn].append(run(command))
        (mine, memory), (other, other_memory) = (
            (median(seconds for seconds, _ in found), max(peak for _, peak in found)) for found in times
        )
        size = path.stat().st_size / 1e6
        print(
            f"| {what} | {packets / mine:,.0f} | {size / mine:.0f} MB/s | {memory:.0f} MB "
            f"| {packets / other:,.0f} | {other_memory:.0f} MB | {other / mine:.1f} × |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--packets", type=int, default=600_000, help="of the capture that is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.capture or Path(folder) / "bench.pcap"
        if given.capture is None:
            make(path, given.packets)
        print("| | kwire, packets/s | | memory | tshark, packets/s | memory | times as fast |")
        print("|---|---|---|---|---|---|---|")
        listing = [*TSHARK, "-r", str(path), "-T", "fields", *(part for field in FIELDS for part in ("-e", field))]
        packets = count(path)
        compare(path, packets, given.rounds, [
            ("without bodies", [*KWIRE, str(path)], listing),
            ("with bodies", [*KWIRE, "--body", str(path)], [*TSHARK, "-r", str(path), "-T", "json"]),
        ])  # fmt: skip


def count(path: Path) -> int:
    from kwire.capture.files import open_capture

    return sum(len(packets) for packets in open_capture(path).blocks())


if __name__ == "__main__":
    main()
