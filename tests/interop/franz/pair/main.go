// A producer of two records a second and a member of a group, for so many seconds: pair ADDRESS TOPIC SECONDS.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	seconds, _ := strconv.Atoi(os.Args[3])
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("franz-writer"), kgo.DefaultProduceTopic(os.Args[2]))
	if err != nil {
		panic(err)
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("franz-reader"), kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumerGroup(os.Args[2]+"-franz"))
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			reader.PollFetches(ctx)
		}
		reader.Close()
		close(done)
	}()
	for i := 0; ctx.Err() == nil; i++ {
		producer.ProduceSync(context.Background(), kgo.StringRecord(fmt.Sprintf("order %d", i)))
		time.Sleep(500 * time.Millisecond)
	}
	producer.Close()
	<-done
}
