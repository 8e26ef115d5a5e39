"""Metadata, offsets, topics, configurations, coordinators, producer ids: what admin clients and start-ups ask."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.broker.configs import known
from kwire.broker.context import BrokerSettings

# ---------------------------------------------------------------- metadata


def test_topics_are_created_when_they_are_first_named(socketless: Any) -> None:
    answer = socketless.ask("Metadata", 12, {"Topics": [{"Name": "new"}], "AllowAutoTopicCreation": True})
    assert [(row["Name"], row["ErrorCode"], len(row["Partitions"])) for row in answer["Topics"]] == [("new", 0, 1)]
    assert answer["Topics"][0]["TopicId"] == socketless.state.cluster.topics["new"].id


@pytest.mark.parametrize(
    ("topic", "allowed", "code"),
    [
        ({"Name": "new"}, False, 3),
        ({"Name": "a b"}, True, 17),
        ({"Name": None, "TopicId": UUID(int=7)}, True, 100),
        ({"Name": "", "TopicId": UUID(int=7)}, True, 100),
    ],
)
def test_topics_that_are_not_there(socketless: Any, topic: dict[str, Any], allowed: bool, code: int) -> None:
    answer = socketless.ask("Metadata", 12, {"Topics": [topic], "AllowAutoTopicCreation": allowed})
    assert (answer["Topics"][0]["ErrorCode"], list(socketless.state.cluster.topics)) == (code, ["t"])


def test_topics_are_not_created_where_that_is_off(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(create_topics=False))
    assert socketless.ask("Metadata", 1, {"Topics": [{"Name": "new"}]})["Topics"][0]["ErrorCode"] == 3


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (12, None)])
def test_all_topics(socketless: Any, version: int, topics: Any) -> None:
    answer = socketless.ask("Metadata", version, {"Topics": topics})
    assert [row["Name"] for row in answer["Topics"]] == ["t"]


def test_a_cluster_describes_itself(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=3))
    answer = socketless.ask("DescribeCluster", 2, {"IncludeClusterAuthorizedOperations": True})
    assert (answer["ClusterId"], answer["ControllerId"]) == (socketless.state.cluster.id, 1)
    assert [row["BrokerId"] for row in answer["Brokers"]] == [1, 2, 3]
    assert socketless.ask("DescribeCluster", 2, {"EndpointType": 2})["ErrorCode"] == 115


def test_partitions_come_in_pages(socketless: Any) -> None:
    socketless.state.create("u", 3)
    body: dict[str, Any] = {"Topics": [{"Name": "u"}, {"Name": "t"}, {"Name": "none"}], "ResponsePartitionLimit": 3}
    pages = []
    while True:
        answer = socketless.ask("DescribeTopicPartitions", 0, body)
        pages.append([(row["Name"], [p["PartitionIndex"] for p in row["Partitions"]]) for row in answer["Topics"]])
        if answer["NextCursor"] is None:
            break
        body["Cursor"] = answer["NextCursor"]
    assert pages == [[("none", []), ("t", [0, 1]), ("u", [0])], [("u", [1, 2])]]


# ---------------------------------------------------------------- offsets


def offset_of(socketless: Any, timestamp: int, version: int = 11) -> Any:
    part = {"PartitionIndex": 0, "Timestamp": timestamp}
    body = {"ReplicaId": -1, "Topics": [{"Name": "t", "Partitions": [part]}]}
    return socketless.ask("ListOffsets", version, body)["Topics"][0]["Partitions"][0]


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(-1, (4, -1)), (-2, (1, -1)), (-3, (2, 30)), (-4, (1, -1)), (-5, (-1, -1)), (15, (2, 30)), (31, (-1, -1))],
)
def test_offsets_by_time(socketless: Any, timestamp: int, expected: tuple[int, int]) -> None:
    for time in (10, 11, 30, 20):
        socketless.produce("t", b"v", timestamp=time)
    socketless.state.cluster.topics["t"].partitions[0].log.delete_before(1)
    row = offset_of(socketless, timestamp)
    assert (row["Offset"], row["Timestamp"]) == expected


def test_offsets_of_the_first_version(socketless: Any) -> None:
    socketless.produce("t", b"v")
    part = {"PartitionIndex": 0, "Timestamp": -1, "MaxNumOffsets": 5}
    body = {"ReplicaId": -1, "Topics": [{"Name": "t", "Partitions": [part]}]}
    assert socketless.ask("ListOffsets", 0, body)["Topics"][0]["Partitions"][0]["OldStyleOffsets"] == [1, 0]


def test_special_times_need_their_version(socketless: Any) -> None:
    assert [offset_of(socketless, -3, version)["ErrorCode"] for version in (6, 7)] == [35, 0]


def test_where_epochs_end(socketless: Any) -> None:
    socketless.produce("t", b"v")
    body = {"Topics": [{"Topic": "t", "Partitions": [{"Partition": 0, "LeaderEpoch": 0}, {"Partition": 9}]}]}
    rows = socketless.ask("OffsetForLeaderEpoch", 4, body)["Topics"][0]["Partitions"]
    assert [(row["ErrorCode"], row["LeaderEpoch"], row["EndOffset"]) for row in rows] == [(0, 0, 1), (3, -1, -1)]


# ---------------------------------------------------------------- topics


def create(socketless: Any, *topics: dict[str, Any], dry: bool = False) -> list[tuple[int, int]]:
    whole = [
        {"NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": [], **topic} for topic in topics
    ]
    answer = socketless.ask("CreateTopics", 7, {"Topics": whole, "ValidateOnly": dry})
    return [(row["ErrorCode"], row["NumPartitions"]) for row in answer["Topics"]]


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ({"Name": "n", "NumPartitions": 3}, (0, 3)),
        ({"Name": "n", "NumPartitions": -1, "ReplicationFactor": -1}, (0, 1)),
        ({"Name": "t"}, (36, -1)),
        ({"Name": "n", "ReplicationFactor": 2}, (38, -1)),
        ({"Name": "n", "Configs": [{"Name": "no", "Value": "1"}]}, (40, -1)),
        ({"Name": "n", "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]}, (42, -1)),
        ({"Name": "n", "NumPartitions": -1, "ReplicationFactor": -1,
          "Assignments": [{"PartitionIndex": 1, "BrokerIds": [1]}]}, (39, -1)),
        ({"Name": "n", "NumPartitions": -1, "ReplicationFactor": -1,
          "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]}, (0, 1)),
    ],
)  # fmt: skip
def test_topics_are_created_or_not(socketless: Any, topic: dict[str, Any], expected: tuple[int, int]) -> None:
    assert create(socketless, topic) == [expected]
    assert ("n" in socketless.state.cluster.topics) == (expected[0] == 0)


def test_each_topic_stands_alone_and_none_twice(socketless: Any) -> None:
    assert create(socketless, {"Name": "a"}, {"Name": "b"}, {"Name": "b"}) == [(0, 1), (42, -1), (42, -1)]
    assert create(socketless, {"Name": "dry"}, dry=True) == [(0, 1)]
    assert sorted(socketless.state.cluster.topics) == ["a", "t"]


def test_configs_come_with_the_topic(socketless: Any) -> None:
    create(socketless, {"Name": "n", "Configs": [{"Name": "retention.ms", "Value": "7"}]})
    assert socketless.state.cluster.configs.topic("n", "retention.ms") == "7"


def test_topics_are_deleted_by_name_and_by_id(socketless: Any) -> None:
    topic = socketless.state.create("u", 1)
    assert socketless.ask("DeleteTopics", 3, {"TopicNames": ["t", "none"], "TimeoutMs": 1})["Responses"] == [
        {"Name": "t", "ErrorCode": 0},
        {"Name": "none", "ErrorCode": 3},
    ]
    rows = socketless.ask("DeleteTopics", 6, {"Topics": [{"TopicId": topic.id}, {"TopicId": UUID(int=1)}]})["Responses"]
    assert [(row["Name"], row["ErrorCode"]) for row in rows] == [("u", 0), (None, 100)]


def test_partitions_are_added(socketless: Any) -> None:
    body = {
        "Topics": [{"Name": "t", "Count": 4, "Assignments": None}, {"Name": "none", "Count": 2, "Assignments": None}]
    }
    dry = socketless.ask("CreatePartitions", 3, {**body, "ValidateOnly": True})
    assert (dry["Results"][0]["ErrorCode"], len(socketless.state.cluster.topics["t"].partitions)) == (0, 2)
    rows = socketless.ask("CreatePartitions", 3, {**body, "ValidateOnly": False})["Results"]
    assert [row["ErrorCode"] for row in rows] == [0, 3]
    assert len(socketless.state.cluster.topics["t"].partitions) == 4


@pytest.mark.parametrize(("offset", "expected"), [(1, (1, 0)), (-1, (3, 0)), (9, (-1, 1)), (-5, (-1, 1))])
def test_records_are_deleted(socketless: Any, offset: int, expected: tuple[int, int]) -> None:
    for _ in range(3):
        socketless.produce("t", b"v")
    body = {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0, "Offset": offset}]}], "TimeoutMs": 1}
    row = socketless.ask("DeleteRecords", 2, body)["Topics"][0]["Partitions"][0]
    assert (row["LowWatermark"], row["ErrorCode"]) == expected


# ---------------------------------------------------------------- configurations


def test_configs_are_changed_and_described(socketless: Any) -> None:
    change = {"Name": "retention.ms", "ConfigOperation": 0, "Value": "5"}
    resources = [
        {"ResourceType": kind, "ResourceName": name, "Configs": [change]} for kind, name in ((2, "t"), (2, "x"))
    ]
    rows = socketless.ask("IncrementalAlterConfigs", 1, {"Resources": resources, "ValidateOnly": False})["Responses"]
    assert [row["ErrorCode"] for row in rows] == [0, 3]
    asked = {"ResourceType": 2, "ResourceName": "t", "ConfigurationKeys": ["retention.ms"]}
    answer = socketless.ask("DescribeConfigs", 4, {"Resources": [asked], "IncludeSynonyms": True})
    (config,) = answer["Results"][0]["Configs"]
    assert (config["Value"], config["ConfigSource"], config["ConfigType"]) == ("5", 1, 5)
    assert [row["Source"] for row in config["Synonyms"]] == [1]


@pytest.mark.parametrize(
    ("kind", "name", "code", "count"),
    [(2, "t", 0, 33), (2, "x", 3, 0), (4, "1", 0, len(known("broker"))), (4, "7", 42, 0), (99, "", 42, 0)],
)
def test_configs_of_what_is_there(socketless: Any, kind: int, name: str, code: int, count: int) -> None:
    asked = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": None}
    row = socketless.ask("DescribeConfigs", 4, {"Resources": [asked]})["Results"][0]
    assert (row["ErrorCode"], len(row["Configs"])) == (code, count)


def test_the_old_way_replaces_all(socketless: Any) -> None:
    resource = {"ResourceType": 2, "ResourceName": "t", "Configs": [{"Name": "segment.ms", "Value": "9"}]}
    socketless.ask("AlterConfigs", 2, {"Resources": [resource], "ValidateOnly": False})
    assert socketless.state.cluster.configs.given == {(2, "t"): {"segment.ms": "9"}}


def test_resources_with_configs(socketless: Any) -> None:
    rows = socketless.ask("ListConfigResources", 1, {"ResourceTypes": [2, 4]})["ConfigResources"]
    assert [(row["ResourceName"], row["ResourceType"]) for row in rows] == [("t", 2), ("1", 4)]


def test_retention_by_time_is_kept_to(socketless: Any) -> None:
    now = socketless.clock.time // 1_000_000
    socketless.produce("t", b"old", timestamp=now - 10)
    socketless.produce("t", b"new", timestamp=now)
    socketless.state.cluster.configs.change(2, "t", [("retention.ms", 0, "5")])
    socketless.state.retain()
    assert socketless.state.cluster.topics["t"].partitions[0].log.start == 1


# ---------------------------------------------------------------- the rest


def test_coordinators(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=3))
    old = socketless.ask("FindCoordinator", 0, {"Key": "g"})
    new = socketless.ask("FindCoordinator", 4, {"KeyType": 0, "CoordinatorKeys": ["g", "h"]})["Coordinators"]
    assert old["NodeId"] == new[0]["NodeId"] == socketless.state.cluster.coordinator("g")
    assert [row["Key"] for row in new] == ["g", "h"]
    assert (
        socketless.ask("FindCoordinator", 6, {"KeyType": 2, "CoordinatorKeys": ["s"]})["Coordinators"][0]["ErrorCode"]
        == 42
    )


def test_an_idempotent_producer_gets_a_fresh_id_whatever_it_had(socketless: Any) -> None:
    def ids(**body: Any) -> tuple[int, int]:
        answer = socketless.ask("InitProducerId", 5, {"TransactionalId": None, **body})
        return answer["ProducerId"], answer["ProducerEpoch"]

    first, second = ids(), ids()
    assert (first[1], second[1], first[0] != second[0]) == (0, 0, True)
    third = ids(ProducerId=first[0], ProducerEpoch=0)
    assert (third[1], third[0] not in (first[0], second[0])) == (0, True)


def test_what_admin_tools_ask_in_passing(socketless: Any) -> None:
    socketless.produce("t", b"v", producer_id=5, producer_epoch=1, base_sequence=0)
    acls = {"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
    assert socketless.ask("DescribeAcls", 3, acls)["ErrorCode"] == 54
    (folder,) = socketless.ask("DescribeLogDirs", 4, {"Topics": None})["Results"]
    assert [row["PartitionSize"] > 0 for row in folder["Topics"][0]["Partitions"]] == [True, False]
    assert socketless.ask("ListPartitionReassignments", 0, {"Topics": None})["Topics"] == []
    asked = {"Topics": [{"Name": "t", "PartitionIndexes": [0, 9]}]}
    rows = socketless.ask("DescribeProducers", 0, asked)["Topics"][0]["Partitions"]
    assert [(row["ErrorCode"], [p["ProducerId"] for p in row["ActiveProducers"]]) for row in rows] == [
        (0, [5]),
        (3, []),
    ]


def test_operations_are_told_of_topics_that_are_missing_too(socketless: Any) -> None:
    asked = {"Topics": [{"Name": "no"}], "AllowAutoTopicCreation": False, "IncludeTopicAuthorizedOperations": True}
    (row,) = socketless.ask("Metadata", 12, asked)["Topics"]
    assert (row["ErrorCode"], row["TopicAuthorizedOperations"] > 0) == (3, True)


def test_leaders_are_elected_back(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    partition = socketless.state.cluster.create("t", 1, 2).partitions[0]
    body = {"ElectionType": 0, "TopicPartitions": [{"Topic": "t", "Partitions": [0, 5]}]}

    def codes() -> list[int]:
        rows = socketless.ask("ElectLeaders", 2, body)["ReplicaElectionResults"][0]["PartitionResult"]
        return [row["ErrorCode"] for row in rows]

    assert codes() == [84, 3]
    socketless.state.cluster.move_leader(partition)
    assert codes() == [0, 3]
    assert (partition.leader, partition.epoch) == (partition.replicas[0], 2)


def test_topics_are_told_by_id_with_an_empty_name_as_java_clients_ask(socketless: Any) -> None:
    known = socketless.state.cluster.topics["t"].id
    (row,) = socketless.ask("Metadata", 12, {"Topics": [{"Name": "", "TopicId": known}]})["Topics"]
    assert (row["ErrorCode"], row["Name"], row["TopicId"], len(row["Partitions"])) == (0, "t", known, 2)
    (row,) = socketless.ask("Metadata", 11, {"Topics": [{"Name": "t", "TopicId": UUID(int=7)}]})["Topics"]
    assert (row["ErrorCode"], row["Name"]) == (0, "t")


@pytest.mark.parametrize(("kind", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_who_looks_for_a_coordinator_makes_its_topic(socketless: Any, kind: int, topic: str) -> None:
    asked = {"KeyType": kind, "CoordinatorKeys": ["k"]}
    for _ in range(2):
        assert socketless.ask("FindCoordinator", 4, asked)["Coordinators"][0]["ErrorCode"] == 0
    (row,) = [row for row in socketless.ask("Metadata", 12, {"Topics": None})["Topics"] if row["IsInternal"]]
    assert (row["Name"], len(row["Partitions"])) == (topic, 50)


def test_log_dirs_of_replicas_stay(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("t", 1),)))
    topics = [{"Name": "t", "Partitions": [0, 9]}, {"Name": "u", "Partitions": [0]}]

    def codes(path: str) -> dict[str, list[int]]:
        answer = socketless.ask("AlterReplicaLogDirs", 2, {"Dirs": [{"Path": path, "Topics": topics}]})
        return {row["TopicName"]: [part["ErrorCode"] for part in row["Partitions"]] for row in answer["Results"]}

    assert codes("/nowhere") == {"t": [57, 57], "u": [57]}
    there = socketless.ask("DescribeLogDirs", 4, {"Topics": None})["Results"][0]["LogDir"]
    assert codes(there) == {"t": [0, 3], "u": [3]}


def test_brokers_are_unregistered(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2, topics=(("t", 2),)))
    cluster = socketless.state.cluster
    answer = socketless.ask("UnregisterBroker", 0, {"BrokerId": 9})
    assert (answer["ErrorCode"], answer["ErrorMessage"]) == (102, "Broker ID 9 is not currently registered")
    assert socketless.ask("UnregisterBroker", 0, {"BrokerId": 2})["ErrorCode"] == 0  # it runs, and registers anew
    assert sorted(cluster.nodes) == [1, 2]
    socketless.state.topology.down(2)
    assert socketless.ask("UnregisterBroker", 0, {"BrokerId": 2})["ErrorCode"] == 0
    assert sorted(cluster.nodes) == [1]
    assert {partition.leader for partition in cluster.topics["t"].partitions} == {1}
