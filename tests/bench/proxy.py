"""What kwire proxy costs: latency of a small request, and throughput of Produce, beside the direct way in the same run.

    python tests/bench/proxy.py

Broker, proxy and client are processes of their own; the ways take turns, and the median of each is printed. Peers are
haproxy, where it is on the PATH, which passes bytes on and knows nothing of Kafka; and Kroxylicious, a proxy of Kafka,
where KROXYLICIOUS is a folder with io.kroxylicious:kroxylicious-runtime:0.9.0 and what it needs, as Maven's
dependency:copy-dependencies fills it. Where others are at work too, the
seconds of CPU that a GB takes in the process between tell more than throughput.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker_client import Client, frame

from kwire.records import build

ROUNDS, ASKS, LARGE, BATCHES = 3, 1_000, 512 << 10, 400
TICK = os.sysconf("SC_CLK_TCK")


def started(*options: str) -> tuple[subprocess.Popen[str], str]:
    """A command of kwire, and where it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"127\.0\.0\.1:\d+", line):
            return process, found[0]
    raise SystemExit(f"kwire {options[0]} does not listen")


@contextmanager
def haproxy(broker: str) -> Iterator[tuple[str, int] | None]:
    """The address of one in front of a broker, and its process; None where there is none."""
    if shutil.which("haproxy") is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n"
            f"listen kafka\n bind {address}\n server one {broker}\n"
        )
        file.flush()
        process = subprocess.Popen(["haproxy", "-f", file.name], stderr=subprocess.DEVNULL)
        time.sleep(2)
        yield address, process.pid
        process.terminate()
        process.wait()


@contextmanager
def kroxylicious(broker: str) -> Iterator[tuple[str, int] | None]:
    """The same of Kroxylicious, which takes the ports behind its own for brokers."""
    jars = os.environ.get("KROXYLICIOUS")
    if jars is None:
        yield None
        return
    address = "127.0.0.1:29092"
    command = ["java", "-cp", f"{jars}/*", str(Path(__file__).with_name("Kroxylicious.java")), broker, address]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", 29092)).close()
                break
            except OSError:
                if time.monotonic() > end or process.poll() is not None:
                    raise
                time.sleep(0.5)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait()


def cpu(pid: int) -> float:
    """Seconds of CPU that a process and its children took so far."""
    found = 0.0
    for each in (pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        found += (int(fields[11]) + int(fields[12])) / TICK
    return found


def latency(client: Client) -> float:
    """Of an ApiVersions, in seconds."""
    asked = frame("ApiVersions", 0, {})
    times = []
    for _ in range(ASKS):
        begun = time.perf_counter()
        client.sock.sendall(asked)
        client.answer()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def throughput(client: Client) -> float:
    """Of Produce requests of half a MiB, two at a time, in bytes a second."""
    records = build([(None, bytes(LARGE))])
    partition = {"Index": 0, "Records": records}
    topic = {"Name": "t", "PartitionData": [partition]}
    asked = frame("Produce", 7, {"Acks": 1, "TimeoutMs": 1000, "TopicData": [topic]})
    begun = time.perf_counter()
    client.sock.sendall(asked)
    for _ in range(BATCHES - 1):
        client.sock.sendall(asked)
        client.answer()
    client.answer()
    return BATCHES * len(asked) / (time.perf_counter() - begun)


def main() -> None:
    broker, direct = started("broker", "-q", "--port", "0", "--topic", "t", "--log-limit", "64")
    proxy, through = started("proxy", direct, "--listen", "127.0.0.1:0", "-q")
    try:
        with haproxy(direct) as passing, kroxylicious(direct) as knowing:
            ways = {"direct": (direct, broker.pid), "kwire": (through, proxy.pid)}
            peers = {"haproxy": passing, "kroxylicious": knowing}
            measure({**ways, **{name: peer for name, peer in peers.items() if peer}})
    finally:
        for process in (proxy, broker):
            process.terminate()
            process.wait()


def measure(addresses: dict[str, tuple[str, int]]) -> None:
    """Prints a line for each way; its process is the broker's for the direct one."""
    ways = {way: Client(address, "bench", 30) for way, (address, _) in addresses.items()}
    spent: dict[str, float] = dict.fromkeys(ways, 0.0)
    took: dict[str, list[float]] = {way: [] for way in ways}
    speed: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, client in ways.items():
            took[way].append(latency(client))
            before = cpu(addresses[way][1])
            speed[way].append(throughput(client))
            spent[way] += cpu(addresses[way][1]) - before
    direct, fastest = statistics.median(took["direct"]), statistics.median(speed["direct"])
    print(f"{'':<13}{'µs a request':>14}{'added ms':>10}{'MB/s':>8}{'of direct':>11}{'CPU s a GB':>12}")
    gigabytes = ROUNDS * BATCHES * LARGE / 1e9
    for way in ways:
        each, rate = statistics.median(took[way]), statistics.median(speed[way])
        added = (each - direct) * 1e3
        cost = spent[way] / gigabytes
        print(f"{way:<13}{each * 1e6:>14.0f}{added:>10.2f}{rate / 1e6:>8.0f}{rate / fastest:>11.0%}{cost:>12.2f}")


if __name__ == "__main__":
    main()
