// Features of the admin client about groups: classic, consumer, share.

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;

public class Groups extends Matrix {
    public static void features() {
        FEATURES.put("groups-list", topic -> {
            left(topic, "classic");
            ListGroupsOptions only = new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC)).inGroupStates(Set.of(GroupState.EMPTY));
            Collection<GroupListing> found = get(admin.listGroups(only).all());
            check(found.stream().anyMatch(each -> each.groupId().equals(topic)), found);
        });
        FEATURES.put("groups-list-consumer", topic -> {
            left(topic, "classic");
            check(get(admin.listConsumerGroups().all()).stream().anyMatch(each -> each.groupId().equals(topic)), "none");
        });
        FEATURES.put("groups-describe-classic", topic -> described(topic, "classic"));
        FEATURES.put("groups-describe-consumer", topic -> described(topic, "consumer"));
        FEATURES.put("groups-describe-empty", topic -> {
            left(topic, "classic");
            check(get(admin.describeClassicGroups(List.of(topic)).all()).get(topic).members().isEmpty(), "members");
        });
        FEATURES.put("group-config", topic -> {
            Admins.set(ConfigResource.Type.GROUP, topic, "consumer.session.timeout.ms", "50000", AlterConfigOp.OpType.SET);
            check(Admins.config(ConfigResource.Type.GROUP, topic, "consumer.session.timeout.ms").equals("50000"), "another");
        });
        FEATURES.put("group-offsets-list", topic -> {
            left(topic, "classic");
            TopicPartition partition = new TopicPartition(topic, 0);
            check(get(admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata()).get(partition).offset() == 10, "another");
        });
        FEATURES.put("group-offsets-list-batch", topic -> {
            left(topic, "classic");
            check(get(admin.listConsumerGroupOffsets(Map.of(topic, new ListConsumerGroupOffsetsSpec())).all())
                .get(topic).get(new TopicPartition(topic, 0)).offset() == 10, "another");
        });
        FEATURES.put("group-offsets-alter", topic -> {
            left(topic, "classic");
            TopicPartition partition = new TopicPartition(topic, 0);
            get(admin.alterConsumerGroupOffsets(topic, Map.of(partition, new OffsetAndMetadata(3))).all());
            check(get(admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata()).get(partition).offset() == 3, "another");
        });
        FEATURES.put("group-offsets-delete", topic -> {
            left(topic, "classic");
            TopicPartition partition = new TopicPartition(topic, 0);
            get(admin.deleteConsumerGroupOffsets(topic, Set.of(partition)).all());
            check(get(admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata()).get(partition) == null, "still");
        });
        FEATURES.put("group-members-remove", Groups::removed);
        FEATURES.put("groups-delete", topic -> {
            left(topic, "classic");
            get(admin.deleteConsumerGroups(List.of(topic)).all());
        });
        FEATURES.put("groups-delete-consumer", topic -> {
            Clients.protocol();
            left(topic, "consumer");
            get(admin.deleteConsumerGroups(List.of(topic)).all());
        });
        FEATURES.put("share-group-describe", topic -> {
            Clients.share(topic, "implicit");
            check(get(admin.describeShareGroups(List.of(topic)).all()).get(topic).groupState() == GroupState.EMPTY, "not empty");
        });
        FEATURES.put("share-group-offsets", Groups::shareOffsets);
        FEATURES.put("share-group-delete", topic -> {
            Clients.share(topic, "implicit");
            get(admin.deleteShareGroups(List.of(topic)).all());
        });
    }

    /** A group that read ten records, committed and left. */
    static void left(String topic, String protocol) throws Exception {
        filled(topic);
        Object[] modern = {"group.id", topic, "group.protocol", "consumer"}, classic = {"group.id", topic};
        try (KafkaConsumer<String, String> consumer = consumer(protocol.equals("classic") ? classic : modern)) {
            consumer.subscribe(List.of(topic));
            check(poll(consumer, 10) == 10, "too few");
            consumer.commitSync();
        }
    }

    static void described(String topic, String protocol) throws Exception {
        if (!protocol.equals("classic")) Clients.protocol();
        filled(topic);
        Object[] modern = {"group.id", topic, "group.protocol", "consumer"}, classic = {"group.id", topic};
        try (KafkaConsumer<String, String> consumer = consumer(protocol.equals("classic") ? classic : modern)) {
            consumer.subscribe(List.of(topic));
            check(poll(consumer, 10) == 10, "too few");
            ConsumerGroupDescription found = get(admin.describeConsumerGroups(List.of(topic)).all()).get(topic);
            check(found.members().size() == 1, found);
            TopicPartition partition = new TopicPartition(topic, 0);
            check(found.members().iterator().next().assignment().topicPartitions().contains(partition), found);
        }
    }

    static void removed(String topic) throws Exception {
        filled(topic);
        try (KafkaConsumer<String, String> consumer = consumer("group.id", topic, "group.instance.id", "i")) {
            consumer.subscribe(List.of(topic));
            check(poll(consumer, 10) == 10, "too few");
        }
        Set<MemberToRemove> all = Set.of(new MemberToRemove("i"));
        get(admin.removeMembersFromConsumerGroup(topic, new RemoveMembersFromConsumerGroupOptions(all)).all());
        check(get(admin.describeConsumerGroups(List.of(topic)).all()).get(topic).members().isEmpty(), "members");
    }

    static void shareOffsets(String topic) throws Exception {
        Clients.share(topic, "implicit");
        TopicPartition partition = new TopicPartition(topic, 0);
        get(admin.alterShareGroupOffsets(topic, Map.of(partition, 4L)).all());
        Map<TopicPartition, SharePartitionOffsetInfo> found =
            get(admin.listShareGroupOffsets(Map.of(topic, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(topic));
        check(found.get(partition).startOffset() == 4, found);
        get(admin.deleteShareGroupOffsets(topic, Set.of(topic)).all());
        found = get(admin.listShareGroupOffsets(Map.of(topic, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(topic));
        check(found.get(partition) == null, found);
    }
}
