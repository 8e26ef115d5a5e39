package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// soon: a real broker follows its controller a little later.
func soon(holds func() error) error {
	err := holds()
	for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); err = holds() {
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (f *franz) topics(topic string) error {
	text := "2000"
	made, err := f.admin.CreateTopic(f.ctx, 2, 1, map[string]*string{"max.message.bytes": &text}, topic)
	if err != nil {
		return err
	}
	if _, err := f.admin.ValidateCreateTopics(f.ctx, 1, 1, nil, topic+"-dry"); err != nil {
		return err
	}
	grown, err := f.admin.CreatePartitions(f.ctx, 1, topic)
	listed, listErr := f.admin.ListTopics(f.ctx, topic)
	return first(err, grown.Error(), listErr, check(len(listed[topic].Partitions) == 3 && listed[topic].ID == made.ID, listed))
}

func (f *franz) topicsDelete(topic string) error {
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	done, err := f.admin.DeleteTopics(f.ctx, topic)
	return first(err, done.Error())
}

func (f *franz) configs(topic string) error {
	text := "1234567"
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: &text}
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	if _, err := f.admin.AlterTopicConfigs(f.ctx, []kadm.AlterConfig{change}, topic); err != nil {
		return err
	}
	return soon(func() error {
		found, err := f.admin.DescribeTopicConfigs(f.ctx, topic)
		if err != nil {
			return err
		}
		for _, config := range found[0].Configs {
			if config.Key == "retention.ms" {
				return check(config.MaybeValue() == text, config.MaybeValue())
			}
		}
		return fmt.Errorf("not described")
	})
}

func (f *franz) brokerConfigs(string) error {
	nodes, err := f.admin.ListBrokers(f.ctx)
	if err != nil {
		return err
	}
	found, err := f.admin.DescribeBrokerConfigs(f.ctx, nodes.NodeIDs()...)
	return first(err, check(len(found) > 0 && len(found[0].Configs) > 10, "too few"))
}

func (f *franz) configResources(topic string) error {
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	_, err := f.admin.ListConfigResources(f.ctx)
	return err
}

func (f *franz) recordsDelete(topic string) error {
	if err := f.filled(topic); err != nil {
		return err
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, 4, -1)
	done, err := f.admin.DeleteRecords(f.ctx, offsets)
	begins, beginErr := f.admin.ListStartOffsets(f.ctx, topic)
	at, _ := begins.Lookup(topic, 0)
	return first(err, done.Error(), beginErr, check(at.Offset == 4, at))
}

func (f *franz) offsets(topic string) error {
	if err := f.filled(topic); err != nil {
		return err
	}
	ends, err := f.admin.ListEndOffsets(f.ctx, topic)
	latest, latestErr := f.admin.ListMaxTimestampOffsets(f.ctx, topic)
	at, _ := ends.Lookup(topic, 0)
	after, afterErr := f.admin.ListOffsetsAfterMilli(f.ctx, 0, topic)
	from, _ := after.Lookup(topic, 0)
	return first(err, latestErr, latest.Error(), afterErr, check(at.Offset == 10 && from.Offset == 0, ends))
}

func (f *franz) reassign(topic string) error {
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	nodes, err := f.admin.ListBrokers(f.ctx)
	if err != nil {
		return err
	}
	var wanted kadm.AlterPartitionAssignmentsReq
	wanted.Assign(topic, 0, nodes.NodeIDs()[:1])
	done, err := f.admin.AlterPartitionAssignments(f.ctx, wanted)
	_, listErr := f.admin.ListPartitionReassignments(f.ctx, nil)
	return first(err, done.Error(), listErr)
}

func (f *franz) elect(topic string) error {
	if err := f.topic(topic, 1); err != nil {
		return err
	}
	_, err := f.admin.ElectLeaders(f.ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{topic: {0: {}}})
	return err
}

func (f *franz) logDirs(topic string) error {
	if err := f.filled(topic); err != nil {
		return err
	}
	found, err := f.admin.DescribeAllLogDirs(f.ctx, kadm.TopicsSet{topic: {0: {}}})
	size := int64(0)
	for _, dirs := range found {
		size += dirs.Size()
	}
	return first(err, check(size > 0, "empty"))
}

func (f *franz) groups(topic string) error {
	if err := f.consumed()(topic); err != nil {
		return err
	}
	listed, err := f.admin.ListGroups(f.ctx, "Empty")
	if err != nil {
		return err
	}
	described, err := f.admin.DescribeGroups(f.ctx, topic)
	lag, lagErr := f.admin.Lag(f.ctx, topic)
	wanted := kadm.Offsets{}
	wanted.AddOffset(topic, 0, 3, -1)
	if err := first(err, check(len(listed[topic].Group) > 0, listed), described.Error(), lagErr, lag.Error(),
		f.admin.CommitAllOffsets(f.ctx, topic, wanted)); err != nil {
		return err
	}
	found, err := f.admin.FetchOffsets(f.ctx, topic)
	at, _ := found.Lookup(topic, 0)
	if err := first(err, check(at.At == 3, at)); err != nil {
		return err
	}
	gone, err := f.admin.DeleteOffsets(f.ctx, topic, kadm.TopicsSet{topic: {0: {}}})
	deleted, deleteErr := f.admin.DeleteGroup(f.ctx, topic)
	return first(err, gone.Error(), deleteErr, deleted.Err)
}

func (f *franz) transactions(topic string) error {
	return f.within(topic, func(*kgo.Client) error {
		listed, err := f.admin.ListTransactions(f.ctx, nil, []string{"Ongoing"})
		if err := first(err, check(listed[topic].State == "Ongoing", listed)); err != nil {
			return err
		}
		_, err = f.admin.DescribeTransactions(f.ctx, topic)
		producers, describeErr := f.admin.DescribeProducers(f.ctx, kadm.TopicsSet{topic: {0: {}}})
		return first(err, describeErr, check(len(producers.SortedProducers()) == 1, producers))
	})
}

func (f *franz) acls(topic string) error {
	rights := kadm.NewACLs().Topics(topic).Allow("User:nobody").AllowHosts("*").Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)
	if _, err := f.admin.CreateACLs(f.ctx, rights); err != nil {
		return err
	}
	err := soon(func() error {
		found, err := f.admin.DescribeACLs(f.ctx, rights)
		return first(err, check(len(found) == 1 && len(found[0].Described) == 1, found))
	})
	gone, deleteErr := f.admin.DeleteACLs(f.ctx, rights)
	return first(err, deleteErr, check(len(gone) == 1 && len(gone[0].Deleted) == 1, gone))
}

func (f *franz) quotas(topic string) error {
	entity := kadm.ClientQuotaEntity{{Type: "client-id", Name: &topic}}
	set := kadm.AlterClientQuotaEntry{Entity: entity, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e6}}}
	if _, err := f.admin.AlterClientQuotas(f.ctx, []kadm.AlterClientQuotaEntry{set}); err != nil {
		return err
	}
	only := []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchName: &topic}}
	return soon(func() error {
		found, err := f.admin.DescribeClientQuotas(f.ctx, true, only)
		return first(err, check(len(found) == 1 && found[0].Values[0].Value == 1e6, found))
	})
}

func (f *franz) scram(user string) error {
	made := kadm.UpsertSCRAM{User: user, Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}
	if done, err := f.admin.AlterUserSCRAMs(f.ctx, nil, []kadm.UpsertSCRAM{made}); err != nil || done.Error() != nil {
		return first(err, done.Error())
	}
	err := soon(func() error {
		found, err := f.admin.DescribeUserSCRAMs(f.ctx, user)
		return first(err, found.Error())
	})
	done, deleteErr := f.admin.AlterUserSCRAMs(f.ctx, []kadm.DeleteSCRAM{{User: user, Mechanism: kadm.ScramSha256}}, nil)
	return first(err, deleteErr, done.Error())
}

func (f *franz) featureLevels(string) error {
	_, err := f.admin.UpdateFeatures(f.ctx, true, kadm.FeatureUpdate{Feature: "group.version", MaxVersionLevel: 1, UpgradeType: 1})
	return err
}

func (f *franz) administration() []feature {
	return []feature{
		{"topics", f.topics}, {"topics-delete", f.topicsDelete}, {"configs-alter", f.configs},
		{"configs-describe-broker", f.brokerConfigs}, {"config-resources-list", f.configResources},
		{"records-delete", f.recordsDelete}, {"offsets-list", f.offsets}, {"replicas-reassign", f.reassign},
		{"leaders-elect", f.elect}, {"log-dirs", f.logDirs}, {"groups", f.groups}, {"transactions-admin", f.transactions},
		{"acls", f.acls}, {"quotas", f.quotas}, {"scram", f.scram}, {"features-update", f.featureLevels},
	}
}
