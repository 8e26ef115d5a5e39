// Two members of a KIP-848 group. Sick: the first one's rebalance listener takes 7 s to give up what it has to.

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;

public class Unrevoked {
    static KafkaConsumer<String, String> consumer(String[] args, String client) {
        return new KafkaConsumer<>(Map.of("bootstrap.servers", args[0], "client.id", client, "group.id", args[2],
            "group.protocol", "consumer", "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "max.poll.interval.ms", "10000"), new StringDeserializer(), new StringDeserializer());
    }

    static void poll(KafkaConsumer<String, String> consumer, long millis) {
        for (long end = System.currentTimeMillis() + millis; System.currentTimeMillis() < end; ) {
            consumer.poll(Duration.ofMillis(100));
        }
    }

    static class Slow implements ConsumerRebalanceListener {
        final String group;
        boolean sick;

        Slow(String[] args) {
            group = args[2];
            sick = args[3].equals("sick");
        }

        public void onPartitionsAssigned(Collection<TopicPartition> got) { }

        public void onPartitionsRevoked(Collection<TopicPartition> lost) {
            if (!sick || lost.isEmpty()) return;
            sick = false; // once
            System.out.printf("unrevoked %d group=%s client_id=holder%n", System.currentTimeMillis(), group);
            try {
                Thread.sleep(7_000);
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        var holder = new Thread(() -> {
            try (var consumer = consumer(args, "holder")) {
                consumer.subscribe(List.of(args[1]), new Slow(args));
                poll(consumer, 19_000);
                consumer.unsubscribe();
            }
        });
        holder.start();
        Thread.sleep(7_000);
        try (var consumer = consumer(args, "waiter")) {
            if (args[3].equals("sick")) {
                System.out.printf("slow-assignment %d group=%s client_id=waiter%n", System.currentTimeMillis(), args[2]);
            }
            consumer.subscribe(List.of(args[1]));
            poll(consumer, 11_000);
        }
        holder.join();
    }
}
