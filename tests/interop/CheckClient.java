// A client for kwire check: produces five records and reads them in a group, for some seconds. Run it as
// kwire check --client "java -cp '$KWIRE_LAB/jars/*' tests/interop/CheckClient.java {broker} {topic}"
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class CheckClient {
    static final int COUNT = 5;
    static final long READING = 6_000; // ms

    public static void main(String[] given) throws Exception {
        Properties shared = new Properties();
        shared.put("bootstrap.servers", given[0]);
        shared.put("client.id", "check");
        for (String name : List.of("key", "value")) {
            shared.put(name + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            shared.put(name + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        try (var producer = new KafkaProducer<String, String>(shared)) {
            for (int number = 0; number < COUNT; number++) {
                producer.send(new ProducerRecord<>(given[1], "" + number));
                Thread.sleep(100);
            }
        }
        shared.put("group.id", "check");
        shared.put("auto.offset.reset", "earliest");
        shared.put("heartbeat.interval.ms", "500");
        shared.put("session.timeout.ms", "6000");
        shared.put("auto.commit.interval.ms", "500");
        int count = 0;
        try (var consumer = new KafkaConsumer<String, String>(shared)) {
            consumer.subscribe(List.of(given[1]));
            long until = System.currentTimeMillis() + READING;
            while (System.currentTimeMillis() < until) {
                count += consumer.poll(Duration.ofMillis(200)).count();
            }
        }
        System.exit(count >= COUNT ? 0 : 3);
    }
}
