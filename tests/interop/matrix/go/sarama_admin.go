package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

func (c *client) topics(admin sarama.ClusterAdmin, topic string) error {
	if err := c.topic(topic, 2); err != nil {
		return err
	}
	if err := admin.CreatePartitions(topic, 3, nil, false); err != nil {
		return err
	}
	var found []*sarama.TopicMetadata
	err := soon(func() (err error) {
		found, err = admin.DescribeTopics([]string{topic})
		return first(err, check(len(found[0].Partitions) == 3, found))
	})
	listed, listErr := admin.ListTopics()
	_, there := listed[topic]
	return first(err, listErr, check(there, listed), admin.DeleteTopic(topic))
}

func (c *client) configs(admin sarama.ClusterAdmin, topic string) error {
	text := "1234567"
	set := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &text}}
	if err := first(c.topic(topic, 1), admin.IncrementalAlterConfig(sarama.TopicResource, topic, set, false)); err != nil {
		return err
	}
	return soon(func() error {
		found, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})
		return first(err, check(len(found) == 1 && found[0].Value == text, found))
	})
}

func (c *client) alterAll(admin sarama.ClusterAdmin, topic string) error {
	text := "7654321"
	return first(c.topic(topic, 1), admin.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &text}, false))
}

func (c *client) recordsDelete(admin sarama.ClusterAdmin, topic string) error {
	if err := first(c.filled(topic), admin.DeleteRecords(topic, map[int32]int64{0: 4})); err != nil {
		return err
	}
	found, err := admin.ListOffsets(map[string]map[int32]int64{topic: {0: sarama.OffsetOldest}}, nil)
	return first(err, check(found[topic][0].Offset == 4, found))
}

func (c *client) reassign(admin sarama.ClusterAdmin, topic string) error {
	if err := c.topic(topic, 1); err != nil {
		return err
	}
	nodes, _, err := admin.DescribeCluster()
	if err != nil {
		return err
	}
	err = admin.AlterPartitionReassignments(topic, [][]int32{{nodes[0].ID()}})
	_, listErr := admin.ListPartitionReassignments(topic, []int32{0})
	return first(err, listErr)
}

func (c *client) elect(admin sarama.ClusterAdmin, topic string) error {
	if err := c.topic(topic, 1); err != nil {
		return err
	}
	_, err := admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{topic: {0}})
	return err
}

func (c *client) logDirs(admin sarama.ClusterAdmin, topic string) error {
	if err := c.filled(topic); err != nil {
		return err
	}
	nodes, _, err := admin.DescribeCluster()
	if err != nil {
		return err
	}
	found, err := admin.DescribeLogDirs([]int32{nodes[0].ID()})
	return first(err, check(len(found) == 1, found))
}

func (c *client) groups(admin sarama.ClusterAdmin, topic string) error {
	if err := c.consumed(func(*sarama.Config) {})(topic); err != nil {
		return err
	}
	listed, err := admin.ListConsumerGroups()
	described, describeErr := admin.DescribeConsumerGroups([]string{topic})
	_, there := listed[topic]
	_, alterErr := admin.AlterConsumerGroupOffsets(topic, map[string]map[int32]sarama.OffsetAndMetadata{topic: {0: {Offset: 3, LeaderEpoch: -1}}}, nil)
	if err := first(err, describeErr, alterErr, check(there && described[0].State == "Empty", described), c.committed(topic, 3)); err != nil {
		return err
	}
	return first(admin.DeleteConsumerGroupOffset(topic, topic, 0), admin.DeleteConsumerGroup(topic))
}

func (c *client) acls(admin sarama.ClusterAdmin, topic string) error {
	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: topic, ResourcePatternType: sarama.AclPatternLiteral}
	acl := sarama.Acl{Principal: "User:nobody", Host: "*", Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}
	only := sarama.AclFilter{ResourceType: sarama.AclResourceTopic, ResourceName: &topic, ResourcePatternTypeFilter: sarama.AclPatternLiteral,
		Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny}
	if err := admin.CreateACL(resource, acl); err != nil {
		return err
	}
	err := soon(func() error {
		found, err := admin.ListAcls(only)
		return first(err, check(len(found) == 1, found))
	})
	gone, deleteErr := admin.DeleteACL(only, false)
	return first(err, deleteErr, check(len(gone) == 1, gone))
}

func (c *client) quotas(admin sarama.ClusterAdmin, topic string) error {
	entity := sarama.QuotaEntityComponent{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Name: topic}
	only := sarama.QuotaFilterComponent{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Match: topic}
	err := admin.AlterClientQuotas([]sarama.QuotaEntityComponent{entity}, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e6}, false)
	if err != nil {
		return err
	}
	return soon(func() error {
		found, err := admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{only}, true)
		return first(err, check(len(found) == 1, found))
	})
}

func (c *client) scram(admin sarama.ClusterAdmin, user string) error {
	made := sarama.AlterUserScramCredentialsUpsert{Name: user, Mechanism: sarama.SCRAM_MECHANISM_SHA_256, Iterations: 4096,
		Salt: []byte("salt"), Password: []byte("secret")}
	done, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{made})
	if err := first(err, check(done[0].ErrorCode == sarama.ErrNoError, done)); err != nil {
		return err
	}
	err = soon(func() error {
		found, err := admin.DescribeUserScramCredentials([]string{user})
		return first(err, check(len(found[0].CredentialInfos) == 1, fmt.Sprint(found[0])))
	})
	gone := sarama.AlterUserScramCredentialsDelete{Name: user, Mechanism: sarama.SCRAM_MECHANISM_SHA_256}
	_, deleteErr := admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{gone})
	return first(err, deleteErr)
}

func (c *client) administration() []feature {
	return []feature{
		{"topics", c.with(c.topics)}, {"configs-alter", c.with(c.configs)}, {"configs-alter-all", c.with(c.alterAll)},
		{"records-delete", c.with(c.recordsDelete)}, {"replicas-reassign", c.with(c.reassign)}, {"leaders-elect", c.with(c.elect)},
		{"log-dirs", c.with(c.logDirs)}, {"groups", c.with(c.groups)}, {"acls", c.with(c.acls)}, {"quotas", c.with(c.quotas)},
		{"scram", c.with(c.scram)},
	}
}
