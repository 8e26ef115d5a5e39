// A share consumer that acknowledges records one by one. Sick: at first later than their lock lasts.

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.time.Duration;
import java.util.List;
import java.util.Map;

public class ShareLate {
    public static void main(String[] args) throws Exception {
        boolean sick = args[3].equals("sick");
        try (var admin = Admin.create(Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "admin"))) {
            var group = new ConfigResource(ConfigResource.Type.GROUP, args[2]);
            var earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(earliest))).all().get();
        }
        try (var consumer = new KafkaShareConsumer<>(Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "late",
                "group.id", args[2], "share.acknowledgement.mode", "explicit"),
                new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[1]));
            boolean late = sick;
            for (long end = System.currentTimeMillis() + 20_000, got = 0; System.currentTimeMillis() < end; ) {
                var records = consumer.poll(Duration.ofMillis(200));
                if (got == 0 && !records.isEmpty()) {
                    got = 1;
                    end = System.currentTimeMillis() + 9_000;
                }
                if (late && !records.isEmpty()) {
                    late = false;
                    System.out.printf("share-redelivery %d group=%s topic=%s partition=0%n",
                        System.currentTimeMillis() + 2_000, args[2], args[1]);
                    Thread.sleep(4_000);
                }
                for (ConsumerRecord<String, String> record : records) {
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
            }
        }
    }
}
