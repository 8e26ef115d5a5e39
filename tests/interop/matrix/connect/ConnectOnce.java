// Kafka Connect whose source is exactly once: a worker is killed in the midst of its records and another one goes on.
// Prints "ok exactly-once-source" when each record is read once under read_committed, and "no ... WHY" otherwise.
//   javac -cp JARS -d OUT *.java; java -cp OUT:JARS ConnectOnce ADDRESS

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.connect.cli.ConnectDistributed;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.runtime.Connect;
import org.apache.kafka.connect.runtime.distributed.DistributedHerder;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

import java.io.File;
import java.lang.ProcessBuilder.Redirect;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

public class ConnectOnce {
    static final int RECORDS = 2000, A_POLL = 20;
    static final String TOPIC = "connect-out", FEATURE = "exactly-once-source";
    static final long PATIENCE = 120_000_000_000L; // ns, for a worker to begin and to end

    public static class Counting extends SourceConnector {
        public void start(Map<String, String> config) { }
        public void stop() { }
        public String version() { return "1"; }
        public ConfigDef config() { return new ConfigDef(); }
        public Class<? extends Task> taskClass() { return CountingTask.class; }
        public List<Map<String, String>> taskConfigs(int most) { return List.of(Map.of()); }
        public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) { return ExactlyOnceSupport.SUPPORTED; }
    }

    /** Goes on behind the last offset that was committed with its records. */
    public static class CountingTask extends SourceTask {
        static final Map<String, String> SOURCE = Map.of("source", "count");
        long next;

        public String version() { return "1"; }
        public void stop() { }

        public void start(Map<String, String> config) {
            Map<String, Object> last = context.offsetStorageReader().offset(SOURCE);
            next = last == null ? 0 : (Long) last.get("n") + 1;
        }

        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(50);
            List<SourceRecord> found = new ArrayList<>();
            for (; next < RECORDS && found.size() < A_POLL; next++)
                found.add(new SourceRecord(SOURCE, Map.of("n", next), TOPIC, 0, Schema.STRING_SCHEMA, "" + next));
            return found.isEmpty() ? null : found;
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("worker")) {
            work(args[1]);
            return;
        }
        try {
            Map<String, Integer> found = new TreeMap<>();
            try (KafkaConsumer<String, String> reader = reader(args[0])) {
                Process first = worker(args[0]);
                read(reader, found, RECORDS / 4, first);
                first.destroyForcibly().waitFor();
                Process second = worker(args[0]);
                read(reader, found, RECORDS, second);
                second.destroyForcibly().waitFor();
                reader.poll(Duration.ofSeconds(2)).forEach(record -> found.merge(record.value(), 1, Integer::sum));
            }
            long twice = found.values().stream().filter(count -> count > 1).count();
            if (twice > 0) throw new IllegalStateException(twice + " records twice");
            System.out.println("ok " + FEATURE);
        } catch (Exception wrong) {
            System.out.println("no " + FEATURE + " " + wrong);
        }
        System.exit(0);
    }

    static Process worker(String address) throws Exception {
        String path = System.getProperty("java.class.path");
        return new ProcessBuilder("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, "ConnectOnce", "worker", address)
            .redirectOutput(Redirect.DISCARD).redirectError(Redirect.to(new File("/dev/null"))).start();
    }

    static KafkaConsumer<String, String> reader(String address) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", address, "isolation.level", "read_committed",
            "auto.offset.reset", "earliest", "allow.auto.create.topics", "true"));
        KafkaConsumer<String, String> reader = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        reader.partitionsFor(TOPIC); // makes it
        reader.assign(List.of(new TopicPartition(TOPIC, 0)));
        return reader;
    }

    /** Until so many different records were seen. */
    static void read(KafkaConsumer<String, String> reader, Map<String, Integer> found, int wanted, Process worker) {
        long end = System.nanoTime() + PATIENCE;
        while (found.size() < wanted) {
            reader.poll(Duration.ofMillis(200)).forEach(record -> found.merge(record.value(), 1, Integer::sum));
            if (!worker.isAlive() || System.nanoTime() > end)
                throw new IllegalStateException(found.size() + " records, worker " + (worker.isAlive() ? "late" : "dead"));
        }
    }

    static void work(String address) throws Exception {
        Map<String, String> settings = new HashMap<>(Map.of("bootstrap.servers", address, "group.id", "connect-workers",
            "exactly.once.source.support", "enabled", "listeners", "http://127.0.0.1:0",
            "key.converter", "org.apache.kafka.connect.storage.StringConverter",
            "value.converter", "org.apache.kafka.connect.storage.StringConverter",
            "scheduled.rebalance.max.delay.ms", "0", "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000"));
        for (String kind : List.of("config", "offset", "status")) {
            settings.put(kind + ".storage.topic", "connect-" + kind);
            settings.put(kind + ".storage.replication.factor", "1");
        }
        settings.put("offset.storage.partitions", "2");
        settings.put("status.storage.partitions", "1");
        Connect<DistributedHerder> worker = new ConnectDistributed().startConnect(settings);
        Map<String, String> connector = Map.of("name", "count", "connector.class", Counting.class.getName(), "tasks.max", "1",
            "transaction.boundary", "poll");
        for (boolean[] done = {false}; !done[0]; Thread.sleep(500)) { // refused as long as nobody leads
            CountDownLatch answered = new CountDownLatch(1);
            worker.herder().putConnectorConfig("count", connector, true, (wrong, made) -> {
                done[0] = wrong == null;
                if (wrong != null) System.out.println(wrong);
                answered.countDown();
            });
            answered.await(30, TimeUnit.SECONDS);
        }
        worker.awaitStop();
    }
}
