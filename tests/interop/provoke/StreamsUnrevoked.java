// Two instances of a Kafka Streams application. Sick: the first one works 7 s on one record just when the second comes.

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

import java.nio.file.Files;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;

public class StreamsUnrevoked {
    static volatile boolean slow;

    static KafkaStreams instance(String[] args, String client) throws Exception {
        var config = new Properties();
        config.putAll(Map.of("bootstrap.servers", args[0], "application.id", args[2], "client.id", client,
            "group.protocol", "streams", "state.dir", Files.createTempDirectory("streams").toString(),
            "commit.interval.ms", 500, "max.poll.interval.ms", 10_000, "auto.offset.reset", "earliest"));
        var builder = new StreamsBuilder();
        builder.stream(args[1], Consumed.with(Serdes.String(), Serdes.String())).foreach((key, value) -> {
            if (!value.equals("slow") || !slow) return;
            slow = false; // once
            try {
                Thread.sleep(7_000);
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
            }
        });
        return new KafkaStreams(builder.build(), config);
    }

    public static void main(String[] args) throws Exception {
        boolean sick = args[3].equals("sick");
        slow = sick;
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", args[0], "client.id",
                 "writer"), new StringSerializer(), new StringSerializer());
             var holder = instance(args, "holder"); var waiter = instance(args, "waiter")) {
            holder.start();
            Thread.sleep(6_000);
            producer.send(new ProducerRecord<>(args[1], 0, "key", "slow")).get();
            Thread.sleep(200);
            if (sick) {
                long now = System.currentTimeMillis();
                System.out.printf("slow-assignment %d group=%s%n", now + 100, args[2]);
                System.out.printf("unrevoked %d group=%s%n", now + 700, args[2]);
            }
            waiter.start();
            Thread.sleep(13_000);
            waiter.close(Duration.ofSeconds(5));
            holder.close(Duration.ofSeconds(5));
        }
    }
}
