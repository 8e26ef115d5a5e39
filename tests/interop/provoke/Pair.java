// A producer of two records a second and a member of a group, for so many seconds.

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import java.time.Duration;
import java.util.List;
import java.util.Map;

public class Pair {
    public static void main(String[] args) throws Exception {
        long end = System.currentTimeMillis() + Integer.parseInt(args[2]) * 1000L;
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", args[0], "client.id",
                 "java-writer"), new StringSerializer(), new StringSerializer());
             var consumer = new KafkaConsumer<>(Map.<String, Object>of("bootstrap.servers", args[0], "client.id",
                 "java-reader", "group.id", args[1] + "-java"), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[1]));
            for (long due = 0; System.currentTimeMillis() < end; ) {
                if (System.currentTimeMillis() > due) {
                    producer.send(new ProducerRecord<>(args[1], "order"));
                    due = System.currentTimeMillis() + 500;
                }
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }
}
