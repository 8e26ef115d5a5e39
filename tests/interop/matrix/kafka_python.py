# mypy: disable-error-code="import-untyped, import-not-found, no-untyped-call"
"""What kafka-python can do: kafka_python.py ADDRESS."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import kafka.admin as words
from features import LATELY, Features, check, soon, try_all
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import OffsetAndMetadata

LATE = 60.0
VALUES = [b"v%d" % n for n in range(10)]


class KafkaPython:
    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def admin(self) -> Any:
        """A client of its own for each feature: one that hangs is no matter of the others."""
        return KafkaAdminClient(bootstrap_servers=self.address)

    def topic(self, name: str, partitions: int = 1, **config: str) -> None:
        self.admin.create_topics([NewTopic(name, partitions, 1, topic_configs=config)])

    def producer(self, **settings: Any) -> Any:
        return KafkaProducer(bootstrap_servers=self.address, **settings)

    def consumer(self, group: str | None = None, **settings: Any) -> Any:
        shared = {"bootstrap_servers": self.address, "group_id": group, "auto_offset_reset": "earliest"}
        return KafkaConsumer(**(shared | settings))

    def send(self, topic: str, **settings: Any) -> None:
        producer = self.producer(**settings)
        for future in [producer.send(topic, value) for value in VALUES]:
            future.get(LATE)
        producer.close()

    def filled(self, topic: str, **settings: Any) -> None:
        self.topic(topic)
        self.send(topic, **settings)

    def read(self, topic: str, wanted: int, **settings: Any) -> list[Any]:
        consumer = self.consumer(**settings)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found = self.polled(consumer, wanted)
        consumer.close()
        check(len(found) == wanted, f"{len(found)} records")
        return found

    def polled(self, consumer: Any, wanted: int) -> list[Any]:
        found: list[Any] = []
        end = time.monotonic() + (LATE if wanted else 1)
        while len(found) < (wanted or 1) and time.monotonic() < end:
            found += [each for records in consumer.poll(500).values() for each in records]
        return found

    # ------------------------------------------------------------ clients

    def produced(self, **settings: Any) -> Callable[[str], object]:
        def run(topic: str) -> None:
            self.filled(topic, **settings)
            check([each.value for each in self.read(topic, 10)] == VALUES)

        return run

    def headers(self, topic: str) -> None:
        self.topic(topic)
        self.producer().send(topic, None, b"k", headers=[("h", b"x")], timestamp_ms=LATELY).get(LATE)
        found = self.read(topic, 1)[0]
        check((list(found.headers), found.timestamp, found.value) == ([("h", b"x")], LATELY, None), found)

    def begun(self, topic: str) -> Any:
        producer = self.begin(topic)
        for value in VALUES:
            producer.send(topic, value)
        producer.flush(LATE)
        return producer

    def begin(self, topic: str) -> Any:
        producer = self.producer(transactional_id=topic, enable_idempotence=True, acks="all")
        producer.init_transactions()
        producer.begin_transaction()
        return producer

    def commits(self, topic: str) -> None:
        self.topic(topic)
        self.begun(topic).commit_transaction()
        self.read(topic, 10, isolation_level="read_committed")

    def aborts(self, topic: str) -> None:
        self.topic(topic)
        self.begun(topic).abort_transaction()
        self.read(topic, 0, isolation_level="read_committed")
        self.read(topic, 10)

    def transfers(self, topic: str) -> None:
        self.filled(topic)
        consumer = self.consumer(topic, enable_auto_commit=False)
        consumer.subscribe([topic])
        check(len(self.polled(consumer, 10)) == 10)
        producer = self.begin(topic)
        place = TopicPartition(topic, 0)
        offsets = {place: OffsetAndMetadata(10, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        soon(lambda: consumer.committed(place) == 10)
        consumer.close()

    def by_time(self, topic: str) -> None:
        self.topic(topic)
        producer = self.producer()
        for second in range(1, 5):
            producer.send(topic, b"v", timestamp_ms=LATELY + second * 1_000).get(LATE)
        consumer, place = self.consumer(), TopicPartition(topic, 0)
        check(consumer.offsets_for_times({place: LATELY + 2_500})[place].offset == 2)
        check(consumer.beginning_offsets([place])[place] == 0 and consumer.end_offsets([place])[place] == 4)

    def group(self, topic: str, **settings: Any) -> None:
        self.topic(topic, 4)
        settings |= {"heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
        first, second = self.consumer(topic, **settings), self.consumer(topic, **settings)
        first.subscribe([topic])
        second.subscribe([topic])
        self.until(lambda: len(first.assignment()) == 2 == len(second.assignment()), first, second)
        second.close()
        self.until(lambda: len(first.assignment()) == 4, first)
        first.commit({TopicPartition(topic, 0): OffsetAndMetadata(3, "", -1)})
        check(first.committed(TopicPartition(topic, 0)) == 3)
        first.close()

    def until(self, done: Callable[[], bool], *consumers: Any) -> None:
        end = time.monotonic() + LATE
        while not done():
            check(time.monotonic() < end, [consumer.assignment() for consumer in consumers])
            for consumer in consumers:
                consumer.poll(500)

    def cooperative(self, topic: str) -> None:
        self.group(topic, partition_assignment_strategy=[CooperativeStickyAssignor])

    def static(self, topic: str) -> None:
        self.filled(topic)
        for _ in range(2):
            consumer = self.consumer(topic, group_instance_id="i")
            consumer.subscribe([topic])
            check(len(self.polled(consumer, 10)) == 10)
            consumer.close()
            self.send(topic)

    def pattern(self, topic: str) -> None:
        self.filled(topic)
        consumer = self.consumer(topic)
        consumer.subscribe(pattern=f"^{topic}.*")
        check(len(self.polled(consumer, 10)) == 10)
        consumer.close()

    # ------------------------------------------------------------ administration

    def left(self, group: str) -> TopicPartition:
        self.filled(group)
        consumer = self.consumer(group)
        consumer.subscribe([group])
        check(len(self.polled(consumer, 10)) == 10)
        consumer.close()
        return TopicPartition(group, 0)

    def create(self, topic: str) -> None:
        self.topic(topic, 2, **{"max.message.bytes": "2000"})
        admin = self.admin
        soon(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 2)
        admin.create_partitions({topic: 3})
        admin.describe_topic_partitions([topic])
        admin.delete_topics([topic])
        soon(lambda: topic not in admin.list_topics())

    def configs(self, topic: str) -> None:
        self.topic(topic)
        resource = words.ConfigResource(words.ConfigResourceType.TOPIC, topic, {"retention.ms": "1234567"})
        soon(lambda: topic in self.admin.list_topics())
        self.admin.alter_configs([resource])
        asked = words.ConfigResource(words.ConfigResourceType.TOPIC, topic)
        check("1234567" in str(self.admin.describe_configs([asked])))
        self.admin.reset_configs([resource])

    def config_resources(self, _: str) -> None:
        check("TOPIC" in str(self.admin.list_config_resources(["TOPIC"])).upper())

    def delete_records(self, topic: str) -> None:
        self.filled(topic)
        self.admin.delete_records({TopicPartition(topic, 0): 4})
        place = TopicPartition(topic, 0)
        found = self.admin.list_partition_offsets({place: words.OffsetSpec.EARLIEST})
        check(found[place].offset == 4, found)

    def replicas(self, topic: str) -> None:
        self.topic(topic)
        admin, place = self.admin, TopicPartition(topic, 0)
        node = admin.describe_cluster()["brokers"][0]["broker_id"]
        admin.alter_partition_reassignments({place: [node]})
        admin.list_partition_reassignments()

    def elect(self, topic: str) -> None:
        self.topic(topic)
        self.admin.elect_leaders(0, {topic: [0]}, raise_errors=False)

    def log_dirs(self, topic: str) -> None:
        self.filled(topic)
        check(topic in str(self.admin.describe_log_dirs([topic])))

    def quorum(self, _: str) -> None:
        check(self.admin.describe_metadata_quorum())

    def feature_levels(self, _: str) -> None:
        level = self.admin.describe_features()["group.version"]["finalized"][1]
        self.admin.update_features({"group.version": ("UPGRADE", level)}, validate_only=True)

    def groups(self, group: str) -> None:
        place, admin = self.left(group), self.admin
        check(group in [each["group_id"] for each in admin.list_groups(states_filter=["Empty"])])
        check(group in admin.describe_groups([group]))
        soon(lambda: admin.list_group_offsets({group: None})[group][place].offset == 10)
        admin.alter_group_offsets(group, {place: OffsetAndMetadata(3, "", -1)})
        check(admin.list_group_offsets({group: [place]})[group][place].offset == 3)
        admin.delete_group_offsets(group, [place])
        admin.delete_groups([group])

    def remove(self, group: str) -> None:
        self.filled(group)
        consumer = self.consumer(group, group_instance_id="i")
        consumer.subscribe([group])
        check(len(self.polled(consumer, 10)) == 10)
        consumer.close()
        self.admin.remove_group_members(group, [words.MemberToRemove(group_instance_id="i")])

    def transactions(self, topic: str) -> None:
        self.topic(topic)
        producer, admin, place = self.begun(topic), self.admin, TopicPartition(topic, 0)
        check(topic in str(admin.list_transactions(state_filters=["Ongoing"])))
        check(topic in str(admin.describe_transactions([topic])))
        state = admin.describe_producers([place])[place].active_producers[0]
        admin.abort_transaction(words.AbortTransactionSpec(place, state.producer_id, state.producer_epoch))
        self.read(topic, 0, isolation_level="read_committed")
        producer.close(0)

    def acls(self, topic: str) -> None:
        pattern = words.ResourcePattern(words.ResourceType.TOPIC, topic)
        acl = words.ACL("User:nobody", "*", words.ACLOperation.READ, words.ACLPermissionType.ALLOW, pattern)
        self.admin.create_acls([acl])
        soon(lambda: acl in self.admin.describe_acls(acl)[0])
        self.admin.delete_acls([acl])

    def scram(self, user: str) -> None:
        kind = words.ScramMechanism.SCRAM_SHA_256
        self.admin.alter_user_scram_credentials([words.UserScramCredentialUpsertion(user, kind, "secret", 4096)])
        soon(lambda: "4096" in str(self.admin.describe_user_scram_credentials()))
        self.admin.alter_user_scram_credentials([words.UserScramCredentialDeletion(user, kind)])

    def features(self) -> Features:
        return {
            "produce": self.produced(enable_idempotence=False, acks=1),
            "produce-acks-0": self.produced(enable_idempotence=False, acks=0),
            "produce-idempotent": self.produced(enable_idempotence=True, acks="all"),
            "produce-gzip": self.produced(compression_type="gzip"),
            "produce-headers": self.headers,
            "transaction-commit": self.commits,
            "transaction-abort": self.aborts,
            "transaction-offsets": self.transfers,
            "transactions-admin": self.transactions,
            "consume-by-time": self.by_time,
            "consume-pattern": self.pattern,
            "group-classic": self.group,
            "group-cooperative": self.cooperative,
            "group-static": self.static,
            "topics": self.create,
            "configs-alter": self.configs,
            "config-resources-list": self.config_resources,
            "records-delete": self.delete_records,
            "replicas-reassign": self.replicas,
            "leaders-elect": self.elect,
            "log-dirs": self.log_dirs,
            "quorum-describe": self.quorum,
            "features-update": self.feature_levels,
            "groups": self.groups,
            "group-members-remove": self.remove,
            "acls": self.acls,
            "scram": self.scram,
        }


if __name__ == "__main__":
    try_all(KafkaPython(sys.argv[1]).features(), "kafka-python")
    os._exit(0)  # what hangs is left behind
