// Writes three records and reads them: old_sarama ADDRESS TOPIC CLIENT_ID, as sarama does it when nothing is configured.

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"SARAMA"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	config := sarama.NewConfig()
	config.ClientID = os.Args[3]
	config.Producer.Return.Successes = true
	client, err := sarama.NewClient(strings.Split(os.Args[1], ","), config)
	check(err)
	producer, err := sarama.NewSyncProducerFromClient(client)
	check(err)
	for number := 0; number < 3; number++ {
		text := sarama.StringEncoder(fmt.Sprintf("order %d", number))
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: os.Args[2], Value: text})
		check(err)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	check(err)
	reader, err := consumer.ConsumePartition(os.Args[2], 0, sarama.OffsetOldest)
	check(err)
	for got := 1; got <= 3; got++ {
		select {
		case <-reader.Messages():
		case <-time.After(20 * time.Second):
			os.Exit(1)
		}
		if got == 3 {
			fmt.Println("read 3")
		}
	}
	check(reader.Close())
}
