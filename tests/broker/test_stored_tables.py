"""What coordinators hold is in records of their topics, as Kafka's tools read them, and comes back from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.broker.stored_tables import coordinated
from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.errors import KwireError
from kwire.payloads.files import open_file
from kwire.records import build, read_records
from kwire.testing import Broker


def asked(broker: Broker, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    with BrokerConnection.open(Address.parse(broker.address)) as connection:
        return connection.request(api, version, body).body()


def row(broker: Broker, api: str, **part: Any) -> dict[str, Any]:
    """The answer's row for partition 0 of t in the share group g."""
    topic = broker.server.state.cluster.topics["t"].id
    body = {"GroupId": "g", "Topics": [{"TopicId": topic, "Partitions": [{"Partition": 0, **part}]}]}
    found: dict[str, Any] = asked(broker, api, 0 if api.startswith("Read") else 1, body)["Results"][0]["Partitions"][0]
    assert found["ErrorCode"] == 0
    return found


def test_share_groups_and_their_state_come_back(tmp_path: Path) -> None:
    batch = {"FirstOffset": 6, "LastOffset": 7, "DeliveryState": 2, "DeliveryCount": 1}
    with Broker(data=tmp_path, topics={"t": 1}) as broker:
        parts = [{"PartitionIndex": 0, "StartOffset": 5}]
        alter = {"GroupId": "g", "Topics": [{"TopicName": "t", "Partitions": parts}]}
        assert asked(broker, "AlterShareGroupOffsets", 0, alter)["ErrorCode"] == 0
        epoch = row(broker, "ReadShareGroupStateSummary", LeaderEpoch=0)["StateEpoch"]
        written = {"StateEpoch": epoch, "LeaderEpoch": 0, "StartOffset": 5, "DeliveryCompleteCount": 2}
        row(broker, "WriteShareGroupState", **written, StateBatches=[batch])
    with Broker(data=tmp_path) as broker:
        assert [each["GroupId"] for each in asked(broker, "ListGroups", 5, {})["Groups"]] == ["g"]
        (described,) = asked(broker, "ShareGroupDescribe", 1, {"GroupIds": ["g"]})["Groups"]
        assert (described["GroupState"], described["GroupEpoch"]) == ("Empty", epoch)
        found = row(broker, "ReadShareGroupState", LeaderEpoch=0)
        assert (found["StateEpoch"], found["StartOffset"]) == (epoch, 5)
        assert found["StateBatches"] == [batch]
        ask = {"Groups": [{"GroupId": "g", "Topics": [{"TopicName": "t", "Partitions": [0]}]}]}
        (group,) = asked(broker, "DescribeShareGroupOffsets", 0, ask)["Groups"]
        assert group["Topics"][0]["Partitions"][0]["StartOffset"] == 5
        asked(broker, "DeleteGroups", 2, {"GroupsNames": ["g"]})
    with Broker(data=tmp_path) as broker:
        assert asked(broker, "ListGroups", 5, {})["Groups"] == []
    (log,) = tmp_path.glob("__share_group_state-*/*.log")  # a batch for each second that changed something, and gone
    assert "batches of __share_group_state" in (open_file(log.read_bytes(), "log", str(log)).text or "")


def test_streams_groups_come_back(tmp_path: Path) -> None:
    at_once = {"group.streams.initial.rebalance.delay.ms": 0}
    topology = {"Epoch": 0, "Subtopologies": [{"SubtopologyId": "0", "SourceTopics": ["t"]}]}
    join = {"GroupId": "s", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000, "Topology": topology}
    tasks = {"ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": [], "ProcessId": "p", "ClientTags": []}
    offsets = {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 4}]}]}

    def epoch(broker: Broker) -> int:
        (group,) = asked(broker, "ListGroups", 5, {})["Groups"]
        assert group["GroupType"] == "streams"
        (told,) = asked(broker, "StreamsGroupDescribe", 0, {"GroupIds": ["s"]})["Groups"]
        return int(told["GroupEpoch"])

    with Broker(data=tmp_path, topics={"t": 1}, config=at_once) as broker:
        joined = asked(broker, "StreamsGroupHeartbeat", 0, join | tasks)
        assert joined["ErrorCode"] == 0, joined
        commit = {"GroupId": "s", "GenerationIdOrMemberEpoch": joined["MemberEpoch"], "MemberId": "m", **offsets}
        assert "'ErrorCode': 0" in str(asked(broker, "OffsetCommit", 9, commit))
        asked(broker, "StreamsGroupHeartbeat", 0, {"GroupId": "s", "MemberId": "m", "MemberEpoch": -1})
        before = epoch(broker)
    with Broker(data=tmp_path, config=at_once) as broker:
        assert epoch(broker) == before
        again = asked(broker, "StreamsGroupHeartbeat", 0, join | tasks)
        assert again["ErrorCode"] == 0
        assert epoch(broker) > before
        described = asked(broker, "StreamsGroupDescribe", 0, {"GroupIds": ["s"]})
    with Broker(data=tmp_path, config=at_once) as broker:
        assert asked(broker, "StreamsGroupDescribe", 0, {"GroupIds": ["s"]}) == described
        beat = {"GroupId": "s", "MemberId": "m", "MemberEpoch": again["MemberEpoch"]}
        assert asked(broker, "StreamsGroupHeartbeat", 0, beat)["MemberEpoch"] == again["MemberEpoch"]
        asked(broker, "StreamsGroupHeartbeat", 0, {"GroupId": "s", "MemberId": "m", "MemberEpoch": -1})
        gone = asked(broker, "DeleteGroups", 2, {"GroupsNames": ["s"]})
        assert gone["Results"][0]["ErrorCode"] == 0, gone
    with Broker(data=tmp_path) as broker:
        assert asked(broker, "ListGroups", 5, {})["Groups"] == []


def test_consumer_groups_come_back(tmp_path: Path) -> None:
    beat = {"GroupId": "g", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000, "TopicPartitions": []}
    beat["SubscribedTopicNames"] = ["t"]
    with Broker(data=tmp_path, topics={"t": 1}) as broker:
        joined = asked(broker, "ConsumerGroupHeartbeat", 1, beat)
        assert joined["ErrorCode"] == 0, joined
        told = asked(broker, "ConsumerGroupDescribe", 1, {"GroupIds": ["g"]})
    with Broker(data=tmp_path) as broker:
        (group,) = asked(broker, "ListGroups", 5, {})["Groups"]
        assert (group["GroupType"], group["GroupState"]) == ("consumer", "Stable")
        assert asked(broker, "ConsumerGroupDescribe", 1, {"GroupIds": ["g"]}) == told
        alive = {"GroupId": "g", "MemberId": "m", "MemberEpoch": joined["MemberEpoch"]}
        again = asked(broker, "ConsumerGroupHeartbeat", 1, alive)
        assert (again["ErrorCode"], again["MemberEpoch"]) == (0, joined["MemberEpoch"])
        asked(broker, "ConsumerGroupHeartbeat", 1, beat | {"MemberEpoch": -1})
        assert asked(broker, "DeleteGroups", 2, {"GroupsNames": ["g"]})["Results"][0]["ErrorCode"] == 0
    with Broker(data=tmp_path) as broker:
        assert asked(broker, "ListGroups", 5, {})["Groups"] == []


def test_classic_groups_come_back(tmp_path: Path) -> None:
    protocols = [{"Name": "range", "Metadata": b"what it says"}]
    join = {"GroupId": "g", "SessionTimeoutMs": 45_000, "RebalanceTimeoutMs": 60_000, "MemberId": "",
            "ProtocolType": "connect", "Protocols": protocols}  # fmt: skip
    with Broker(data=tmp_path, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        member = asked(broker, "JoinGroup", 3, join)["MemberId"]
        alive = {"GroupId": "g", "GenerationId": 1, "MemberId": member}
        given = [{"MemberId": member, "Assignment": b"what it has"}]
        assert asked(broker, "SyncGroup", 3, {**alive, "Assignments": given})["ErrorCode"] == 0
        told = asked(broker, "DescribeGroups", 5, {"Groups": ["g"]})
    with Broker(data=tmp_path) as broker:
        assert asked(broker, "DescribeGroups", 5, {"Groups": ["g"]}) == told
        assert asked(broker, "Heartbeat", 4, alive)["ErrorCode"] == 0
        offsets = {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 4}]}]}
        commit = {"GroupId": "g", "GenerationIdOrMemberEpoch": 1, "MemberId": member, **offsets}
        assert "'ErrorCode': 0" in str(asked(broker, "OffsetCommit", 9, commit))
        assert asked(broker, "SyncGroup", 3, {**alive, "Assignments": []})["Assignment"] == b"what it has"
        asked(broker, "LeaveGroup", 3, {"GroupId": "g", "Members": [{"MemberId": member}]})
    with Broker(data=tmp_path) as broker:
        (group,) = asked(broker, "ListGroups", 5, {})["Groups"]
        assert (group["GroupState"], group["ProtocolType"]) == ("Empty", "connect")


def test_transactional_ids_come_back(tmp_path: Path) -> None:
    init = {"TransactionalId": "x", "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    topics = [{"Name": "t", "Partitions": [0]}]

    def add(broker: Broker, who: dict[str, Any]) -> int:
        body = {"V3AndBelowTransactionalId": "x", "V3AndBelowProducerId": who["ProducerId"],
                "V3AndBelowProducerEpoch": who["ProducerEpoch"], "V3AndBelowTopics": topics}  # fmt: skip
        (row,) = asked(broker, "AddPartitionsToTxn", 3, body)["ResultsByTopicV3AndBelow"][0]["ResultsByPartition"]
        return int(row["PartitionErrorCode"])

    with Broker(data=tmp_path, topics={"t": 1}) as broker:
        first = asked(broker, "InitProducerId", 5, init)
        assert add(broker, first) == 0
        given = {key: first[key] for key in ("ProducerId", "ProducerEpoch")}
        second = asked(broker, "EndTxn", 5, {"TransactionalId": "x", "Committed": True, **given})
        told = asked(broker, "DescribeTransactions", 0, {"TransactionalIds": ["x"]})
    with Broker(data=tmp_path) as broker:
        assert asked(broker, "DescribeTransactions", 0, {"TransactionalIds": ["x"]}) == told
        assert add(broker, second) == 0
    with Broker(data=tmp_path) as broker:
        (row,) = asked(broker, "DescribeTransactions", 0, {"TransactionalIds": ["x"]})["TransactionStates"]
        assert row["TransactionState"] == "CompleteAbort"
        assert add(broker, second) != 0


def test_a_record_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    beat = {"GroupId": "g", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000, "TopicPartitions": []}
    with Broker(data=tmp_path, topics={"t": 1}) as broker:
        asked(broker, "ConsumerGroupHeartbeat", 1, beat | {"SubscribedTopicNames": ["t"]})
    (log,) = tmp_path.glob("__consumer_offsets-3/*.log")
    written = log.read_bytes()
    offset = sum(len(batch.records) for batch in read_records(written))
    log.write_bytes(written + build([(b"\0\3\0\1g", b"\0\0\0")], base_offset=offset))
    where = f"__consumer_offsets-3, offset {offset}: ConsumerGroupMetadataValue v0: Epoch"
    with pytest.raises(KwireError, match=where), Broker(data=tmp_path):
        pass


def test_groups_go_where_kafka_looks_for_them() -> None:
    assert coordinated("g", 50) == 3
    assert coordinated("orders", 50) == 31  # a hash below zero
    assert coordinated("polygenelubricants", 50) == 0  # the lowest of all
