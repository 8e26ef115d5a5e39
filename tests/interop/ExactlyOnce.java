// Kafka Streams with exactly_once_v2: counts words by key through a repartition topic, and a reader of committed records.
//   java -cp 'JARS/*' ExactlyOnce.java 127.0.0.1:9092

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Produced;

import java.nio.file.Files;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;

public class ExactlyOnce {
    public static void main(String[] args) throws Exception {
        String address = args[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic("eos-in", 2, (short) 1), new NewTopic("eos-out", 2, (short) 1))).all().get();
        }
        var builder = new StreamsBuilder();
        builder.<String, String>stream("eos-in").groupBy((k, v) -> v).count().toStream().mapValues(String::valueOf)
            .to("eos-out", Produced.with(Serdes.String(), Serdes.String()));
        var config = new Properties();
        config.putAll(Map.of("application.id", "eos", "bootstrap.servers", address, "processing.guarantee", "exactly_once_v2",
            "commit.interval.ms", 100, "num.stream.threads", 2, "replication.factor", 1,
            "default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class,
            "state.dir", Files.createTempDirectory("eos").toString()));
        var streams = new KafkaStreams(builder.build(), config);
        streams.start();
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", address), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < 300; i++) producer.send(new ProducerRecord<>("eos-in", "k" + i, "word-" + i % 3));
        }
        var counts = new HashMap<String, String>();
        Map<String, Object> reading = Map.of("bootstrap.servers", address, "group.id", "eos-reader",
            "isolation.level", "read_committed", "auto.offset.reset", "earliest");
        long end = System.nanoTime() + 40_000_000_000L;
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("eos-out"));
            while (System.nanoTime() < end && !(counts.size() == 3 && counts.values().stream().allMatch("100"::equals)))
                consumer.poll(Duration.ofMillis(200)).forEach(record -> counts.put(record.key(), record.value()));
        }
        System.out.println(new TreeMap<>(counts).entrySet().stream().map(e -> e.getKey() + " " + e.getValue()).collect(Collectors.joining(", ")));
        boolean all = counts.size() == 3 && counts.values().stream().allMatch("100"::equals);
        if (args.length > 1) System.out.println((all ? "ok" : "no") + " exactly-once"); // as a client of the matrix
        streams.close(Duration.ofSeconds(10));
    }
}
