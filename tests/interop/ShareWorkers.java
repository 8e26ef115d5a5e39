// Two KafkaShareConsumers share the work of one topic: every fifth record is released at its first delivery, every
// seventh rejected, the others accepted. Ends when all of COUNT records are decided, or after 40 s.
//   java -cp 'DIR/jars/*' ShareWorkers.java 127.0.0.1:9092 COUNT

import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

public class ShareWorkers {
    static final Map<String, String> decided = new ConcurrentHashMap<>();
    static volatile int twice = 0;

    public static void main(String[] args) throws Exception {
        String address = args[0];
        int count = Integer.parseInt(args[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic("jobs", 3, (short) 1))).all().get();
            var group = new ConfigResource(ConfigResource.Type.GROUP, "workers");
            var set = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(set))).all().get();
            try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", address),
                    new StringSerializer(), new StringSerializer())) {
                for (int i = 0; i < count; i++) producer.send(new ProducerRecord<>("jobs", "k" + i, "" + i));
            }
            Thread[] workers = {new Thread(() -> work(address, count)), new Thread(() -> work(address, count))};
            for (Thread worker : workers) worker.start();
            for (Thread worker : workers) worker.join();
            long accepted = decided.values().stream().filter("accepted"::equals).count();
            System.out.println(accepted + " accepted, " + (decided.size() - accepted) + " rejected, " + twice + " twice");
            System.out.println(admin.describeShareGroups(List.of("workers")).all().get().get("workers").groupState());
            long lag = admin.listShareGroupOffsets(Map.of("workers", new ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo("workers").get().values().stream().mapToLong(o -> o.lag().orElse(-1L)).sum();
            System.out.println("lag " + lag);
        }
    }

    static void work(String address, int count) {
        Map<String, Object> config = Map.of("bootstrap.servers", address, "group.id", "workers",
            "share.acknowledgement.mode", "explicit", "fetch.max.wait.ms", 100);
        long end = System.currentTimeMillis() + 40_000;
        try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("jobs"));
            while (decided.size() < count && System.currentTimeMillis() < end) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    int number = Integer.parseInt(record.value());
                    if (number % 5 == 0 && record.deliveryCount().orElse((short) 1) == 1) {
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        continue;
                    }
                    boolean accept = number % 7 != 0;
                    consumer.acknowledge(record, accept ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT);
                    if (decided.put(record.value(), accept ? "accepted" : "rejected") != null) twice++;
                }
                consumer.commitSync();
            }
        }
    }
}
