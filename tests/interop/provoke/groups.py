"""Troubles of groups: members that come and go, that do not agree, that do not give up what they are asked for."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from pathlib import Path

from cluster import java
from confluent_kafka import Consumer, TopicPartition
from scenarios import Scenario, Stage

HERE = Path(__file__).parent


def orders(stage: Stage) -> None:
    stage.create(partitions=4)
    stage.fill()


class Member:
    """A consumer that polls on a thread of its own. held: how many partitions it got last."""

    def __init__(self, stage: Stage, client: str, **config: object) -> None:
        self.stage = stage
        self.consumer: Consumer = stage.consumer(client, **config)
        self.held = 0
        self.consumer.subscribe([stage.topic], on_assign=self._assigned)
        self.halt = False
        self.thread = threading.Thread(target=self._poll)
        self.thread.start()

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.held = len(partitions)

    def _poll(self) -> None:
        while not self.halt:
            message = self.consumer.poll(0.1)
            if message is not None and (error := message.error()) is not None:
                print(f"  {error.name()}")
        self.consumer.close()

    def close(self) -> None:
        self.halt = True
        self.thread.join()


def rebalance_storm(stage: Stage) -> None:
    """A steady member, and one that joins and leaves eight times in 16 s; healthy: it stays."""
    steady = Member(stage, "steady")
    time.sleep(3)
    if stage.sick:
        stage.found("rebalance-storm", group=stage.group)
    for _ in range(8 if stage.sick else 1):
        restless = Member(stage, "restless")
        time.sleep(2 if stage.sick else 8)
        restless.close()
    steady.close()


def assignor_clash(stage: Stage) -> None:
    """A member with the assignor range; another joins with cooperative-sticky alone: INCONSISTENT_GROUP_PROTOCOL."""
    first = Member(stage, "eager", partition_assignment_strategy="range")
    time.sleep(3)
    if stage.sick:
        stage.found("assignor-clash", group=stage.group, client_id="odd-one")
    odd = Member(stage, "odd-one", partition_assignment_strategy="cooperative-sticky" if stage.sick else "range")
    time.sleep(4)
    odd.close()
    first.close()


def program(stage: Stage, name: str, *arguments: str) -> list[str]:
    """A Java program beside this file, told whether the trouble is on; its lines."""
    command = java("4.3.1", str(HERE / f"{name}.java"), stage.cluster.address, stage.topic, stage.group)
    done = subprocess.run(
        [*command, "sick" if stage.sick else "well", *arguments], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr[-500:]
    for line in done.stdout.splitlines():
        print(f"  {line[:100]}")
        if told := re.fullmatch(r"([a-z-]+) (\d{13}) (.*)", line):  # DETECTOR ms KEY=VALUE…, or anything else
            about = dict(pair.split("=", 1) for pair in told[3].split())
            stage.found(told[1], int(told[2]) / 1000, **about)
    return done.stdout.splitlines()


def unrevoked(stage: Stage) -> None:
    """KIP-848: a second member joins, and the first one's onPartitionsRevoked takes 7 s (max.poll.interval.ms=10000):
    its heartbeats go on, what it is to give up stays with it, and the second member waits. Healthy: it takes no
    time."""
    program(stage, "Unrevoked")


def share_redelivery(stage: Stage) -> None:
    """A share consumer works 4 s on what it acquired for 2 s (group.share.record.lock.duration.ms=2000): the locks run
    out, it is delivered again (delivery count 2), and the acknowledgement is refused."""
    program(stage, "ShareLate")


LOCKS = {"group.share.record.lock.duration.ms": 2000, "group.share.min.record.lock.duration.ms": 1000}
BEATS = {"group.consumer.heartbeat.interval.ms": 1000, "group.consumer.min.heartbeat.interval.ms": 1000}
SCENARIOS = {
    "rebalance-storm": Scenario(rebalance_storm, orders),
    "assignor-clash": Scenario(assignor_clash, orders),
    "unrevoked": Scenario(unrevoked, orders, {"settings": BEATS}),
    "share-redelivery": Scenario(share_redelivery, orders, {"settings": LOCKS}),
}
