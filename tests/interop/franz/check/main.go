// A client of franz-go for kwire check: produces five records and reads them in a group, for some seconds, as
// check_client.py does with other libraries.
//
//	go build -o check ./check && kwire check --client './check {broker} {topic}'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	count   = 5
	reading = 12 * time.Second
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	shared := []kgo.Opt{kgo.SeedBrokers(os.Args[1]), kgo.ClientID("check")}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	producer, err := kgo.NewClient(append(shared, kgo.DefaultProduceTopic(os.Args[2]))...)
	check(err)
	for i := 0; i < count; i++ {
		producer.Produce(ctx, kgo.StringRecord(fmt.Sprint(i)), nil)
		time.Sleep(100 * time.Millisecond)
	}
	check(producer.Flush(ctx))
	producer.Close()

	consumer, err := kgo.NewClient(append(shared, kgo.ConsumerGroup("check"), kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.SessionTimeout(6*time.Second), kgo.AutoCommitInterval(500*time.Millisecond))...)
	check(err)
	came := 0
	for until := time.Now().Add(reading); time.Now().Before(until); {
		polling, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
		came += consumer.PollFetches(polling).NumRecords()
		stop()
	}
	consumer.Close()
	if came < count {
		os.Exit(3)
	}
}
