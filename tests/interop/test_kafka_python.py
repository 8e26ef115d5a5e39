"""kafka-python against the embedded broker: produce, groups, commit, rebalance, leave, admin, logins, TLS."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from kwire.testing import Broker

kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
LATE = 30.0


def produce(broker: Broker, topic: str, count: int, **how: Any) -> Any:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.address, **how)
    sent = [producer.send(topic, b"v%d" % n, key=b"k%d" % (n % 7)) for n in range(count)]
    last = [future.get(LATE) for future in sent][-1]
    producer.close()
    return last


def consumer(broker: Broker, name: str, **how: Any) -> Any:
    return kafka.KafkaConsumer(
        "t", bootstrap_servers=broker.address, group_id="g", client_id=name, auto_offset_reset="earliest",
        heartbeat_interval_ms=200, session_timeout_ms=6000, **how,
    )  # fmt: skip


def poll_until(wanted: Any, *consumers: Any) -> int:
    """Polls them in turns until wanted() holds; how many records came.

    Polls of 50 ms now and then leave kafka-python 3.0.12 stuck between SyncGroup and OffsetFetch.
    """
    got, end = 0, time.monotonic() + LATE
    while not wanted(got) and time.monotonic() < end:
        for one in consumers:
            got += sum(len(records) for records in one.poll(500).values())
    return got


@pytest.mark.parametrize(
    "how", [{"acks": 1, "enable_idempotence": False}, {"acks": "all"}, {"compression_type": "gzip"}]
)
def test_what_is_sent_stands_in_the_log(how: dict[str, Any]) -> None:
    with Broker(topics={"t": 1}) as broker:
        assert produce(broker, "t", 50, **how).offset == 49
        assert [record.value for record in broker.log("t")] == [b"v%d" % n for n in range(50)]


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_group_of_two_shares_commits_and_shrinks(nodes: int) -> None:
    with Broker(topics={"t": 4}, nodes=nodes) as broker:
        produce(broker, "t", 100)
        first = consumer(broker, "c1")
        assert poll_until(lambda got: got >= 100, first) == 100
        first.commit()
        second = consumer(broker, "c2")
        poll_until(lambda _: [len(c.assignment()) for c in (first, second)] == [2, 2], first, second)
        assert [len(one.assignment()) for one in (first, second)] == [2, 2]
        second.close()
        poll_until(lambda _: len(first.assignment()) == 4, first)
        assert len(first.assignment()) == 4
        assert sum(first.committed(kafka.TopicPartition("t", n)) or 0 for n in range(4)) == 100
        first.close()
        kinds = [event.kind for event in broker.events()]
        assert kinds.count("left") == 2
        assert "evicted" not in kinds


def test_a_commit_is_where_the_next_one_begins() -> None:
    with Broker(topics={"t": 1}) as broker:
        produce(broker, "t", 10)
        first = consumer(broker, "c1", enable_auto_commit=False)
        poll_until(lambda got: got >= 10, first)
        first.commit({kafka.TopicPartition("t", 0): kafka.OffsetAndMetadata(7, "", -1)})
        first.close()
        second = consumer(broker, "c2")
        assert poll_until(lambda got: got >= 3, second) == 3
        second.close()


def test_an_idempotent_producer_survives_lost_answers() -> None:
    """The batch is written, its answer is lost, it is sent again, and stands in the log once."""
    with Broker(topics={"t": 1}, faults=["Produce:cut=after,times=2"]) as broker:
        producer = kafka.KafkaProducer(bootstrap_servers=broker.address, acks="all", retries=10, retry_backoff_ms=20)
        for n in range(5):
            producer.send("t", b"v%d" % n).get(LATE)
        producer.close()
        assert [record.value for record in broker.log("t")] == [b"v0", b"v1", b"v2", b"v3", b"v4"]
        assert len(broker.requests("Produce")) == 7


def test_a_leader_that_moves_is_found_again() -> None:
    with Broker(topics={"t": 1}, nodes=3, faults=["leader:move"]) as broker:
        assert produce(broker, "t", 5, retry_backoff_ms=20).offset == 4
        assert len(broker.log("t")) == 5


@pytest.mark.parametrize(
    "rule",
    [
        "Heartbeat:error=REBALANCE_IN_PROGRESS,times=1",
        "Heartbeat,client=c1:expire",
        "group=g:forget,after=6",
        "Heartbeat:cut,times=1",
    ],
)
def test_a_member_that_is_thrown_out_comes_back(rule: str) -> None:
    with Broker(topics={"t": 1}) as broker:
        one = consumer(broker, "c1")
        poll_until(lambda _: len(one.assignment()) == 1, one)
        broker.fault(rule)
        poll_until(lambda _: bool(broker.events("fault")), one)
        produce(broker, "t", 1)
        assert poll_until(lambda got: got >= 1, one) == 1
        assert len(broker.events("fault")) >= 1
        one.close()


def test_a_coordinator_that_moves_is_found_again() -> None:
    with Broker(topics={"t": 1}, nodes=2) as broker:
        one = consumer(broker, "c1")
        poll_until(lambda _: len(one.assignment()) == 1, one)
        found = len(broker.requests("FindCoordinator"))
        broker.fault("coordinator:move")
        poll_until(lambda _: len(broker.requests("FindCoordinator")) > found, one)
        produce(broker, "t", 1)
        assert poll_until(lambda got: got >= 1, one) == 1
        one.close()


def test_admin() -> None:
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

    with Broker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.address)
        admin.create_topics([NewTopic("a", 3, 1)])
        assert sorted(admin.list_topics()) == ["a"]
        (described,) = admin.describe_topics(["a"])
        assert len(described["partitions"]) == 3
        assert len(broker.server.state.cluster.topics["a"].partitions) == 3
        admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "a")])
        assert [seen.api for seen in broker.requests()].count("DescribeConfigs") == 1
        assert len(admin.describe_cluster()["brokers"]) == 1
        admin.delete_topics(["a"])
        assert admin.list_topics() == []
        admin.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logins(mechanism: str) -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, "sasl_plain_username": "ann"}
    with Broker(topics={"t": 1}, users={"ann": "secret"}) as broker:
        assert produce(broker, "t", 1, sasl_plain_password="secret", **login).offset == 0
        assert broker.events("login")[-1].text == f"ann with {mechanism}"
        errors = (kafka.errors.KafkaError, kafka.errors.KafkaTimeoutError)
        with pytest.raises(errors):
            produce(broker, "t", 1, sasl_plain_password="wrong", max_block_ms=1000, bootstrap_timeout_ms=1000, **login)


def test_tls() -> None:
    pytest.importorskip("cryptography")
    with Broker(topics={"t": 1}, tls=True) as broker:
        assert produce(broker, "t", 1, security_protocol="SSL", ssl_cafile=broker.certificate_file).offset == 0


def test_two_threads_and_one_broker() -> None:
    with Broker(topics={"t": 1}) as broker:
        threads = [threading.Thread(target=produce, args=(broker, "t", 20)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LATE)
        assert len(broker.log("t")) == 40
