// Features of producers, consumers and share consumers.

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

public class Clients extends Matrix {
    static final long LATELY = System.currentTimeMillis() - 60_000; // records that are old may be gone before they are read
    static final String COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";

    public static void features() {
        FEATURES.put("produce", topic -> {
            filled(topic, "acks", "1", "enable.idempotence", "false");
            holds(topic, 10);
        });
        FEATURES.put("produce-acks-0", topic -> {
            filled(topic, "acks", "0", "enable.idempotence", "false");
            holds(topic, 10);
        });
        FEATURES.put("produce-idempotent", topic -> {
            filled(topic, "acks", "all", "enable.idempotence", "true");
            holds(topic, 10);
        });
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            FEATURES.put("produce-" + codec, topic -> {
                filled(topic, "compression.type", codec);
                holds(topic, 10);
            });
        }
        FEATURES.put("produce-headers", Clients::headers);
        FEATURES.put("topic-auto-create", topic -> {
            send(topic, 10);
            try (KafkaProducer<String, String> producer = producer()) {
                check(!producer.partitionsFor(topic).isEmpty(), "no partitions");
            }
        });
        FEATURES.put("transaction-commit", topic -> {
            topic(topic, 1);
            transaction(topic, true);
            holds(topic, 10, "isolation.level", "read_committed");
        });
        FEATURES.put("transaction-abort", topic -> {
            topic(topic, 1);
            transaction(topic, false);
            holds(topic, 0, "isolation.level", "read_committed");
            holds(topic, 10);
        });
        FEATURES.put("transaction-offsets", Clients::offsets);
        FEATURES.put("transaction-fenced", Clients::fenced);
        FEATURES.put("consume-by-time", Clients::byTime);
        FEATURES.put("consume-ends", Clients::ends);
        FEATURES.put("consume-pattern", topic -> {
            filled(topic);
            try (KafkaConsumer<String, String> consumer = consumer("group.id", topic)) {
                consumer.subscribe(Pattern.compile(topic + ".*"));
                check(poll(consumer, 10) == 10, "too few");
            }
        });
        FEATURES.put("group-classic", topic -> shared(topic, "group.id", topic));
        FEATURES.put("group-cooperative", topic ->
            shared(topic, "group.id", topic, "partition.assignment.strategy", COOPERATIVE));
        FEATURES.put("group-static", Clients::lasting);
        FEATURES.put("group-consumer", topic -> {
            protocol();
            shared(topic, "group.id", topic, "group.protocol", "consumer");
        });
        FEATURES.put("group-consumer-static", topic -> {
            protocol();
            filled(topic);
            try (KafkaConsumer<String, String> consumer =
                     consumer("group.id", topic, "group.protocol", "consumer", "group.instance.id", "i")) {
                consumer.subscribe(List.of(topic));
                check(poll(consumer, 10) == 10, "too few");
                check(consumer.groupMetadata().groupInstanceId().get().equals("i"), "no instance");
            }
        });
        FEATURES.put("group-consumer-pattern", topic -> {
            filled(topic);
            try (KafkaConsumer<String, String> consumer = consumer("group.id", topic, "group.protocol", "consumer")) {
                consumer.subscribe(new SubscriptionPattern(topic + ".*"));
                check(poll(consumer, 10) == 10, "too few");
            }
        });
        FEATURES.put("group-migrate", Clients::migrated);
        FEATURES.put("group-share", topic -> share(topic, "implicit"));
        FEATURES.put("group-share-explicit", topic -> share(topic, "explicit"));
        FEATURES.put("telemetry", topic -> {
            try (KafkaProducer<String, String> producer = producer()) {
                producer.clientInstanceId(Duration.ofSeconds(10));
            }
        });
    }

    /** Old clients take no group.protocol: they would ignore it, and join as classic members. */
    static void protocol() {
        new SubscriptionPattern("x");
    }

    static void headers(String topic) throws Exception {
        topic(topic, 1);
        try (KafkaProducer<String, String> producer = producer()) {
            ProducerRecord<String, String> record = new ProducerRecord<>(topic, 0, LATELY, (String) null, (String) null);
            record.headers().add("h", "x".getBytes());
            producer.send(record).get();
        }
        try (KafkaConsumer<String, String> consumer = consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            ConsumerRecord<String, String> found = consumer.poll(Duration.ofSeconds(20)).iterator().next();
            check(found.timestamp() == LATELY && found.value() == null, found);
            check(new String(found.headers().lastHeader("h").value()).equals("x"), found);
        }
    }

    static void transaction(String topic, boolean commit) {
        try (KafkaProducer<String, String> producer = producer("transactional.id", topic)) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int n = 0; n < 10; n++) producer.send(new ProducerRecord<>(topic, "v" + n));
            producer.flush();
            if (commit) producer.commitTransaction();
            else producer.abortTransaction();
        }
    }

    static void offsets(String topic) throws Exception {
        filled(topic);
        try (KafkaProducer<String, String> producer = producer("transactional.id", topic);
             KafkaConsumer<String, String> consumer = consumer("group.id", topic, "enable.auto.commit", "false")) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            check(poll(consumer, 10) == 10, "too few");
            producer.beginTransaction();
            TopicPartition partition = new TopicPartition(topic, 0);
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(10)), consumer.groupMetadata());
            producer.commitTransaction();
            check(consumer.committed(Set.of(partition)).get(partition).offset() == 10, "not committed");
        }
    }

    static void fenced(String topic) throws Exception {
        topic(topic, 1);
        KafkaProducer<String, String> first = producer("transactional.id", topic);
        first.initTransactions();
        first.beginTransaction();
        first.send(new ProducerRecord<>(topic, "v")).get();
        try (KafkaProducer<String, String> second = producer("transactional.id", topic)) {
            second.initTransactions();
        }
        try {
            first.commitTransaction();
            throw new IllegalStateException("not fenced");
        } catch (KafkaException expected) {
            first.close(Duration.ZERO);
        }
        holds(topic, 0, "isolation.level", "read_committed");
    }

    static void byTime(String topic) throws Exception {
        topic(topic, 1);
        try (KafkaProducer<String, String> producer = producer();
             KafkaConsumer<String, String> consumer = consumer()) {
            for (long n = 1; n < 5; n++) producer.send(new ProducerRecord<>(topic, 0, LATELY + n * 1000, null, "v")).get();
            TopicPartition partition = new TopicPartition(topic, 0);
            check(consumer.offsetsForTimes(Map.of(partition, LATELY + 2500L)).get(partition).offset() == 2, "another offset");
            check(consumer.offsetsForTimes(Map.of(partition, LATELY + 9000L)).get(partition) == null, "an offset");
        }
    }

    static void ends(String topic) throws Exception {
        filled(topic);
        try (KafkaConsumer<String, String> consumer = consumer()) {
            TopicPartition partition = new TopicPartition(topic, 0);
            check(consumer.beginningOffsets(List.of(partition)).get(partition) == 0, "begins elsewhere");
            check(consumer.endOffsets(List.of(partition)).get(partition) == 10, "ends elsewhere");
            check(consumer.listTopics().containsKey(topic), "not listed");
        }
    }

    /** Two members share four partitions; one leaves, the other has them all. */
    static void shared(String topic, Object... settings) throws Exception {
        topic(topic, 4);
        KafkaConsumer<String, String> first = consumer(settings), second = consumer(settings);
        first.subscribe(List.of(topic));
        second.subscribe(List.of(topic));
        for (long end = System.nanoTime() + 20_000_000_000L; System.nanoTime() < end; ) {
            first.poll(Duration.ofMillis(50));
            second.poll(Duration.ofMillis(50));
            if (first.assignment().size() == 2 && second.assignment().size() == 2) break;
        }
        check(first.assignment().size() == 2 && second.assignment().size() == 2, first.assignment());
        second.close();
        for (long end = System.nanoTime() + 20_000_000_000L; System.nanoTime() < end && first.assignment().size() < 4; )
            first.poll(Duration.ofMillis(50));
        check(first.assignment().size() == 4, first.assignment());
        send(topic, 20);
        check(poll(first, 20) == 20, "too few");
        first.commitSync();
        first.close();
    }

    /** A member that comes back under its instance id goes on as who it was: its generation is the same. */
    static void lasting(String topic) throws Exception {
        filled(topic);
        Object[] settings = {"group.id", topic, "group.instance.id", "i", "session.timeout.ms", "10000"};
        int generation;
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic));
            check(poll(consumer, 10) == 10, "too few");
            generation = consumer.groupMetadata().generationId();
        }
        send(topic, 10);
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic));
            check(poll(consumer, 10) == 10, "too few");
            check(consumer.groupMetadata().generationId() == generation, consumer.groupMetadata());
        }
    }

    /** A classic member and one of the new protocol in a group. */
    static void migrated(String topic) throws Exception {
        protocol();
        topic(topic, 4);
        try (KafkaConsumer<String, String> old = consumer("group.id", topic);
             KafkaConsumer<String, String> young = consumer("group.id", topic, "group.protocol", "consumer")) {
            old.subscribe(List.of(topic));
            young.subscribe(List.of(topic));
            for (long end = System.nanoTime() + 25_000_000_000L; System.nanoTime() < end; ) {
                old.poll(Duration.ofMillis(50));
                young.poll(Duration.ofMillis(50));
                if (old.assignment().size() == 2 && young.assignment().size() == 2) return;
            }
            throw new IllegalStateException(old.assignment() + " and " + young.assignment());
        }
    }

    static void share(String topic, String mode) throws Exception {
        filled(topic);
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, topic);
        ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
        AlterConfigOp set = new AlterConfigOp(earliest, AlterConfigOp.OpType.SET);
        get(admin.incrementalAlterConfigs(Map.of(group, List.of(set))).all());
        Set<Long> accepted = new HashSet<>();
        int released = 0;
        StringDeserializer text = new StringDeserializer();
        Map<String, Object> settings = with("group.id", topic, "share.acknowledgement.mode", mode);
        settings.remove("auto.offset.reset");
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + 25_000_000_000L;
            while (accepted.size() < 10 && System.nanoTime() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    boolean again = record.deliveryCount().get() > 1 || mode.equals("implicit");
                    if (mode.equals("explicit"))
                        consumer.acknowledge(record, again ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                    if (again) check(accepted.add(record.offset()), "twice " + record.offset());
                    else released++;
                }
                consumer.commitSync();
            }
        }
        check(accepted.size() == 10 && released == (mode.equals("explicit") ? 10 : 0), accepted + " " + released);
    }
}
