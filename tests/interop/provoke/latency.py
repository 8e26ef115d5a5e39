"""Troubles of time: networks that are far or forget, brokers that have no CPU.

latency.py WRITER ADDRESS TOPIC is the program at the far end of the network.
"""

from __future__ import annotations

import subprocess
import sys
import time

from cluster import Cluster
from confluent_kafka import Producer
from scenarios import Scenario, Stage
from wan import HERE, Wan

SILENCE = 245  # seconds


def topic(stage: Stage) -> None:
    stage.create(partitions=3)


def far_program(stage: Stage, wan: Wan, name: str) -> subprocess.Popen[str]:
    command = [*wan.inside, sys.executable, __file__, name, stage.cluster.address, stage.topic]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def slow_network(stage: Stage) -> None:
    """A producer 60 ms away in each direction (a tun device that delays), acks=all, 10 records a second, each awaited.
    Healthy: the same network without the delay."""
    assert isinstance(stage.cluster, FarCluster)
    wan = stage.cluster.wan
    wan.delay = 0.06 if stage.sick else 0.0
    if stage.sick:
        stage.found("slow-network", client_id="far")
    assert far_program(stage, wan, "steady").wait(60) == 0


def idle_cut(stage: Stage) -> None:
    """A producer is silent for 245 s; a NAT gateway between has forgotten its connections by then and drops their
    packets without a word. The next record is asked for again and again, until the request times out. Healthy: nothing
    is cut."""
    assert isinstance(stage.cluster, FarCluster)
    wan = stage.cluster.wan
    wan.delay = 0.0
    program = far_program(stage, wan, "silent")
    assert program.stdout is not None
    program.stdout.readline()
    time.sleep(SILENCE - 3)
    if stage.sick:
        wan.forget()
    program.stdout.readline()
    if stage.sick:
        stage.found("idle-cut", client_id="far")
    assert program.wait(90) == 0


def steady(address: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": address, "client.id": "far", "linger.ms": 0, "acks": "all"})
    for number in range(60):
        producer.produce(topic, value=f"order {number}", partition=number % 3)
        producer.flush(10)
        time.sleep(0.12)


def silent(address: str, topic: str) -> None:
    config = {"bootstrap.servers": address, "client.id": "far", "linger.ms": 0, "socket.timeout.ms": 8000}
    producer = Producer(config | {"message.timeout.ms": 30000, "socket.keepalive.enable": False})
    for round_ in range(2):
        if round_:
            time.sleep(SILENCE)
        print("writes", flush=True)
        producer.produce(topic, value=f"order {round_}", partition=0)
        producer.flush(30)


def slow_broker(stage: Stage) -> None:
    """A producer to three brokers, 9 records a second; broker 2 gets little CPU (its process is stopped for 60 ms of
    every 75). Healthy: it is not."""
    producer = stage.producer("writer", linger_ms=0)
    with stage.cluster.pulsed(2, 0.06, 0.015, on=stage.sick):
        if stage.sick:
            stage.found("slow-broker", broker=2, address=f"127.0.0.1:{stage.cluster.port(2)}")
        for number in range(100):
            producer.produce(stage.topic, value=f"order {number}", partition=number % 3)
            producer.poll(0)
            time.sleep(0.11)
        producer.flush(20)


class FarCluster(Cluster):
    """One whose clients are at the far end of a Wan."""

    def start(self) -> None:
        self.wan = Wan()
        self.wan.__enter__()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.wan.__exit__()


FAR = {"far": True, "host": HERE}
SCENARIOS = {
    "slow-network": Scenario(slow_network, topic, FAR),
    "idle-cut": Scenario(idle_cut, topic, FAR),
    "slow-broker": Scenario(slow_broker, topic, {"nodes": 3}),
}

if __name__ == "__main__":
    {"steady": steady, "silent": silent}[sys.argv[1]](*sys.argv[2:])
