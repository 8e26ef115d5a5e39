"""librdkafka (confluent-kafka) against the embedded broker: classic groups and KIP-848, idempotence, admin, faults."""

# mypy: disable-error-code="attr-defined, dict-item, func-returns-value"

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kwire.testing import Broker

confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
LATE = 30.0


def produce(broker: Broker, topic: str, count: int, **how: Any) -> list[Any]:
    """Sends count records; what went wrong with them."""
    failed: list[Any] = []
    settings = {"bootstrap.servers": broker.address, "linger.ms": 1, "retry.backoff.ms": 20, **how}
    producer = confluent.Producer(settings)
    for n in range(count):
        producer.produce(
            topic, b"v%d" % n, b"k%d" % (n % 7), on_delivery=lambda error, _: error and failed.append(error)
        )
    assert producer.flush(LATE) == 0
    return failed


def consumer(broker: Broker, name: str, protocol: str) -> Any:
    settings = {
        "bootstrap.servers": broker.address, "group.id": "g", "client.id": name, "auto.offset.reset": "earliest",
        "group.protocol": protocol,
    }  # fmt: skip
    if protocol == "classic":
        settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    made = confluent.Consumer(settings)
    made.subscribe(["t"])
    return made


def poll_until(wanted: Callable[[int], bool], *consumers: Any) -> int:
    got, end = 0, time.monotonic() + LATE
    while not wanted(got) and time.monotonic() < end:
        for one in consumers:
            message = one.poll(0.02)
            got += message is not None and message.error() is None
    return got


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_stands_in_the_log(codec: str) -> None:
    with Broker(topics={"t": 1}) as broker:
        assert produce(broker, "t", 50, **{"compression.type": codec, "enable.idempotence": True}) == []
        assert [record.value for record in broker.log("t")] == [b"v%d" % n for n in range(50)]


@pytest.mark.parametrize(("protocol", "nodes"), [("classic", 1), ("classic", 3), ("consumer", 1)])
def test_a_group_of_two_shares_commits_and_shrinks(protocol: str, nodes: int) -> None:
    from kwire.broker.context import BrokerSettings
    from kwire.coordinator.types import GroupSettings

    groups = GroupSettings(group_initial_rebalance_delay_ms=0, group_consumer_heartbeat_interval_ms=500)
    with Broker(topics={"t": 4}, nodes=nodes, settings=BrokerSettings(groups=groups)) as broker:
        produce(broker, "t", 100)
        first = consumer(broker, "c1", protocol)
        assert poll_until(lambda got: got >= 100, first) == 100
        first.commit(asynchronous=False)
        second = consumer(broker, "c2", protocol)
        poll_until(lambda _: [len(c.assignment()) for c in (first, second)] == [2, 2], first, second)
        assert [len(one.assignment()) for one in (first, second)] == [2, 2]
        second.close()
        poll_until(lambda _: len(first.assignment()) == 4, first)
        assert len(first.assignment()) == 4
        parts = [confluent.TopicPartition("t", n) for n in range(4)]
        assert sum(max(part.offset, 0) for part in first.committed(parts, LATE)) == 100
        first.close()
        kinds = [event.kind for event in broker.events()]
        assert kinds.count("left") == 2
        assert "evicted" not in kinds


@pytest.mark.parametrize(
    "rule",
    ["Produce:cut=after,times=2", "Produce:error=NOT_LEADER_OR_FOLLOWER,times=2", "Produce:short=9,times=1",
     "Produce:cut,times=1", "leader:move"],
)  # fmt: skip
def test_an_idempotent_producer_gets_everything_through_once(rule: str) -> None:
    with Broker(topics={"t": 1}, nodes=2, faults=[rule]) as broker:
        assert produce(broker, "t", 30, **{"enable.idempotence": True}) == []
        assert [record.value for record in broker.log("t")] == [b"v%d" % n for n in range(30)]
        assert len(broker.events("fault")) >= 1


def test_admin() -> None:
    from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

    with Broker(nodes=2) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("a", 3, 2)])["a"].result(LATE)
        assert len(admin.list_topics("a", LATE).topics["a"].partitions) == 3
        assert len(admin.describe_cluster().result(LATE).nodes) == 2
        resource = ConfigResource(ConfigResource.Type.TOPIC, "a", set_config={"retention.ms": "77"})
        admin.alter_configs([resource])[resource].result(LATE)
        described = admin.describe_configs([resource])[resource].result(LATE)
        assert described["retention.ms"].value == "77"
        assert admin.list_consumer_groups().result(LATE).valid == []
        admin.delete_topics(["a"])["a"].result(LATE)
        assert broker.server.state.cluster.topics == {}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logins_over_tls(mechanism: str) -> None:
    pytest.importorskip("cryptography")
    with Broker(topics={"t": 1}, users={"ann": "secret"}, tls=True) as broker:
        login = {
            "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.username": "ann",
            "sasl.password": "secret", "ssl.ca.location": broker.certificate_file,
        }  # fmt: skip
        assert produce(broker, "t", 1, **login) == []
