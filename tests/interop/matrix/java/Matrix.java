// What Java's clients can do, each feature tried once: a line "ok NAME", "no NAME WHY" or "lacks NAME" (of old clients).
//   javac -cp JARS -d OUT *.java; java -cp OUT:JARS Matrix ADDRESS [LOGIN_ADDRESS]
// Built against the newest client and run with old ones too: what they lack is found when a feature is linked.

import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

public class Matrix {
    interface Feature {
        void run(String topic) throws Exception;
    }

    static final Map<String, Feature> FEATURES = new LinkedHashMap<>();
    static final long PATIENCE = 40; // s, for a feature
    static String address, login;
    static AdminClient admin;

    public static void main(String[] args) throws Exception {
        address = args[0];
        login = args.length > 1 ? args[1] : "";
        admin = AdminClient.create(with());
        for (String group : List.of("Clients", "Admins", "Groups", "Rights")) {
            Class.forName(group).getMethod("features").invoke(null);
        }
        ExecutorService threads = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        for (Map.Entry<String, Feature> each : FEATURES.entrySet()) {
            Future<?> done = threads.submit(() -> {
                each.getValue().run("java-" + each.getKey());
                return null;
            });
            try {
                done.get(PATIENCE, TimeUnit.SECONDS);
                System.out.println("ok " + each.getKey());
            } catch (Throwable wrong) {
                Throwable why = wrong;
                while (why.getCause() != null) why = why.getCause();
                boolean lacks = why instanceof LinkageError || why instanceof ClassNotFoundException;
                System.out.println(lacks ? "lacks " + each.getKey() : "no " + each.getKey() + " " + oneLine(why));
                done.cancel(true);
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static String oneLine(Throwable why) {
        return (why.getClass().getSimpleName() + ": " + why.getMessage()).replace('\n', ' ');
    }

    /** Settings of a client, more of them as name and value in turn. */
    static Map<String, Object> with(Object... more) {
        Map<String, Object> found = new HashMap<>();
        found.put("bootstrap.servers", address);
        found.put("default.api.timeout.ms", "20000");
        found.put("request.timeout.ms", "15000");
        found.put("delivery.timeout.ms", "20000");
        found.put("max.block.ms", "20000");
        found.put("auto.offset.reset", "earliest");
        found.put("retry.backoff.ms", "20");
        for (int n = 0; n < more.length; n += 2) found.put((String) more[n], more[n + 1]);
        return found;
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(30, TimeUnit.SECONDS);
    }

    static void check(boolean right, Object what) {
        if (!right) throw new IllegalStateException("" + what);
    }

    interface Holds {
        boolean now() throws Exception;
    }

    /** A real broker follows its controller a little later. */
    static void soon(Holds holds) throws Exception {
        for (long end = System.nanoTime() + 20_000_000_000L; !holds.now(); Thread.sleep(100))
            check(System.nanoTime() < end, "not in force");
    }

    /** Fails where the future succeeds, or fails otherwise than so. */
    static void refused(KafkaFuture<?> future, Class<?> expected) throws Exception {
        try {
            future.get(30, TimeUnit.SECONDS);
        } catch (ExecutionException wrong) {
            check(expected.isInstance(wrong.getCause()), wrong.getCause());
            return;
        }
        throw new IllegalStateException("not refused");
    }

    static void topic(String name, int partitions) throws Exception {
        get(admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all());
        there(name);
    }

    static void there(String name) throws Exception {
        soon(() -> get(admin.listTopics().names()).contains(name));
    }

    static KafkaProducer<String, String> producer(Object... more) {
        return new KafkaProducer<>(with(more), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Object... more) {
        return new KafkaConsumer<>(with(more), new StringDeserializer(), new StringDeserializer());
    }

    /** Makes the topic, of one partition, and sends records with values v0 to v9 to it. */
    static void filled(String topic, Object... settings) throws Exception {
        topic(topic, 1);
        send(topic, 10, settings);
    }

    static void send(String topic, int count, Object... settings) throws Exception {
        try (KafkaProducer<String, String> producer = producer(settings)) {
            for (int n = 0; n < count; n++) producer.send(new ProducerRecord<>(topic, "k" + n, "v" + n));
            producer.flush();
        }
    }

    /** How many records come until there are so many, or none for a while. */
    static int poll(Consumer<String, String> consumer, int wanted) {
        int count = 0;
        long end = System.nanoTime() + 25_000_000_000L;
        while (count < wanted && System.nanoTime() < end) count += consumer.poll(Duration.ofMillis(200)).count();
        return count;
    }

    /** Of partition 0 of the topic, from its start. */
    static void holds(String topic, int wanted, Object... settings) {
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            int count = wanted == 0 ? consumer.poll(Duration.ofMillis(1000)).count() : poll(consumer, wanted);
            check(count == wanted, count + " records");
        }
    }
}
