"""Troubles of clusters: nodes that go, leaders that move, racks that are ignored; and the health of five libraries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from cluster import java
from scenarios import Scenario, Stage

HERE = Path(__file__).parent
BESIDE = HERE.parent


def orders(stage: Stage) -> None:
    stage.create(partitions=3, copies=3)
    stage.fill(batch_num_messages=1)


def traffic(stage: Stage, seconds: float) -> None:
    """Ten records a second to all partitions, and a member of a group that reads them."""
    halt = threading.Event()
    consumer = stage.consumer("reader")
    consumer.subscribe([stage.topic])

    def read() -> None:
        while not halt.is_set():
            consumer.poll(0.1)
        consumer.close()

    reader = threading.Thread(target=read)
    reader.start()
    producer = stage.producer("writer", linger_ms=0, message_timeout_ms=20000)
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        producer.produce(stage.topic, value=f"order {number}", partition=number % 3)
        producer.poll(0)
        time.sleep(0.1)
        number += 1
    producer.flush(20)
    halt.set()
    reader.join()


def leader_of(stage: Stage, partition: int = 0) -> int:
    return int(stage.admin.list_topics(stage.topic, timeout=10).topics[stage.topic].partitions[partition].leader)


def broker_gone(stage: Stage) -> None:
    """Three brokers; broker 3 is killed (SIGKILL) after 4 s and stays away."""

    def kill() -> None:
        if stage.sick:
            followed = "head-of-line", "leader-moved"
            stage.found("broker-gone", followed=followed, broker=f"127.0.0.1:{stage.cluster.port(3)}")
            stage.cluster.kill(3)

    timer = threading.Timer(4, kill)
    timer.start()
    traffic(stage, 18)
    timer.join()


def leader_moved(stage: Stage) -> None:
    """Three brokers; after 4 s the leader of partition 0 moves to another replica (a reassignment that puts it first,
    and an election of the preferred leader)."""

    def move() -> None:
        if not stage.sick:
            return
        stage.found("leader-moved", moved(stage), topic=stage.topic, partition=0)

    timer = threading.Timer(4, move)
    timer.start()
    traffic(stage, 20)
    timer.join()


def moved(stage: Stage) -> float:
    """Partition 0 gets another leader among its replicas: a reassignment that puts it first, and an election of the
    preferred leader. When."""
    old = leader_of(stage)
    new = old % 3 + 1
    order = [new, *(node for node in (1, 2, 3) if node != new)]
    plan = {"version": 1, "partitions": [{"topic": stage.topic, "partition": 0, "replicas": order}]}
    file = stage.cluster.folder / "plan.json"
    file.write_text(json.dumps(plan))
    server = ["--bootstrap-server", f"127.0.0.1:{stage.cluster.port() + 1}"]  # which is not recorded
    tool = ["org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *server]
    tool += ["--execute", "--reassignment-json-file", str(file)]
    subprocess.run(java("4.3.1", *tool, heap="128m"), check=True, capture_output=True)
    time.sleep(1)
    elect = ["org.apache.kafka.tools.LeaderElectionCommand", *server]
    elect += ["--election-type", "PREFERRED", "--topic", stage.topic, "--partition", "0"]
    begun = time.time()
    subprocess.run(java("4.3.1", *elect, heap="128m"), check=True, capture_output=True)
    return (begun + time.time()) / 2


def stale_leader(stage: Stage) -> None:
    """Three brokers; the leader of partition 0 moves, and a kafka-python producer whose client was made to keep to the
    leader that it first knew goes on asking it (NOT_LEADER_OR_FOLLOWER). Healthy: the same, it takes up the new one."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError
    from kafka.structs import TopicPartition

    producer = KafkaProducer(
        bootstrap_servers=stage.cluster.address.split(","), client_id="stubborn", retries=20, retry_backoff_ms=300,
        linger_ms=0, delivery_timeout_ms=9000, request_timeout_ms=4000,
    )  # fmt: skip
    place = TopicPartition(stage.topic, 0)
    for _ in range(3):
        producer.send(stage.topic, b"order", partition=0).get(10)
    known = producer._metadata
    first, asked, led = known.leader_for_partition(place), known.leader_for_partition, known.partitions_for_broker
    when = moved(stage)
    if stage.sick:
        stage.found("leader-moved", when, ("stale-leader",), topic=stage.topic, partition=0)
        known.leader_for_partition = lambda which: first if which == place else asked(which)
        known.partitions_for_broker = lambda node: {*(led(node) or ()), place} - ({place} if node != first else set())
        stage.found("stale-leader", topic=stage.topic, partition=0, client_id="stubborn")
    for _ in range(2):
        try:
            producer.send(stage.topic, b"order", partition=0).get(10)
        except Exception as wrong:
            print(f"  {type(wrong).__name__}")
    with contextlib.suppress(KafkaError):
        producer.close(5)


def coordinator_moved(stage: Stage) -> None:
    """The broker that coordinates the group is stopped (SIGTERM) after 5 s: another one takes over."""
    consumer = stage.consumer("member")
    consumer.subscribe([stage.topic])
    stage.consume(consumer, 5)
    if stage.sick:
        described = stage.admin.describe_consumer_groups([stage.group])[stage.group].result(10)
        begun = time.time()
        stage.cluster.kill(described.coordinator.id, signal.SIGTERM)
        stage.found("coordinator-moved", (begun + time.time()) / 2, group=stage.group)
    stage.consume(consumer, 8)
    consumer.close()


def controller_change(stage: Stage) -> None:
    """Three nodes, brokers and controllers; the active controller is stopped (SIGTERM) after 4 s. The controllers'
    ports are recorded, not those of the clients."""
    time.sleep(4)
    if stage.sick:
        tool = ["org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-controller"]
        tool += [f"127.0.0.1:{stage.cluster.port() + 2}", "describe", "--status"]
        out = subprocess.run(java("4.3.1", *tool, heap="128m"), check=True, capture_output=True, text=True).stdout
        leader = int(next(line.split()[-1] for line in out.splitlines() if line.startswith("LeaderId")))
        stage.found("controller-change")
        stage.cluster.kill(leader, signal.SIGTERM)
        gone = f"127.0.0.1:{stage.cluster.port(leader) + 2}"
        stage.found("broker-gone", followed=("controller-change",), broker=gone)
    time.sleep(6)


def rack_unset(stage: Stage) -> None:
    """Three brokers in racks a, b, c and a consumer without client.rack; the healthy one is in rack a, and reads from
    the broker there (RackAwareReplicaSelector)."""
    rack = {} if stage.sick else {"client_rack": "a"}
    consumer = stage.consumer("reader", **rack)
    consumer.subscribe([stage.topic])
    stage.consume(consumer, 20, most=1)
    if stage.sick:
        stage.found("rack-unset", client_id="reader")
    producer = stage.producer("writer")
    for number in range(40):
        producer.produce(stage.topic, value=f"order {number}", partition=number % 3)
        stage.consume(consumer, 0.2)
    producer.flush(10)
    consumer.close()


def hint_ignored(stage: Stage) -> None:
    """A consumer of our own names its rack, is told to read from the replica there (PreferredReadReplica), and goes on
    asking the leader; the healthy one follows."""
    from kwire_client import fetch_with_rack

    leader = leader_of(stage)
    rack = "abc"[leader % 3]  # not the leader's
    told = asyncio.run(fetch_with_rack(stage, leader, rack, follow=not stage.sick))
    if stage.sick:
        stage.found("replica-hint-ignored", at=told, topic=stage.topic, partition=0)


def healthy_start(stage: Stage) -> None:
    stage.create(partitions=2)


def healthy_libraries(stage: Stage) -> None:
    """60 s of five client libraries, each with a producer and a member of a group: Java, librdkafka, kafka-python,
    aiokafka, franz-go."""
    built = stage.cluster.folder / "pair-go"
    subprocess.run(
        ["go", "build", "-o", str(built), "./pair"],
        check=True,
        cwd=BESIDE / "franz",
        env={**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=mod"},
    )
    seconds = "52"
    rest = [stage.cluster.address, stage.topic]
    commands = [
        java("4.3.1", str(HERE / "Pair.java"), *rest, seconds, heap="128m"),
        [str(built), *rest, seconds],
    ]
    commands += [
        [sys.executable, str(HERE / "pair.py"), library, *rest, seconds]
        for library in ("librdkafka", "kafka-python", "aiokafka")
    ]
    running = [subprocess.Popen(command) for command in commands]
    assert [one.wait(120) for one in running] == [0] * len(running)


RACKS = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}, 3: {"broker.rack": "c"}}
SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RACKED = {"nodes": 3, "own": RACKS, "settings": SELECTOR}
CONTROLLER_PORTS = (19012, 19022, 19032)
SCENARIOS = {
    "leader-moved": Scenario(leader_moved, orders, {"nodes": 3}),
    "stale-leader": Scenario(stale_leader, orders, {"nodes": 3}),
    "broker-gone": Scenario(broker_gone, orders, {"nodes": 3}, alone=True),
    "coordinator-moved": Scenario(coordinator_moved, orders, {"nodes": 3}, alone=True),
    "controller-change": Scenario(
        controller_change, cluster={"nodes": 3, "controllers": 3}, only=CONTROLLER_PORTS, alone=True
    ),
    "rack-unset": Scenario(rack_unset, orders, RACKED),
    "replica-hint-ignored": Scenario(hint_ignored, orders, RACKED),
    "libraries": Scenario(healthy_libraries, healthy_start, alone=True, healthy_only=True),
}
