"""The broker under attack: what a well-behaved client waits for, and what the broker's process takes.

    python tests/bench/hostile_broker.py [WORDS] [--seconds 8] [--list] [--only NAME]

WORDS: only attacks whose name holds one of them. For each attack a broker in a process of its own, the attackers in
another one, and here a client that produces, fetches and heartbeats ten times a second. A row: the client's p50, p99
and maximum over all three (ms), the broker's peak memory, and what the attackers got: answers, connections that the
broker ended. Loopback only. The attacks are in tests/bench/broker_attacks.py.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from broker_attacks import ATTACKS
from broker_client import Attack, Client, produce_body

MOST_MS, MOST_MB = 1_000, 600
PAUSE = 0.1  # seconds between two rounds of the client
BOUND = 4 << 30  # bytes of address space
PATIENCE = 15.0  # seconds until an answer counts as never given


class Row(NamedTuple):
    """Times in ms, memory in MB. answers and ended are the attackers'."""

    name: str
    p50: float
    p99: float
    most: float
    peak: float
    answers: int
    ended: int

    @property
    def good(self) -> bool:
        return self.p99 < MOST_MS and self.peak < MOST_MB

    def __str__(self) -> str:
        cells = (
            f"{self.p50:.1f} | {self.p99:.1f} | {self.most:.0f} | {self.peak:.0f} | {self.answers:,} | {self.ended:,}"
        )
        return f"| {self.name} | {cells} | {'' if self.good else 'TOO MUCH'} |"


HEAD = "| attack | p50 ms | p99 ms | max ms | peak MB | answers | ended | |\n|---|---|---|---|---|---|---|---|"


@contextmanager
def broker(*options: str) -> Iterator[subprocess.Popen[str]]:
    """A broker in a process of its own, which may ask for so much memory and no more."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (BOUND, BOUND))

    command = [sys.executable, "-m", "kwire", "broker", "--port", "0", "--topic", "good", "--quiet", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=bounded
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def peak(pid: int) -> float:
    """The most memory that a process had, MB."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1_000 if match else 0.0


def behave(address: str, end: float) -> list[float]:
    """Produces, fetches and heartbeats until end; ms of each. An answer that never came counts as PATIENCE."""
    client, times = Client(address, "good", PATIENCE), [PATIENCE * 1e3]
    try:
        member, generation = client.joined("good-group")
    except OSError:
        return times
    end = max(end, time.monotonic() + 3)
    times.clear()
    offset = 0
    while time.monotonic() < end:
        for ask in ("produce", "fetch", "heartbeat"):
            begun = time.perf_counter()
            try:
                if ask == "produce":
                    answer = client.ask("Produce", 9, produce_body("good"))
                    offset = answer["Responses"][0]["PartitionResponses"][0]["BaseOffset"]
                elif ask == "fetch":
                    part = {"Partition": 0, "FetchOffset": max(offset, 0), "PartitionMaxBytes": 1 << 20}
                    topics = [{"Topic": "good", "Partitions": [part]}]
                    client.ask("Fetch", 12, {"MaxWaitMs": 100, "MinBytes": 1, "MaxBytes": 1 << 20, "Topics": topics})
                else:
                    body = {"GroupId": "good-group", "GenerationId": generation, "MemberId": member}
                    if client.ask("Heartbeat", 4, body)["ErrorCode"]:
                        member, generation = client.joined("good-group")
            except TimeoutError:
                times.append(PATIENCE * 1e3)
                client = Client(address, "good", PATIENCE)
                continue
            except OSError:  # the broker ended it: as every client, this one comes back, and the time counts
                client = Client(address, "good", PATIENCE)
            times.append((time.perf_counter() - begun) * 1e3)
        time.sleep(PAUSE)
    return times


def attack(name: str, address: str, end: float, tally: object) -> None:
    """In a process of its own: so many connections, each in a thread."""
    made: Attack = ATTACKS[name]
    threads = [threading.Thread(target=made.run, args=(address, number, end, tally)) for number in range(made.threads)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + 1)


def measure(name: str, seconds: float) -> Row:
    with tempfile.TemporaryDirectory() as folder, broker(*ATTACKS[name].options(Path(folder))) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        with multiprocessing.Manager() as manager:
            tally = manager.dict(answers=0, ended=0)
            if ATTACKS[name].setup is not None:
                ATTACKS[name].setup(Client(address, "attacker", 120))
            end = time.monotonic() + seconds
            attacker = multiprocessing.Process(target=attack, args=(name, address, end, tally), daemon=True)
            attacker.start()
            time.sleep(0.5)
            times = sorted(behave(address, end))
            attacker.join(2)
            attacker.kill()
            memory = peak(process.pid)
            return Row(
                name, times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)], times[-1], memory,
                tally["answers"], tally["ended"],
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", metavar="NAME", help="this attack alone")
    given = parser.parse_args()
    words = given.words
    names = [given.only] if given.only else [n for n in ATTACKS if not words or any(word in n for word in words)]
    if given.list:
        print("\n".join(names))
        return
    print(HEAD, flush=True)
    rows = []
    for name in names:
        rows.append(measure(name, given.seconds))
        print(rows[-1], flush=True)
    sys.exit(any(not row.good for row in rows))


if __name__ == "__main__":
    main()
