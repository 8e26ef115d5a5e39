"""What kwire proxy costs: latency of a small request, and throughput of Produce, beside the direct way in the same run.

    python tests/bench/proxy.py

Broker, proxy and client are processes of their own; the ways take turns, and the median of each is printed.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time

from broker_client import Client, frame

from kwire.records import build

ROUNDS, ASKS, LARGE, BATCHES = 3, 1_000, 512 << 10, 100


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
        ways = {"direct": Client(direct, "bench", 30), "proxy": Client(through, "bench", 30)}
        took: dict[str, list[float]] = {way: [] for way in ways}
        speed: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, client in ways.items():
                took[way].append(latency(client))
                speed[way].append(throughput(client))
        for way in ways:
            micros, rate = statistics.median(took[way]) * 1e6, statistics.median(speed[way]) / 1e6
            print(f"{way:<8}{micros:>8.0f} µs a request{rate:>8.0f} MB/s")
        added = (statistics.median(took["proxy"]) - statistics.median(took["direct"])) * 1e3
        ratio = statistics.median(speed["proxy"]) / statistics.median(speed["direct"])
        print(f"the proxy adds {added:.2f} ms; {ratio:.0%} of the direct throughput")
    finally:
        for process in (proxy, broker):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
