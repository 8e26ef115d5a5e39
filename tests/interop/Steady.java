// What Java clients do all day, for some seconds: an idempotent producer, groups of all three kinds, a transactional copy.
//   java -cp 'JARS/*' Steady.java 127.0.0.1:9092 COUNT SECONDS
// Prints a line of JSON for each: records that are missing, that stand twice in the log, and that were delivered again.

import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;

public class Steady {
    static String address;
    static int count, seconds;
    static long end;

    static Map<String, Object> config(Object... pairs) {
        var made = new HashMap<String, Object>(Map.of("bootstrap.servers", address, "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "metadata.max.age.ms", 3000, "delivery.timeout.ms", 120000));
        for (int i = 0; i < pairs.length; i += 2) made.put((String) pairs[i], pairs[i + 1]);
        return made;
    }

    static KafkaProducer<String, String> producer(Object... pairs) {
        var config = config(pairs);
        for (String name : List.of("auto.offset.reset", "enable.auto.commit")) config.remove(name);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    /** What a reader has seen. */
    static class Seen {
        final Map<String, String> places = new HashMap<>();
        int doubled, again;

        void add(ConsumerRecord<String, String> record) {
            String place = record.partition() + "/" + record.offset(), before = places.putIfAbsent(record.value(), place);
            if (before != null && before.equals(place)) again++;
            else if (before != null) doubled++;
        }

        void say(String who) {
            System.out.printf("{\"who\": \"%s\", \"lost\": %d, \"doubled\": %d, \"again\": %d}%n", who, count - places.size(), doubled, again);
        }

        boolean waits() {
            return places.size() < count && System.nanoTime() < end;
        }
    }

    static void produce() throws Exception {
        var failed = new AtomicInteger();
        try (var producer = producer("client.id", "java-producer")) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>("java", "k" + i, "v" + i), (done, error) -> {
                    if (error != null) { failed.incrementAndGet(); System.err.println("java producer: " + error); }
                });
                Thread.sleep(seconds * 1000L / count);
            }
        }
        System.out.printf("{\"who\": \"java producer\", \"lost\": %d, \"doubled\": 0, \"again\": 0}%n", failed.get());
    }

    static void read(String protocol, String topic, String group) {
        var config = config("group.id", group, "group.protocol", protocol, "client.id", group, "isolation.level", "read_committed");
        var seen = new Seen();
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (seen.waits()) {
                consumer.poll(Duration.ofMillis(200)).forEach(seen::add);
                try {
                    consumer.commitSync(Duration.ofSeconds(2));
                } catch (RetriableException | CommitFailedException | FencedInstanceIdException e) {
                    // what is not committed is delivered again
                }
            }
        }
        seen.say(group);
    }

    static void share() {
        var config = config("group.id", "java-share", "client.id", "java-share", "share.acknowledgement.mode", "explicit");
        for (String name : List.of("auto.offset.reset", "enable.auto.commit")) config.remove(name);
        var seen = new Seen();
        try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("java"));
            while (seen.waits())
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    seen.add(record);
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
        }
        seen.say("java-share");
    }

    /** Copies a topic in transactions that hold the offsets too: exactly once. */
    static void copy() {
        int copied = 0;
        while (copied < count && System.nanoTime() < end) {
            var config = config("group.id", "java-copy", "client.id", "java-copy", "isolation.level", "read_committed");
            try (var producer = producer("transactional.id", "java-copy", "client.id", "java-copier");
                 var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
                producer.initTransactions();
                consumer.subscribe(List.of("java"));
                while (copied < count && System.nanoTime() < end) {
                    var records = consumer.poll(Duration.ofMillis(200));
                    if (records.isEmpty()) continue;
                    producer.beginTransaction();
                    var offsets = new HashMap<TopicPartition, OffsetAndMetadata>();
                    for (var record : records) {
                        producer.send(new ProducerRecord<>("java-copy", record.key(), record.value()));
                        offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.commitTransaction();
                    copied += records.count();
                }
            } catch (KafkaException e) {
                System.err.println("java copy begins anew: " + e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        address = args[0];
        count = Integer.parseInt(args[1]);
        seconds = Integer.parseInt(args[2]);
        end = System.nanoTime() + (seconds + 60) * 1_000_000_000L;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic("java", 3, (short) 3), new NewTopic("java-copy", 3, (short) 3))).all().get();
            var set = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, "java-share"), List.of(set))).all().get();
        }
        var threads = new ArrayList<Thread>();
        for (Runnable work : List.<Runnable>of(
            () -> read("classic", "java", "java-classic"), () -> read("consumer", "java", "java-consumer"), Steady::share,
            Steady::copy, () -> read("classic", "java-copy", "java-copied"))) {
            var thread = new Thread(work);
            thread.start();
            threads.add(thread);
        }
        produce();
        for (var thread : threads) thread.join();
    }
}
