package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// franz is franz-go's client; its administration is in franz_admin.go.
type franz struct {
	address string
	ctx     context.Context
	admin   *kadm.Client
}

func (f *franz) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(f.address), kgo.FetchMaxWait(200 * time.Millisecond)}, opts...)...)
}

func (f *franz) topic(name string, partitions int32) error {
	_, err := f.admin.CreateTopic(f.ctx, partitions, 1, nil, name)
	return err
}

func (f *franz) filled(topic string, opts ...kgo.Opt) error {
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	return f.send(topic, opts...)
}

func (f *franz) send(topic string, opts ...kgo.Opt) error {
	client, err := f.client(append(opts, kgo.DefaultProduceTopic(topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, value := range values {
		if err := client.ProduceSync(f.ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// read: so many records of partition 0; none wanted: what comes in a second.
func (f *franz) read(topic string, wanted int, opts ...kgo.Opt) error {
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client, err := f.client(append(opts, kgo.ConsumePartitions(from))...)
	if err != nil {
		return err
	}
	defer client.Close()
	return f.polled(client, wanted)
}

func (f *franz) polled(client *kgo.Client, wanted int) error {
	limit := 30 * time.Second
	if wanted == 0 {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(f.ctx, limit)
	defer cancel()
	count := 0
	for ctx.Err() == nil && (wanted == 0 || count < wanted) {
		count += client.PollFetches(ctx).NumRecords()
	}
	return check(count == wanted, fmt.Sprint(count, " records"))
}

func (f *franz) produced(opts ...kgo.Opt) func(string) error {
	return func(topic string) error {
		return first(f.filled(topic, opts...), f.read(topic, 10))
	}
}

func (f *franz) begun(topic string) (*kgo.Client, error) {
	client, err := f.client(kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	if err == nil {
		err = client.BeginTransaction()
	}
	for _, value := range values {
		if err == nil {
			err = client.ProduceSync(f.ctx, kgo.StringRecord(value)).FirstErr()
		}
	}
	return client, err
}

// within does something while a transaction of ten records is open.
func (f *franz) within(topic string, do func(*kgo.Client) error) error {
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	client, err := f.begun(topic)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

func (f *franz) transaction(commit bool) func(string) error {
	return func(topic string) error {
		committed, wanted := kgo.FetchIsolationLevel(kgo.ReadCommitted()), 0
		if commit {
			wanted = 10
		}
		return f.within(topic, func(client *kgo.Client) error {
			return first(client.EndTransaction(f.ctx, kgo.TransactionEndTry(commit)), f.read(topic, wanted, committed), f.read(topic, 10))
		})
	}
}

// transfer: consume, and commit the offsets in a transaction.
func (f *franz) transfer(topic string) error {
	if err := f.filled(topic); err != nil {
		return err
	}
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(f.address), kgo.TransactionalID(topic), kgo.ConsumerGroup(topic),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer session.Close()
	for count := 0; count < 10; {
		count += session.PollFetches(f.ctx).NumRecords()
	}
	if err := session.Begin(); err != nil {
		return err
	}
	committed, err := session.End(f.ctx, kgo.TryCommit)
	if err != nil || !committed {
		return first(err, errors.New("not committed"))
	}
	offsets, err := f.admin.FetchOffsets(f.ctx, topic)
	at, _ := offsets.Lookup(topic, 0)
	return first(err, check(at.At == 10, at))
}

func (f *franz) fenced(topic string) error {
	return f.within(topic, func(one *kgo.Client) error {
		two, err := f.begun(topic)
		if err != nil {
			return err
		}
		defer two.Close()
		err = one.EndTransaction(f.ctx, kgo.TryCommit)
		if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
			return fmt.Errorf("not fenced: %v", err)
		}
		return two.EndTransaction(f.ctx, kgo.TryCommit)
	})
}

// group: two members share four partitions; one leaves, the other has them all.
func (f *franz) group(opts ...kgo.Opt) func(string) error {
	return f.members(context.Background(), opts...)
}

// next: the same by the protocol of KIP-848.
func (f *franz) next() func(string) error {
	return f.members(context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true))
}

func (f *franz) members(ctx context.Context, opts ...kgo.Opt) func(string) error {
	return func(topic string) error {
		if err := f.topic(topic, 4); err != nil {
			return err
		}
		held := make([]map[int32]bool, 2)
		changes := make(chan func(), 100)
		var clients []*kgo.Client
		for n := range held {
			held[n] = map[int32]bool{}
			change := func(have bool) func(context.Context, *kgo.Client, map[string][]int32) {
				return func(_ context.Context, _ *kgo.Client, moved map[string][]int32) {
					changes <- func() {
						for _, partition := range moved[topic] {
							held[n][partition] = have
							if !have {
								delete(held[n], partition)
							}
						}
					}
				}
			}
			client, err := f.client(append(opts, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.WithContext(ctx),
				kgo.HeartbeatInterval(200*time.Millisecond),
				kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)))...)
			if err != nil {
				return err
			}
			clients = append(clients, client)
			go func() {
				for !client.PollFetches(ctx).IsClientClosed() {
				}
			}()
		}
		defer clients[0].Close()
		closed := false
		for end := time.After(30 * time.Second); ; {
			select {
			case change := <-changes:
				change()
			case <-end:
				return fmt.Errorf("%v", held)
			}
			if !closed && len(held[0]) == 2 && len(held[1]) == 2 {
				closed = true
				go clients[1].Close()
			}
			if closed && len(held[0]) == 4 {
				return nil
			}
		}
	}
}

func (f *franz) consumed(opts ...kgo.Opt) func(string) error {
	return func(topic string) error {
		if err := f.filled(topic); err != nil {
			return err
		}
		client, err := f.client(append(opts, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
		if err != nil {
			return err
		}
		defer client.Close()
		return first(f.polled(client, 10), client.CommitUncommittedOffsets(f.ctx))
	}
}

func (f *franz) share(topic string) error {
	if err := f.filled(topic); err != nil {
		return err
	}
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", kmsg.StringPtr("earliest")
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	client, err := f.client(kgo.ShareGroup(topic), kgo.ConsumeTopics(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := request.RequestWith(f.ctx, client); err != nil {
		return err
	}
	if err := f.polled(client, 10); err != nil {
		return err
	}
	_, err = f.admin.DescribeShareGroups(f.ctx, topic)
	return err
}

func franzFeatures(address string) []feature {
	f := &franz{address: address, ctx: context.Background()}
	client, err := f.client()
	if err != nil {
		panic(err)
	}
	f.admin = kadm.NewClient(client)
	once := kgo.DisableIdempotentWrite()
	codec := func(codec kgo.CompressionCodec) func(string) error {
		return f.produced(kgo.ProducerBatchCompression(codec))
	}
	found := []feature{
		{"produce", f.produced(once, kgo.RequiredAcks(kgo.LeaderAck()))},
		{"produce-acks-0", f.produced(once, kgo.RequiredAcks(kgo.NoAck()))},
		{"produce-idempotent", f.produced()},
		{"produce-gzip", codec(kgo.GzipCompression())},
		{"produce-snappy", codec(kgo.SnappyCompression())},
		{"produce-lz4", codec(kgo.Lz4Compression())},
		{"produce-zstd", codec(kgo.ZstdCompression())},
		{"transaction-commit", f.transaction(true)},
		{"transaction-abort", f.transaction(false)},
		{"transaction-offsets", f.transfer},
		{"transaction-fenced", f.fenced},
		{"group-classic", f.group(kgo.Balancers(kgo.RangeBalancer()))},
		{"group-cooperative", f.group(kgo.Balancers(kgo.CooperativeStickyBalancer()))},
		{"group-static", f.consumed(kgo.InstanceID("i"))},
		{"group-consumer", f.next()},
		{"group-share", f.share},
	}
	return append(found, f.administration()...)
}
