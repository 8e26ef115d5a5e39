# mypy: disable-error-code="attr-defined, call-arg, arg-type, no-untyped-call, union-attr, index"
"""librdkafka's features of administration: topics, configurations, groups, ACLs, SCRAM users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from features import Features, check, soon

if TYPE_CHECKING:
    from librdkafka import Rdkafka

LATE = 60.0


class Administration:
    def __init__(self, rdkafka: Rdkafka) -> None:
        self.rdkafka, self.admin = rdkafka, rdkafka.admin

    # ------------------------------------------------------------ topics and configurations

    def create(self, topic: str) -> None:
        self.rdkafka.topic(topic, 3)
        soon(lambda: self.partitions(topic) == 3)
        try:
            self.rdkafka.topic(topic)
        except KafkaException as expected:
            check(expected.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, expected)
        else:
            raise ValueError("not refused")

    def create_config(self, topic: str) -> None:
        self.rdkafka.topic(topic, 1, **{"max.message.bytes": "2000"})
        check(self.config(ResourceType.TOPIC, topic, "max.message.bytes") == "2000")

    def dry(self, topic: str) -> None:
        self.admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic].result(LATE)
        check(topic not in self.admin.list_topics(timeout=LATE).topics)

    def describe(self, topic: str) -> None:
        self.rdkafka.topic(topic, 2)
        found = self.admin.describe_topics(TopicCollection([topic]))[topic].result(LATE)
        check(len(found.partitions) == 2 and found.topic_id, found)

    def delete(self, topic: str) -> None:
        self.rdkafka.topic(topic)
        self.admin.delete_topics([topic])[topic].result(LATE)

    def grow(self, topic: str) -> None:
        self.rdkafka.topic(topic)
        self.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(LATE)
        soon(lambda: self.partitions(topic) == 3)

    def partitions(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, LATE).topics[topic].partitions)

    def config(self, kind: Any, name: str, config: str) -> Any:
        resource = ConfigResource(kind, name)
        return self.admin.describe_configs([resource])[resource].result(LATE)[config].value

    def node(self) -> int:
        return int(next(iter(self.admin.list_topics(timeout=LATE).brokers)))

    def broker_configs(self, _: str) -> None:
        check(int(self.config(ResourceType.BROKER, str(self.node()), "message.max.bytes")) > 0)

    def alter(self, topic: str) -> None:
        self.rdkafka.topic(topic)
        entry = ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(LATE)
        check(self.config(ResourceType.TOPIC, topic, "retention.ms") == "1234567")

    def alter_all(self, topic: str) -> None:
        self.rdkafka.topic(topic)
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "7654321"})
        self.admin.alter_configs([resource])[resource].result(LATE)
        check(self.config(ResourceType.TOPIC, topic, "retention.ms") == "7654321")

    def delete_records(self, topic: str) -> None:
        self.rdkafka.filled(topic)
        place = TopicPartition(topic, 0, 4)
        check(self.admin.delete_records([place])[place].result(LATE).low_watermark == 4)

    def list_offsets(self, topic: str) -> None:
        self.rdkafka.filled(topic)
        place = TopicPartition(topic, 0)
        for spec, offset in ((OffsetSpec.latest(), 10), (OffsetSpec.earliest(), 0)):
            check(self.admin.list_offsets({place: spec})[place].result(LATE).offset == offset)

    def elect(self, topic: str) -> None:
        self.rdkafka.topic(topic)
        place = TopicPartition(topic, 0)
        found = self.admin.elect_leaders(ElectionType.PREFERRED, [place]).result(LATE)
        check(found[place].code() == KafkaError.ELECTION_NOT_NEEDED, found)

    def cluster(self, _: str) -> None:
        found = self.admin.describe_cluster().result(LATE)
        check(found.cluster_id and found.nodes and found.controller, found)

    # ------------------------------------------------------------ groups

    def left(self, group: str, protocol: str = "classic") -> None:
        """A group that read ten records, committed and left."""
        self.rdkafka.filled(group)
        consumer = self.rdkafka.consumer(group, **{"group.protocol": protocol})
        consumer.subscribe([group])
        check(len(consumer.consume(10, LATE)) == 10)
        consumer.commit(offsets=[TopicPartition(group, 0, 10)], asynchronous=False)
        consumer.close()

    def list_groups(self, group: str) -> None:
        self.left(group)
        only = {"states": {ConsumerGroupState.EMPTY}, "types": {ConsumerGroupType.CLASSIC}}
        found = self.admin.list_consumer_groups(**only).result(LATE)
        check(group in [each.group_id for each in found.valid], found.valid)

    def describe_group(self, group: str, protocol: str = "classic") -> None:
        self.rdkafka.filled(group)
        consumer = self.rdkafka.consumer(group, **{"group.protocol": protocol})
        consumer.subscribe([group])
        check(len(consumer.consume(10, LATE)) == 10)
        found = self.admin.describe_consumer_groups([group])[group].result(LATE)
        check(found.members[0].assignment.topic_partitions == [TopicPartition(group, 0)], found.members)
        consumer.close()

    def describe_consumer_group(self, group: str) -> None:
        self.describe_group(group, "consumer")

    def group_offsets(self, group: str) -> None:
        self.left(group)
        check(self.committed(group) == 10)

    def committed(self, group: str) -> Any:
        asked = [ConsumerGroupTopicPartitions(group)]
        return self.admin.list_consumer_group_offsets(asked)[group].result(LATE).topic_partitions[0].offset

    def alter_group_offsets(self, group: str) -> None:
        self.left(group)
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(group, 0, 3)])
        self.admin.alter_consumer_group_offsets([wanted])[group].result(LATE)
        check(self.committed(group) == 3)

    def delete_group(self, group: str) -> None:
        self.left(group)
        self.admin.delete_consumer_groups([group])[group].result(LATE)

    def delete_consumer_group(self, group: str) -> None:
        self.left(group, "consumer")
        self.admin.delete_consumer_groups([group])[group].result(LATE)

    # ------------------------------------------------------------ rights

    def acls(self, topic: str) -> None:
        words = ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:nobody", "*"
        binding = AclBinding(*words, AclOperation.READ, AclPermissionType.ALLOW)
        only = AclBindingFilter(*words, AclOperation.READ, AclPermissionType.ALLOW)
        self.admin.create_acls([binding])[binding].result(LATE)
        soon(lambda: self.admin.describe_acls(only).result(LATE) == [binding])
        check(self.admin.delete_acls([only])[only].result(LATE) == [binding])

    def scram(self, user: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        made = UserScramCredentialUpsertion(user, info, b"secret")
        self.admin.alter_user_scram_credentials([made])[user].result(LATE)
        soon(lambda: self.mechanisms(user) == [ScramMechanism.SCRAM_SHA_256])
        gone = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)
        self.admin.alter_user_scram_credentials([gone])[user].result(LATE)

    def mechanisms(self, user: str) -> list[Any]:
        try:
            found = self.admin.describe_user_scram_credentials([user])[user].result(LATE)
        except KafkaException:
            return []
        return [each.mechanism for each in found.scram_credential_infos]

    def features(self) -> Features:
        return {
            "topics-create": self.create,
            "topics-create-config": self.create_config,
            "topics-validate-only": self.dry,
            "topics-describe": self.describe,
            "topics-delete": self.delete,
            "partitions-create": self.grow,
            "configs-describe-broker": self.broker_configs,
            "configs-alter": self.alter,
            "configs-alter-all": self.alter_all,
            "records-delete": self.delete_records,
            "offsets-list": self.list_offsets,
            "leaders-elect": self.elect,
            "cluster-describe": self.cluster,
            "groups-list": self.list_groups,
            "groups-describe-classic": self.describe_group,
            "groups-describe-consumer": self.describe_consumer_group,
            "group-offsets-list": self.group_offsets,
            "group-offsets-alter": self.alter_group_offsets,
            "groups-delete": self.delete_group,
            "groups-delete-consumer": self.delete_consumer_group,
            "acls": self.acls,
            "scram": self.scram,
        }
