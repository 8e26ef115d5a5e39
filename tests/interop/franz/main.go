// A producer, a member of a group and an admin request of franz-go, against the address in the first argument. A second
// argument "next" asks for the group protocol of KIP-848. Prints how many records came and how many members there are.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	opts := []kgo.Opt{kgo.SeedBrokers(os.Args[1])}
	producer, err := kgo.NewClient(append(opts, kgo.DefaultProduceTopic("t"))...)
	check(err)
	for i := 0; i < 100; i++ {
		check(producer.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("v%d", i))).FirstErr())
	}
	producer.Close()
	if len(os.Args) > 2 {
		ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
		opts = append(opts, kgo.WithContext(ctx))
	}
	consumer, err := kgo.NewClient(append(opts, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"))...)
	check(err)
	got := 0
	for got < 100 {
		fetches := consumer.PollFetches(ctx)
		check(fetches.Err())
		got += fetches.NumRecords()
	}
	check(consumer.CommitUncommittedOffsets(ctx))
	request := kmsg.NewPtrListGroupsRequest()
	response, err := request.RequestWith(ctx, consumer)
	check(err)
	consumer.Close()
	fmt.Println(got, len(response.Groups), response.Groups[0].GroupState)
}
