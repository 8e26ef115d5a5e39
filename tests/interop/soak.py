"""A broker under faults for a while: transactions, groups that read what is committed, and a share group.

    python tests/interop/soak.py [--seconds 1800] [--clients 500]

A tenth of the clients are transactional producers that abort every fourth transaction, 25 transactions a second in all;
the others are members of groups of five that read what is committed; with KWIRE_LAB, Java workers share the records of
another topic. At the end nothing may be lost or seen that was acknowledged or aborted, and the broker's memory is told
minute by minute. Needs confluent-kafka. Not part of the normal suite.
"""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

HERE = Path(__file__).parent
QUIET = {"log_level": 2}
FAULTS = (
    "Produce:error=NOT_LEADER_OR_FOLLOWER,chance=0.01",
    "Fetch:cut,chance=0.002",
    "Produce:cut,chance=0.002",
    "Heartbeat:expire,chance=0.001",
    "TxnOffsetCommit+EndTxn:error=CONCURRENT_TRANSACTIONS,chance=0.05",
    "Heartbeat:error=REBALANCE_IN_PROGRESS,chance=0.01",
    "ShareFetch:delay=200ms,chance=0.02",
    "FindCoordinator:error=COORDINATOR_NOT_AVAILABLE,chance=0.05",
)


EACH = 20  # records of a transaction


class Marks:
    """A set of small numbers, a byte each: a hundred groups read a million records each."""

    def __init__(self) -> None:
        self.marks = bytearray()

    def add(self, number: int, count: int = 1) -> None:
        if number + count > len(self.marks):
            self.marks.extend(bytes(number + count - len(self.marks) + 65_536))
        self.marks[number : number + count] = b"\1" * count

    def common(self, other: Marks) -> int:
        """How many numbers stand in both."""
        return (int.from_bytes(self.marks, "little") & int.from_bytes(other.marks, "little")).bit_count()

    def __len__(self) -> int:
        return self.marks.count(1)


class Clients:
    """Threads that write down what came of it. The records of a transaction are numbers that follow each other."""

    def __init__(self, address: str, seconds: float, producers: int) -> None:
        self.address, self.end, self.producers = address, time.monotonic() + seconds, producers
        self.reading_until = self.end + 60
        self.committed, self.aborted = Marks(), Marks()
        self.jobs: set[str] = set()
        self.read: dict[str, Marks] = {}
        self.fatal = 0
        self.lock = threading.Lock()

    def ended(self, which: Marks, first: int) -> None:
        with self.lock:
            which.add(first, EACH)

    def transactions(self, number: int) -> None:
        turn = 0
        producer: Any = None
        while time.monotonic() < self.end:
            turn += 1
            first = (turn * self.producers + number) * EACH
            try:
                if producer is None:
                    producer = Producer({**QUIET, "bootstrap.servers": self.address, "transactional.id": f"t{number}"})
                    producer.init_transactions(60)
                producer.begin_transaction()
                for value in range(first, first + EACH):
                    producer.produce("soak", str(value))
                if turn % 4:
                    producer.commit_transaction(60)
                    self.ended(self.committed, first)
                else:
                    producer.flush(30)
                    producer.abort_transaction(60)
                    self.ended(self.aborted, first)
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    with contextlib.suppress(KafkaException):
                        producer.abort_transaction(60)
                        self.ended(self.aborted, first)
                        continue
                self.fatal += 1
                producer = None  # what became of the transaction is not known
            time.sleep(self.producers / 25)

    def member(self, number: int) -> None:
        group = f"group-{number // 5}"
        seen = self.read.setdefault(group, Marks())
        settings = {"group.id": group, "isolation.level": "read_committed", "auto.offset.reset": "earliest",
                    "session.timeout.ms": 30_000, "fetch.wait.max.ms": 1_000, "fetch.min.bytes": 100_000}  # fmt: skip
        consumer = Consumer({**QUIET, "bootstrap.servers": self.address, **settings})
        consumer.subscribe(["soak"])
        while time.monotonic() < self.reading_until:
            values = [int(message.value() or b"0") for message in consumer.consume(500, 1.0) if message.error() is None]
            with self.lock:
                for value in values:
                    seen.add(value)
        consumer.close()

    def job_maker(self) -> None:
        producer, number = Producer({**QUIET, "bootstrap.servers": self.address, "enable.idempotence": True}), 0

        def told(error: KafkaError | None, message: Any) -> None:
            if error is None:
                self.jobs.add(message.value().decode())

        while time.monotonic() < self.end:
            number += 1
            producer.produce("jobs", str(number), on_delivery=told)
            producer.poll(0.02)
        producer.flush(60)


def resident(pid: int) -> float:
    """MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1_800)
    parser.add_argument("--clients", type=int, default=500)
    options = parser.parse_args()
    command = [sys.executable, "-m", "kwire", "broker", "-q", "--port", "0", "--events", "json", "--log-limit", "16"]
    for name in ("max.connections", "max.connections.per.ip"):  # a client has three: bootstrap, broker, coordinator
        command += ["--config", f"{name}={4 * options.clients + 1_000}"]
    for rule in FAULTS:
        command += ["--fault", rule]
    broker = subprocess.Popen([*command, "--topic", "soak:6", "--topic", "jobs:3"], stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    rows = map(json.loads, broker.stdout)
    address = next(row["bootstrap"] for row in rows if row["kind"] == "ready")
    threading.Thread(target=lambda: [None for _ in broker.stdout or ()], daemon=True).start()
    try:
        return soak(address, broker.pid, options.seconds, options.clients)
    finally:
        broker.terminate()
        broker.wait(30)


def soak(address: str, pid: int, seconds: float, count: int) -> int:
    admin = AdminClient({**QUIET, "bootstrap.servers": address})
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    for future in admin.incremental_alter_configs(
        [ConfigResource(ResourceType.GROUP, "workers", incremental_configs=[entry])]
    ).values():
        future.result()
    producers = max(count // 10, 1)
    clients = Clients(address, seconds, producers)
    threads = [threading.Thread(target=clients.transactions, args=(number,)) for number in range(producers)]
    threads += [threading.Thread(target=clients.member, args=(number,)) for number in range(count - producers)]
    threads.append(threading.Thread(target=clients.job_maker))
    workers, lab = None, os.environ.get("KWIRE_LAB")
    if lab:
        java = ["java", "-Xmx256m", "-cp", f"{lab}/jars/*", str(HERE / "SoakShare.java"), address, "10"]
        workers = subprocess.Popen(
            [*java, str(int(seconds + 40))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        taken: list[str] = []
        threads.append(threading.Thread(target=lambda: taken.extend(workers.stdout.read().split())))  # type: ignore[union-attr]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        print(
            f"{time.monotonic() - begun:5.0f} s  {resident(pid):6.1f} MB  {len(clients.committed):,} committed",
            flush=True,
        )
        time.sleep(30)
    wrong = 0
    for group, seen in clients.read.items():
        lost, ghosts = len(clients.committed) - seen.common(clients.committed), seen.common(clients.aborted)
        wrong += lost + ghosts
        print(f"{group}: {len(seen):,} read, {lost} lost, {ghosts} of aborted transactions")
    if workers is not None:
        lost, again = len(clients.jobs - set(taken)), len(taken) - len(set(taken))
        wrong += lost + again
        print(f"share group: {len(taken):,} accepted of {len(clients.jobs):,}, {lost} lost, {again} accepted twice")
    print(f"{len(clients.aborted):,} aborted, {clients.fatal} transactions of unknown end")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
