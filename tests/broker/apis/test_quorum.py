"""DescribeQuorum and UpdateFeatures: voters, and levels that are told by ApiVersions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kwire.broker.context import BrokerSettings


def test_the_quorum(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=3))
    asked = {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]}
    answer = socketless.ask("DescribeQuorum", 2, asked)
    row = answer["Topics"][0]["Partitions"][0]
    assert (row["LeaderId"], [voter["ReplicaId"] for voter in row["CurrentVoters"]]) == (1, [1, 2, 3])
    assert [node["NodeId"] for node in answer["Nodes"]] == [1, 2, 3]
    asked = {"Topics": [{"TopicName": "t", "Partitions": [{"PartitionIndex": 0}]}]}
    assert socketless.ask("DescribeQuorum", 1, asked)["Topics"][0]["Partitions"][0]["ErrorCode"] == 3


def test_features_are_set_and_told(socketless: Any) -> None:
    def update(name: str, level: int, kind: int = 1, dry: bool = False, version: int = 2) -> Any:
        updates = [{"Feature": name, "MaxVersionLevel": level, "UpgradeType": kind, "AllowDowngrade": kind > 1}]
        return socketless.ask("UpdateFeatures", version, {"FeatureUpdates": updates, "ValidateOnly": dry})

    def told() -> tuple[int, Any]:
        answer = socketless.ask("ApiVersions", 4, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"})
        levels = {row["Name"]: row["MaxVersionLevel"] for row in answer["FinalizedFeatures"]}
        return answer["FinalizedFeaturesEpoch"], levels.get("transaction.version")

    assert told() == (1, 2)
    assert update("transaction.version", 1)["ErrorCode"] == 95
    assert update("transaction.version", 1, 2, dry=True)["ErrorCode"] == 0
    assert told() == (1, 2)
    assert update("transaction.version", 0, 2)["ErrorCode"] == 0
    assert told() == (2, None)
    assert update("transaction.version", 2, 2)["ErrorCode"] == 95
    for wrong in (("x", 1), ("transaction.version", 3), ("metadata.version", 7, 2), ("kraft.version", 0, 3)):
        assert update(*wrong)["ErrorCode"] == 95
    assert update("transaction.version", 9, version=1)["Results"][0]["ErrorCode"] == 95
    assert update("transaction.version", 1, version=0)["Results"][0]["ErrorCode"] == 0
    assert told() == (3, 1)


def test_every_feature_that_is_told_of_can_be_set(socketless: Any) -> None:
    def groups() -> int:
        body = {"GroupId": "g", "MemberEpoch": 0, "RebalanceTimeoutMs": 1000, "SubscribedTopicNames": ["t"]}
        error: int = socketless.ask("ConsumerGroupHeartbeat", 0, {**body, "TopicPartitions": [], "MemberId": ""})[
            "ErrorCode"
        ]
        return error

    assert groups() == 0
    answer = socketless.ask("ApiVersions", 4, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"})
    for row in answer["SupportedFeatures"]:
        if row["Name"] in ("metadata.version", "kraft.version"):  # which no cluster takes back
            continue
        for level, kind in ((row["MinVersion"], 2), (row["MaxVersion"], 1)):
            update = {"Feature": row["Name"], "MaxVersionLevel": level, "UpgradeType": kind}
            assert socketless.ask("UpdateFeatures", 2, {"FeatureUpdates": [update]})["ErrorCode"] == 0
            assert (groups() == 35) == (update["Feature"] == "group.version" and level == 0)
    again = socketless.ask("ApiVersions", 4, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"})
    assert again["FinalizedFeatures"] == answer["FinalizedFeatures"]


def test_voters_come_and_go(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    cluster = socketless.state.cluster
    second = {"VoterId": 2, "VoterDirectoryId": cluster.nodes[2].directory}
    stranger = {"VoterId": 5, "VoterDirectoryId": UUID(int=5)}

    def voters() -> tuple[list[int], list[int]]:
        asked = {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]}
        row = socketless.ask("DescribeQuorum", 2, asked)["Topics"][0]["Partitions"][0]
        first, others = row["CurrentVoters"], row["Observers"]
        return [each["ReplicaId"] for each in first], [each["ReplicaId"] for each in others]

    def remove(voter: Any, cluster_id: str | None = None) -> Any:
        answer = socketless.ask("RemoveRaftVoter", 0, {"ClusterId": cluster_id, **voter})
        return answer["ErrorCode"], answer["ErrorMessage"]

    def add(voter: Any, listeners: tuple[str, ...] = ("CONTROLLER",)) -> int:
        rows = [{"Name": name, "Host": "h", "Port": 1} for name in listeners]
        body = {"ClusterId": cluster.id, "TimeoutMs": 1, **voter, "Listeners": rows, "AckWhenCommitted": True}
        code: int = socketless.ask("AddRaftVoter", 1, body)["ErrorCode"]
        return code

    assert remove(second, "x") == (104, f'The given id "x" doesn\'t match the cluster id "{cluster.id}"')
    assert remove(stranger)[0] == 127
    assert remove({**second, "VoterDirectoryId": UUID(int=2)})[0] == 127
    assert (add(second), add(stranger), add(stranger, ())) == (126, 7, 42)
    assert remove(second) == (0, None)
    assert voters() == ([1], [2])
    assert remove({"VoterId": 1, "VoterDirectoryId": cluster.nodes[1].directory})[0] == 42
    assert add(second) == 0
    assert voters() == ([1, 2], [])


def test_old_versions_tell_of_no_feature_that_begins_at_0(socketless: Any) -> None:
    """KAFKA-17492: older clients take such a range for broken, and their requests fail."""
    answer = socketless.ask("ApiVersions", 3, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"})
    assert [row["Name"] for row in answer["SupportedFeatures"]] == ["metadata.version"]
    assert "group.version" in [row["Name"] for row in answer["FinalizedFeatures"]]
