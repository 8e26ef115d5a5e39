// A producer and a consumer under each of some cipher suites, one after the other.
//   java -cp 'JARS/*' TlsSuites.java 127.0.0.1:9093 ca.pem SUITE...
// Prints each suite, and how many of its records came back; or why there were none.

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

import java.time.Duration;
import java.util.*;

public class TlsSuites {
    public static void main(String[] args) throws Exception {
        for (String suite : Arrays.copyOfRange(args, 2, args.length)) {
            String topic = suite.toLowerCase(), version = suite.contains("_WITH_") ? "TLSv1.2" : "TLSv1.3";
            var config = new HashMap<String, Object>(Map.of("bootstrap.servers", args[0], "security.protocol", "SSL",
                "ssl.truststore.type", "PEM", "ssl.truststore.location", args[1], "ssl.cipher.suites", suite,
                "ssl.enabled.protocols", version, "ssl.protocol", version, "client.id", suite));
            int came = 0;
            try {
                var producing = new HashMap<>(config);
                producing.putAll(Map.of("max.block.ms", 10000, "delivery.timeout.ms", 10000, "request.timeout.ms", 8000,
                    "linger.ms", 0, "max.request.size", 2000000));
                try (var producer = new KafkaProducer<>(producing, new StringSerializer(), new ByteArraySerializer())) {
                    for (int size : List.of(10, 20_000, 100_000))
                        producer.send(new ProducerRecord<>(topic, 0, "k", new byte[size])).get();
                }
                try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new ByteArrayDeserializer())) {
                    var partition = new TopicPartition(topic, 0);
                    consumer.assign(List.of(partition));
                    consumer.seekToBeginning(List.of(partition));
                    long end = System.nanoTime() + 10_000_000_000L;
                    while (came < 3 && System.nanoTime() < end) came += consumer.poll(Duration.ofMillis(200)).count();
                }
                System.out.println(suite + " " + came);
            } catch (Exception e) {
                System.out.println(suite + " " + (e.getCause() == null ? e : e.getCause()).toString().replace('\n', ' '));
            }
        }
    }
}
