// Features of the admin client about topics, configurations, replicas, transactions and the cluster.

import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.BrokerIdNotRegisteredException;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicExistsException;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;

public class Admins extends Matrix {
    public static void features() {
        FEATURES.put("topics-create", topic -> {
            CreateTopicsResult made = admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1)));
            get(made.all());
            refused(admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1))).all(), TopicExistsException.class);
        });
        FEATURES.put("topics-create-config", topic -> {
            Map<String, String> settings = Map.of("max.message.bytes", "2000");
            get(admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1).configs(settings))).all());
            there(topic);
            check(config(ConfigResource.Type.TOPIC, topic, "max.message.bytes").equals("2000"), "another");
            settings = Map.of("retention.ms", "soon");
            refused(admin.createTopics(List.of(new NewTopic(topic + "2", 1, (short) 1).configs(settings))).all(),
                InvalidConfigurationException.class);
        });
        FEATURES.put("topics-create-defaults", topic -> {
            CreateTopicsResult made = admin.createTopics(List.of(new NewTopic(topic, Optional.empty(), Optional.empty())));
            check(get(made.numPartitions(topic)) > 0 && get(made.config(topic)).get("retention.ms") != null, made);
        });
        FEATURES.put("topics-create-placed", topic -> {
            int node = get(admin.describeCluster().nodes()).iterator().next().id();
            get(admin.createTopics(List.of(new NewTopic(topic, Map.of(0, List.of(node))))).all());
        });
        FEATURES.put("topics-validate-only", topic -> {
            CreateTopicsOptions dry = new CreateTopicsOptions().validateOnly(true);
            get(admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1)), dry).all());
            check(!get(admin.listTopics().names()).contains(topic), "made");
        });
        FEATURES.put("topics-list", topic -> {
            topic(topic, 1);
            soon(() -> get(admin.listTopics().names()).contains(topic));
        });
        FEATURES.put("topics-describe", topic -> {
            topic(topic, 3);
            DescribeTopicsOptions pages = new DescribeTopicsOptions().partitionSizeLimitPerResponse(2);
            TopicDescription found = get(admin.describeTopics(List.of(topic), pages).allTopicNames()).get(topic);
            check(found.partitions().size() == 3 && found.partitions().get(0).leader() != null, found);
        });
        FEATURES.put("topics-describe-by-id", topic -> {
            topic(topic, 1);
            Uuid id = get(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic).topicId();
            check(get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds()).get(id).name()
                .equals(topic), "another");
        });
        FEATURES.put("topics-delete", topic -> {
            topic(topic, 1);
            get(admin.deleteTopics(List.of(topic)).all());
            soon(() -> !get(admin.listTopics().names()).contains(topic));
        });
        FEATURES.put("topics-delete-by-id", topic -> {
            topic(topic, 1);
            Uuid id = get(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic).topicId();
            get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
        });
        FEATURES.put("partitions-create", topic -> {
            topic(topic, 1);
            get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all());
            try (KafkaProducer<String, String> producer = producer()) {
                soon(() -> get(admin.listTopics().names()).contains(topic) && producer.partitionsFor(topic).size() == 3);
            }
        });
        FEATURES.put("configs-describe-broker", topic -> {
            String node = get(admin.describeCluster().nodes()).iterator().next().idString();
            check(config(ConfigResource.Type.BROKER, node, "message.max.bytes") != null, "none");
        });
        FEATURES.put("configs-alter", Admins::altered);
        FEATURES.put("configs-alter-broker", topic -> {
            set(ConfigResource.Type.BROKER, "", "log.retention.ms", "86400000", AlterConfigOp.OpType.SET);
            String node = get(admin.describeCluster().nodes()).iterator().next().idString();
            soon(() -> "86400000".equals(config(ConfigResource.Type.BROKER, node, "log.retention.ms")));
            set(ConfigResource.Type.BROKER, "", "log.retention.ms", "", AlterConfigOp.OpType.DELETE);
        });
        FEATURES.put("config-resources-list", topic -> {
            set(ConfigResource.Type.CLIENT_METRICS, topic, "interval.ms", "1000", AlterConfigOp.OpType.SET);
            soon(() -> get(admin.listConfigResources(Set.of(ConfigResource.Type.CLIENT_METRICS),
                new ListConfigResourcesOptions()).all()).stream().anyMatch(each -> each.name().equals(topic)));
            set(ConfigResource.Type.CLIENT_METRICS, topic, "interval.ms", "", AlterConfigOp.OpType.DELETE);
        });
        FEATURES.put("records-delete", topic -> {
            filled(topic);
            TopicPartition partition = new TopicPartition(topic, 0);
            check(get(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(4))).lowWatermarks()
                .get(partition)).lowWatermark() == 4, "another");
        });
        FEATURES.put("offsets-list", topic -> {
            filled(topic);
            TopicPartition partition = new TopicPartition(topic, 0);
            for (OffsetSpec spec : List.of(OffsetSpec.latest(), OffsetSpec.earliest(), OffsetSpec.maxTimestamp()))
                check(get(admin.listOffsets(Map.of(partition, spec)).partitionResult(partition)).offset() >= 0, spec);
        });
        FEATURES.put("replicas-reassign", topic -> {
            topic(topic, 1);
            TopicPartition partition = new TopicPartition(topic, 0);
            int node = get(admin.describeCluster().nodes()).iterator().next().id();
            get(admin.alterPartitionReassignments(
                Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(node))))).all());
            get(admin.listPartitionReassignments(Set.of(partition)).reassignments());
        });
        FEATURES.put("leaders-elect", topic -> {
            topic(topic, 1);
            TopicPartition partition = new TopicPartition(topic, 0);
            Optional<Throwable> why = get(admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions()).get(partition);
            check(why.get() instanceof ElectionNotNeededException, why);
        });
        FEATURES.put("log-dirs", topic -> {
            filled(topic);
            int node = get(admin.describeCluster().nodes()).iterator().next().id();
            check(get(admin.describeLogDirs(List.of(node)).allDescriptions()).get(node).values().stream()
                .anyMatch(each -> each.replicaInfos().get(new TopicPartition(topic, 0)).size() > 0), "empty");
        });
        FEATURES.put("log-dirs-replica", topic -> {
            topic(topic, 1);
            int node = get(admin.describeCluster().nodes()).iterator().next().id();
            TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, node);
            soon(() -> get(admin.describeReplicaLogDirs(List.of(replica)).all()).get(replica).getCurrentReplicaLogDir() != null);
            String place = get(admin.describeReplicaLogDirs(List.of(replica)).all()).get(replica).getCurrentReplicaLogDir();
            get(admin.alterReplicaLogDirs(Map.of(replica, place)).all());
        });
        FEATURES.put("features-describe", topic ->
            check(get(admin.describeFeatures().featureMetadata()).finalizedFeatures().containsKey("metadata.version"), "none"));
        FEATURES.put("features-update", topic -> {
            short level = get(admin.describeFeatures().featureMetadata()).finalizedFeatures().get("group.version").maxVersionLevel();
            FeatureUpdate same = new FeatureUpdate(level, FeatureUpdate.UpgradeType.UPGRADE);
            get(admin.updateFeatures(Map.of("group.version", same), new UpdateFeaturesOptions()).all());
        });
        FEATURES.put("quorum-describe", topic ->
            check(!get(admin.describeMetadataQuorum().quorumInfo()).voters().isEmpty(), "no voters"));
        FEATURES.put("cluster-describe", topic -> {
            check(get(admin.describeCluster().clusterId()) != null, "no id");
            check(get(admin.describeCluster().controller()) != null, "no controller");
        });
        FEATURES.put("broker-unregister", topic ->
            refused(admin.unregisterBroker(99).all(), BrokerIdNotRegisteredException.class));
        FEATURES.put("producers-describe", topic -> open(topic, false));
        FEATURES.put("transactions-abort", topic -> open(topic, true));
        FEATURES.put("producers-fence", topic -> {
            topic(topic, 1);
            Clients.transaction(topic, true);
            get(admin.fenceProducers(List.of(topic)).all());
        });
        FEATURES.put("transaction-terminate", topic -> {
            topic(topic, 1);
            Clients.transaction(topic, true);
            get(admin.forceTerminateTransaction(topic).result());
        });
    }

    static String config(ConfigResource.Type type, String name, String config) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        return get(admin.describeConfigs(List.of(resource)).all()).get(resource).get(config).value();
    }

    static void set(ConfigResource.Type type, String name, String config, String value, AlterConfigOp.OpType how) throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(config, value), how);
        get(admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(change))).all());
    }

    /** A configuration that is set is in force, and is told. */
    static void altered(String topic) throws Exception {
        topic(topic, 1);
        set(ConfigResource.Type.TOPIC, topic, "max.message.bytes", "500", AlterConfigOp.OpType.SET);
        set(ConfigResource.Type.TOPIC, topic, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
        check(config(ConfigResource.Type.TOPIC, topic, "max.message.bytes").equals("500"), "another");
        check(config(ConfigResource.Type.TOPIC, topic, "cleanup.policy").equals("delete,compact"), "another policy");
        try (KafkaProducer<String, String> producer = producer()) {
            producer.send(new ProducerRecord<>(topic, "k", "v".repeat(1000))).get();
            throw new IllegalStateException("taken");
        } catch (ExecutionException wrong) {
            check(wrong.getCause() instanceof RecordTooLargeException, wrong);
        }
        set(ConfigResource.Type.TOPIC, topic, "max.message.bytes", "", AlterConfigOp.OpType.DELETE);
    }

    /** A transaction that is open is told everywhere, and may be aborted from outside. */
    static void open(String topic, boolean abort) throws Exception {
        topic(topic, 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = producer("transactional.id", topic)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "v")).get();
            ProducerState state = get(admin.describeProducers(List.of(partition)).all()).get(partition).activeProducers().get(0);
            check(state.currentTransactionStartOffset().isPresent(), state);
            if (abort) {
                get(admin.abortTransaction(new AbortTransactionSpec(partition, state.producerId(),
                    (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))).all());
                holds(topic, 0, "isolation.level", "read_committed");
                return;
            }
            TransactionDescription found = get(admin.describeTransactions(List.of(topic)).all()).get(topic);
            check(found.state() == TransactionState.ONGOING && found.topicPartitions().contains(partition), found);
            ListTransactionsOptions only = new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING));
            check(get(admin.listTransactions(only).all()).stream()
                .anyMatch(each -> each.transactionalId().equals(topic)), "not listed");
            producer.commitTransaction();
        }
    }
}
