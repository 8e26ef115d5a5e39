// Writes three records and reads them, with what clients of all releases have: OldClient ADDRESS TOPIC CLIENT_ID.

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

import java.util.Collections;
import java.util.Properties;

public class OldClient {
    static Properties config(String[] args) {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", args[2]);
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("group.id", args[1] + "-g");
        config.put("auto.offset.reset", "earliest");
        return config;
    }

    @SuppressWarnings("deprecation")
    public static void main(String[] args) throws Exception {
        KafkaProducer<String, String> producer = new KafkaProducer<String, String>(config(args));
        for (int number = 0; number < 3; number++) {
            producer.send(new ProducerRecord<String, String>(args[1], "order " + number)).get();
        }
        producer.close();
        KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(config(args));
        consumer.subscribe(Collections.singletonList(args[1]));
        int got = 0;
        while (got < 3) {
            for (ConsumerRecord<String, String> record : consumer.poll(200)) {
                got++;
            }
        }
        consumer.commitSync();
        consumer.close();
        System.out.println("read " + got);
    }
}
