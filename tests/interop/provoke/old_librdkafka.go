// Writes three records and reads them with the librdkafka inside confluent-kafka-go: old_librdkafka ADDRESS TOPIC CLIENT_ID.

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/confluentinc/confluent-kafka-go/kafka"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	address, topic, client := os.Args[1], os.Args[2], os.Args[3]
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": address, "client.id": client})
	check(err)
	go func() { // Flush waits until somebody has taken the reports of delivery
		for range producer.Events() {
		}
	}()
	for number := 0; number < 3; number++ {
		place := kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny}
		check(producer.Produce(&kafka.Message{TopicPartition: place, Value: []byte(fmt.Sprintf("order %d", number))}, nil))
	}
	if producer.Flush(20000) > 0 {
		os.Exit(1)
	}
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers": address, "client.id": client, "group.id": topic + "-g", "auto.offset.reset": "earliest",
	})
	check(err)
	check(consumer.Subscribe(topic, nil))
	for got := 0; got < 3; {
		if _, err := consumer.ReadMessage(20 * time.Second); err == nil {
			got++
		} else {
			check(err)
		}
	}
	check(consumer.Close())
	fmt.Println("read 3")
}
