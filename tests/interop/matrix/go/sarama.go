package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// client is sarama's.
type client struct {
	address []string
}

func (c *client) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_3_1_0
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	return config
}

// with tries something with an admin client.
func (c *client) with(try func(admin sarama.ClusterAdmin, topic string) error) func(string) error {
	return func(topic string) error {
		admin, err := sarama.NewClusterAdmin(c.address, c.config())
		if err != nil {
			return err
		}
		defer admin.Close()
		return try(admin, topic)
	}
}

func (c *client) topic(name string, partitions int32) error {
	return c.with(func(admin sarama.ClusterAdmin, topic string) error {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
	})(name)
}

func (c *client) send(topic string, change func(*sarama.Config)) error {
	config := c.config()
	change(config)
	producer, err := sarama.NewSyncProducer(c.address, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	return sent(producer, topic)
}

func sent(producer sarama.SyncProducer, topic string) error {
	for _, value := range values {
		if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) filled(topic string) error {
	return first(c.topic(topic, 1), c.send(topic, func(*sarama.Config) {}))
}

// read: so many records of partition 0; none wanted: what comes in a second.
func (c *client) read(topic string, wanted int, isolation sarama.IsolationLevel) error {
	config := c.config()
	config.Consumer.IsolationLevel = isolation
	consumer, err := sarama.NewConsumer(c.address, config)
	if err != nil {
		return err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer partition.Close()
	limit, count := 30*time.Second, 0
	if wanted == 0 {
		limit = time.Second
	}
	for end := time.After(limit); wanted == 0 || count < wanted; count++ {
		select {
		case <-partition.Messages():
		case <-end:
			return check(count == wanted, fmt.Sprint(count, " records"))
		}
	}
	return nil
}

func (c *client) produced(change func(*sarama.Config)) func(string) error {
	return func(topic string) error {
		return first(c.topic(topic, 1), c.send(topic, change), c.read(topic, 10, sarama.ReadUncommitted))
	}
}

func idempotent(config *sarama.Config) {
	config.Producer.Idempotent, config.Net.MaxOpenRequests = true, 1
	config.Producer.RequiredAcks = sarama.WaitForAll
}

func (c *client) begun(topic string) (sarama.SyncProducer, error) {
	config := c.config()
	idempotent(config)
	config.Producer.Transaction.ID = topic
	producer, err := sarama.NewSyncProducer(c.address, config)
	if err != nil {
		return nil, err
	}
	return producer, first(producer.BeginTxn(), sent(producer, topic))
}

// within does something while a transaction of ten records is open.
func (c *client) within(topic string, do func(sarama.SyncProducer) error) error {
	if err := c.topic(topic, 1); err != nil {
		return err
	}
	producer, err := c.begun(topic)
	if err != nil {
		return err
	}
	defer producer.Close()
	return do(producer)
}

func (c *client) transaction(commit bool) func(string) error {
	return func(topic string) error {
		return c.within(topic, func(producer sarama.SyncProducer) error {
			if commit {
				return first(producer.CommitTxn(), c.read(topic, 10, sarama.ReadCommitted))
			}
			return first(producer.AbortTxn(), c.read(topic, 0, sarama.ReadCommitted), c.read(topic, 10, sarama.ReadUncommitted))
		})
	}
}

func (c *client) transfer(topic string) error {
	return c.within(topic, func(producer sarama.SyncProducer) error {
		offsets := map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: 0, Offset: 10}}}
		return first(producer.AddOffsetsToTxn(offsets, topic), producer.CommitTxn(), soon(func() error { return c.committed(topic, 10) }))
	})
}

func (c *client) committed(group string, wanted int64) error {
	return c.with(func(admin sarama.ClusterAdmin, topic string) error {
		found, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err != nil {
			return err
		}
		return check(found.GetBlock(topic, 0).Offset == wanted, found.GetBlock(topic, 0).Offset)
	})(group)
}

// member counts the records and the partitions of each session.
type member struct {
	records  chan string
	sessions chan int
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	count := 0
	for _, partitions := range session.Claims() {
		count += len(partitions)
	}
	m.sessions <- count
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, more := <-claim.Messages():
			if !more {
				return nil
			}
			session.MarkMessage(record, "")
			session.Commit()
			m.records <- string(record.Value)
		case <-session.Context().Done():
			return nil
		}
	}
}

// joined runs a member until it is stopped.
func (c *client) joined(topic string, change func(*sarama.Config)) (*member, func() error, error) {
	config := c.config()
	change(config)
	group, err := sarama.NewConsumerGroup(c.address, topic, config)
	if err != nil {
		return nil, nil, err
	}
	made := &member{make(chan string, 1000), make(chan int, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			if group.Consume(ctx, []string{topic}, made) != nil {
				time.Sleep(50 * time.Millisecond)
			}
		}
	}()
	return made, func() error { cancel(); return group.Close() }, nil
}

// until: a session with so many partitions.
func (m *member) until(wanted int) error {
	for end := time.After(30 * time.Second); ; {
		select {
		case count := <-m.sessions:
			if count == wanted {
				return nil
			}
		case <-end:
			return fmt.Errorf("never %d partitions", wanted)
		}
	}
}

func (m *member) reads(wanted int) error {
	for end := time.After(30 * time.Second); wanted > 0; wanted-- {
		select {
		case <-m.records:
		case <-end:
			return fmt.Errorf("%d records are missing", wanted)
		}
	}
	return nil
}

// group: two members share four partitions; one leaves, the other has them all.
func (c *client) group(change func(*sarama.Config)) func(string) error {
	return func(topic string) error {
		if err := c.topic(topic, 4); err != nil {
			return err
		}
		one, stopOne, err := c.joined(topic, change)
		if err != nil {
			return err
		}
		if err := one.until(4); err != nil {
			return err
		}
		two, stopTwo, err := c.joined(topic, change)
		if err != nil {
			return err
		}
		return first(two.until(2), stopTwo(), one.until(4), stopOne())
	}
}

func (c *client) consumed(change func(*sarama.Config)) func(string) error {
	return func(topic string) error {
		if err := c.filled(topic); err != nil {
			return err
		}
		member, stop, err := c.joined(topic, change)
		if err != nil {
			return err
		}
		return first(member.reads(10), stop(), c.committed(topic, 10))
	}
}

func saramaFeatures(address string) []feature {
	c := &client{address: []string{address}}
	acks := func(acks sarama.RequiredAcks) func(string) error {
		return c.produced(func(config *sarama.Config) { config.Producer.RequiredAcks = acks })
	}
	codec := func(codec sarama.CompressionCodec) func(string) error {
		return c.produced(func(config *sarama.Config) { config.Producer.Compression = codec })
	}
	strategy := func(made func() sarama.BalanceStrategy) func(*sarama.Config) {
		return func(config *sarama.Config) {
			config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{made()}
		}
	}
	found := []feature{
		{"produce", acks(sarama.WaitForLocal)}, {"produce-acks-0", acks(sarama.NoResponse)},
		{"produce-idempotent", c.produced(idempotent)},
		{"produce-gzip", codec(sarama.CompressionGZIP)}, {"produce-snappy", codec(sarama.CompressionSnappy)},
		{"produce-lz4", codec(sarama.CompressionLZ4)}, {"produce-zstd", codec(sarama.CompressionZSTD)},
		{"transaction-commit", c.transaction(true)}, {"transaction-abort", c.transaction(false)},
		{"transaction-offsets", c.transfer},
		{"group-classic", c.group(strategy(sarama.NewBalanceStrategyRange))},
		{"group-sticky", c.group(strategy(sarama.NewBalanceStrategySticky))},
		{"group-cooperative", c.consumed(strategy(sarama.NewBalanceStrategyCooperativeSticky))},
		{"group-static", c.consumed(func(config *sarama.Config) { config.Consumer.Group.InstanceId = "i" })},
	}
	return append(found, c.administration()...)
}
