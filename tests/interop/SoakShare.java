// COUNT share consumers of one process share the topic "jobs" until SECONDS are over; each accepted value is a line on stdout.
//   java -cp 'DIR/jars/*' SoakShare.java 127.0.0.1:9092 COUNT SECONDS

import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.*;

import java.time.Duration;
import java.util.*;

public class SoakShare {
    public static void main(String[] args) throws Exception {
        long end = System.currentTimeMillis() + 1000 * Long.parseLong(args[2]);
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) workers.add(new Thread(() -> work(args[0], end)));
        for (Thread worker : workers) worker.start();
        for (Thread worker : workers) worker.join();
    }

    static void work(String address, long end) {
        Map<String, Object> config = Map.of("bootstrap.servers", address, "group.id", "workers",
            "share.acknowledgement.mode", "explicit", "fetch.max.wait.ms", 500);
        try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("jobs"));
            while (System.currentTimeMillis() < end) {
                List<String> taken = new ArrayList<>();
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    boolean later = Integer.parseInt(record.value()) % 5 == 0 && record.deliveryCount().orElse((short) 1) == 1;
                    consumer.acknowledge(record, later ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!later) taken.add(record.value());
                }
                if (consumer.commitSync().values().stream().allMatch(Optional::isEmpty))
                    synchronized (SoakShare.class) { taken.forEach(System.out::println); }
            }
        }
    }
}
