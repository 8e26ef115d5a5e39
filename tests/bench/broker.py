"""The embedded broker beside librdkafka's own mock cluster, with librdkafka as the client of both; and a soak.

    python tests/bench/broker.py                  throughput: produce and fetch, MB/s, and the ratio
    python tests/bench/broker.py --minutes 10     producers and a group under faults; the broker's memory as it goes

In a soak the first minutes fill the log and what is kept of requests and events; after that memory must stand still.

Records of 1,000 bytes, not compressed, on four partitions; the best of some rounds counts. The mock keeps 5 MB of a
partition, so a round is 16 MB. Needs confluent-kafka. The broker is a process of its own, as the mock is threads of C.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

PARTITIONS, SIZE, COUNT, ROUNDS = 4, 1_000, 16_000, 8
MB = 1_000_000
MAIN = [sys.executable, "-c", "from kwire.cli.main import main; main()", "broker"]
FAULTS = (
    "Produce:error=NOT_LEADER_OR_FOLLOWER,chance=0.01",
    "Produce:cut=after,chance=0.005",
    "Fetch:short=30,chance=0.005",
    "Fetch:cut,chance=0.005",
    "Heartbeat:error=REBALANCE_IN_PROGRESS,chance=0.02",
    "Heartbeat:expire,chance=0.01,times=1000000",
    "group=soak-*:forget,chance=0.001,times=1000000",
    "coordinator:move,chance=0.001,times=1000000",
)


@contextlib.contextmanager
def ours(*options: str) -> Iterator[tuple[str, int]]:
    """A broker in a process of its own: its address and its pid."""
    command = [*MAIN, "--port", "0", "--topic", f"bench:{PARTITIONS}", "--quiet", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


@contextlib.contextmanager
def mock() -> Iterator[tuple[str, int]]:
    """librdkafka's mock cluster, in this process."""
    keeper = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = keeper.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}", 0


def produce(address: str) -> float:
    """MB/s from the first record until all are acknowledged."""
    settings = {
        "bootstrap.servers": address, "linger.ms": 5, "batch.size": 1_000_000, "acks": "1",
        "queue.buffering.max.messages": 2 * COUNT,
    }  # fmt: skip
    producer = Producer(settings)
    producer.list_topics("bench", 10)
    value = bytes(SIZE)
    began = time.perf_counter()
    for number in range(COUNT):
        producer.produce("bench", value, partition=number % PARTITIONS)
    if producer.flush(60):
        raise SystemExit("not everything was acknowledged")
    return COUNT * SIZE / MB / (time.perf_counter() - began)


def fetch(address: str) -> float:
    """MB/s from the first to the last of a round's records."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "fetch.wait.max.ms": 50})
    consumer.assign([TopicPartition("bench", n, OFFSET_BEGINNING) for n in range(PARTITIONS)])
    got, began = 0, 0.0
    while got < COUNT:
        found = [message for message in consumer.consume(COUNT // 16, 5) if message.error() is None]
        if not found:
            raise SystemExit(f"{got} of {COUNT} records came")
        if not began:
            began, first = time.perf_counter(), len(found)
        got += len(found)
    took = time.perf_counter() - began
    consumer.close()
    return (got - first) * SIZE / MB / took


def throughput() -> None:
    made: dict[str, Callable[[], contextlib.AbstractContextManager[tuple[str, int]]]] = {"kwire": ours, "mock": mock}
    found: dict[tuple[str, str], float] = {}
    for name, cluster in made.items():
        with cluster() as (address, _):
            first = produce(address)  # the partitions hold one round, which every fetch reads again
            found[name, "fetch"] = max(fetch(address) for _ in range(ROUNDS))
            found[name, "produce"] = max(first, *(produce(address) for _ in range(ROUNDS)))
    for what in ("produce", "fetch"):
        one, other = found["kwire", what], found["mock", what]
        print(f"{what:<8} kwire {one:7.0f} MB/s   librdkafka's mock {other:7.0f} MB/s   ratio {one / other:.2f}")


# ---------------------------------------------------------------- soak


def rss(pid: int) -> float:
    """MB that a process has in memory."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1_000 if match else 0.0


def producing(address: str, end: float, tally: dict[str, int]) -> None:
    settings = {"bootstrap.servers": address, "enable.idempotence": True, "retry.backoff.ms": 20, "log_level": 0}
    while time.monotonic() < end:
        producer = Producer(settings)
        for _ in range(200):
            with contextlib.suppress(BufferError):
                producer.produce("bench", bytes(500), on_delivery=lambda error, _: count(tally, "sent", not error))
            producer.poll(0)
            time.sleep(0.001)
        producer.flush(20)


def consuming(address: str, name: str, group: str, protocol: str, end: float, tally: dict[str, int]) -> None:
    settings = {"bootstrap.servers": address, "group.id": group, "client.id": name, "group.protocol": protocol}
    settings |= {"auto.offset.reset": "earliest", "log_level": "0"}
    if protocol == "classic":
        settings |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "200"}
    while time.monotonic() < end:
        consumer = Consumer(settings)
        consumer.subscribe(["bench"])
        until = min(end, time.monotonic() + 8)
        while time.monotonic() < until:
            with contextlib.suppress(KafkaException):
                for message in consumer.consume(500, 0.2):
                    count(tally, "got", message.error() is None)
        with contextlib.suppress(KafkaException):
            consumer.close()
        count(tally, "consumers", True)


def count(tally: dict[str, int], what: str, one: object) -> None:
    tally[what] = tally.get(what, 0) + bool(one)


def soak(minutes: float) -> None:
    """Connections, groups and members come and go; the log turns over; faults throughout.

    What the broker remembers is bounded (limits in kwire/broker/context.py) and full after a third of ten minutes: from
    then on memory is compared."""
    end = time.monotonic() + minutes * 60
    tally: dict[str, int] = {}
    options = [part for rule in FAULTS for part in ("--fault", rule)]
    with ours("--nodes", "2", "--log-limit", "8", *options) as (address, pid):
        work = [threading.Thread(target=producing, args=(address, end, tally)) for _ in range(2)]
        for number in range(4):
            how = ("soak-848", "consumer") if number > 1 else ("soak-classic", "classic")
            work.append(threading.Thread(target=consuming, args=(address, f"c{number}", *how, end, tally)))
        for thread in work:
            thread.start()
        warm = 0.0
        began = time.monotonic()
        while time.monotonic() < end:
            time.sleep(min(10.0, minutes * 6))
            passed = time.monotonic() - began
            if not warm and passed > minutes * 20:
                warm = rss(pid)
            print(f"{passed:6.0f} s  {rss(pid):6.1f} MB  {tally}", flush=True)
        for thread in work:
            thread.join(60)
        last = rss(pid)
        print(f"RSS {warm:.1f} MB when warm, {last:.1f} MB at the end: {last - warm:+.1f} MB in {minutes:g} minutes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="soak for so long")
    given = parser.parse_args()
    if given.minutes:
        soak(given.minutes)
    else:
        throughput()
