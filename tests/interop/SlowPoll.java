// A classic consumer that does not poll for longer than max.poll.interval.ms: it leaves by itself, then joins again.
//   java -cp 'DIR/jars/*' SlowPoll.java 127.0.0.1:9092

import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.time.Duration;
import java.util.List;
import java.util.Map;

public class SlowPoll {
    static void say(String what) {
        System.out.printf("%.3f slow-java: %s%n", System.currentTimeMillis() / 1000.0, what);
    }

    static void poll(KafkaConsumer<String, String> consumer, long millis) {
        for (long end = System.currentTimeMillis() + millis; System.currentTimeMillis() < end; ) {
            consumer.poll(Duration.ofMillis(200));
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "client.id", "slow-java",
            "group.id", "billing", "group.protocol", "classic", "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000",
            "max.poll.interval.ms", "5000");
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            poll(consumer, 4_000);
            say("busy for 9 s, polls nothing");
            Thread.sleep(9_000);
            try {
                say("commits");
                consumer.commitSync();
            } catch (CommitFailedException | RebalanceInProgressException refused) {
                say("commit refused: " + refused.getClass().getSimpleName());
            }
            say("polls again");
            poll(consumer, 4_000);
        }
        say("closed");
    }
}
