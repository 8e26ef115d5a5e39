// An idempotent producer, a transactional one, and groups of both protocols, of franz-go, for some seconds.
//
//	steady 127.0.0.1:9092 COUNT SECONDS
//
// Prints a line of JSON for each, as Steady.java does.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	count, seconds int
	address        kgo.Opt
	ctx            context.Context
)

func say(who string, lost, doubled, again int) {
	fmt.Printf("{\"who\": \"%s\", \"lost\": %d, \"doubled\": %d, \"again\": %d}\n", who, lost, doubled, again)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "franz:", err)
		os.Exit(1)
	}
}

func client(opts ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(opts, address, kgo.MetadataMinAge(time.Second), kgo.MetadataMaxAge(3*time.Second))...)
	check(err)
	return made
}

func produce() {
	producer := client(kgo.DefaultProduceTopic("franz"), kgo.ClientID("franz-producer"))
	var mutex sync.Mutex
	failed := 0
	for i := 0; i < count; i++ {
		producer.Produce(ctx, kgo.StringRecord(fmt.Sprintf("v%d", i)), func(_ *kgo.Record, err error) {
			if err != nil {
				mutex.Lock()
				failed++
				mutex.Unlock()
				fmt.Fprintln(os.Stderr, "franz producer:", err)
			}
		})
		time.Sleep(time.Duration(seconds) * time.Second / time.Duration(count))
	}
	check(producer.Flush(ctx))
	producer.Close()
	say("franz producer", failed, 0, 0)
}

// Every record twice: in a transaction that is aborted, and in one that is committed.
func transact() {
	producer := client(kgo.DefaultProduceTopic("franz-txn"), kgo.TransactionalID("franz"), kgo.ClientID("franz-txn"))
	for i := 0; i < count; {
		for _, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
			last := min(i+10, count)
			check(producer.BeginTransaction())
			for n := i; n < last; n++ {
				producer.Produce(ctx, kgo.StringRecord(fmt.Sprintf("v%d", n)), nil)
			}
			flushed := producer.Flush(ctx)
			if err := producer.EndTransaction(ctx, commit && kgo.TransactionEndTry(flushed == nil)); err != nil {
				fmt.Fprintln(os.Stderr, "franz transaction:", err)
			} else if commit == kgo.TryCommit && flushed == nil {
				i = last
			}
		}
		time.Sleep(10 * time.Duration(seconds) * time.Second / time.Duration(count))
	}
	producer.Close()
}

func read(who, topic string, next bool) {
	with := ctx
	if next {
		with = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
	}
	consumer := client(kgo.WithContext(with), kgo.ConsumerGroup(who), kgo.ClientID(who), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	places, doubled, again := map[string]string{}, 0, 0
	for len(places) < count && ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) {
			place := fmt.Sprintf("%d/%d", record.Partition, record.Offset)
			before, there := places[string(record.Value)]
			if there && before == place {
				again++
			} else if there {
				doubled++
			} else {
				places[string(record.Value)] = place
			}
		})
		_ = consumer.CommitUncommittedOffsets(ctx)
	}
	consumer.CloseAllowingRebalance()
	say(who, count-len(places), doubled, again)
}

func topics() {
	admin := client()
	request := kmsg.NewPtrCreateTopicsRequest()
	for _, name := range []string{"franz", "franz-txn"} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 3, 3
		request.Topics = append(request.Topics, topic)
	}
	_, err := request.RequestWith(ctx, admin)
	check(err)
	admin.Close()
}

func main() {
	address = kgo.SeedBrokers(strings.Split(os.Args[1], ",")...)
	count, _ = strconv.Atoi(os.Args[2])
	seconds, _ = strconv.Atoi(os.Args[3])
	made, cancel := context.WithTimeout(context.Background(), time.Duration(seconds+60)*time.Second)
	defer cancel()
	ctx = made
	topics()
	var group sync.WaitGroup
	for _, work := range []func(){
		produce, transact,
		func() { read("franz-classic", "franz", false) },
		func() { read("franz-consumer", "franz", true) },
		func() { read("franz-committed", "franz-txn", false) },
	} {
		group.Add(1)
		go func() { defer group.Done(); work() }()
	}
	group.Wait()
}
