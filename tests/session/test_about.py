"""What an exchange is about, read from the request."""

from __future__ import annotations

from typing import Any

import pytest

CASES = [
    ("Metadata", 9, {"Topics": [{"Name": "a"}, {"Name": "b"}]}, {"topics": {"a": [], "b": []}}),
    ("Metadata", 9, {"Topics": None}, {"words": ["all topics"]}),
    ("Metadata", 0, {"Topics": []}, {"words": ["all topics"]}),
    ("Metadata", 9, {"Topics": []}, {"words": ["no topics"]}),
    ("Produce", 9, {"Acks": 1, "TransactionalId": "tx", "TopicData": [
        {"Name": "a", "PartitionData": [{"Index": 1}, {"Index": 4}]}, {"Name": "b", "PartitionData": [{"Index": 0}]}]},
     {"topics": {"a": [1, 4], "b": [0]}, "transactions": ["tx"]}),
    ("Fetch", 12, {"SessionEpoch": -1, "Topics": [{"Topic": "a", "Partitions": [{"Partition": 3}]}]},
     {"topics": {"a": [3]}}),
    ("ListOffsets", 6, {"Topics": [{"Name": "a", "Partitions": [{"PartitionIndex": 2}]}]}, {"topics": {"a": [2]}}),
    ("Heartbeat", 4, {"GroupId": "g", "GenerationId": 3, "MemberId": "m-1"},
     {"groups": ["g"], "generation": 3, "member": "m-1"}),
    ("ConsumerGroupHeartbeat", 0, {"GroupId": "g", "MemberId": "m", "MemberEpoch": 5},
     {"groups": ["g"], "epoch": 5, "member": "m"}),
    ("FindCoordinator", 3, {"Key": "g", "KeyType": 0}, {"groups": ["g"]}),
    ("FindCoordinator", 4, {"CoordinatorKeys": ["t1", "t2"], "KeyType": 1}, {"transactions": ["t1", "t2"]}),
    ("FindCoordinator", 6, {"CoordinatorKeys": ["g:1:2"], "KeyType": 2}, {"words": ["share g:1:2"]}),
    ("FindCoordinator", 0, {"Key": "g"}, {"groups": ["g"]}),
    ("ApiVersions", 3, {"ClientSoftwareName": "kwire", "ClientSoftwareVersion": "1"}, {"words": ["kwire 1"]}),
    ("ApiVersions", 0, {}, {}),
    ("DescribeConfigs", 4, {"Resources": [{"ResourceType": 2, "ResourceName": "a"},
                                          {"ResourceType": 4, "ResourceName": "1"},
                                          {"ResourceType": 4, "ResourceName": ""},
                                          {"ResourceType": 99, "ResourceName": "x"}]},
     {"topics": {"a": []}, "words": ["broker 1", "broker", "resource x"]}),
    ("DeleteGroups", 2, {"GroupsNames": ["g1", "g2", "g1"]}, {"groups": ["g1", "g2"]}),
    ("CreateTopics", 7, {"Topics": [{"Name": "new"}]}, {"topics": {"new": []}}),
    ("SaslHandshake", 1, {"Mechanism": "PLAIN"}, {"words": ["PLAIN"]}),
    ("Vote", 2, {"VoterId": 3, "Topics": [{"TopicName": "__cluster_metadata", "Partitions": [
        {"PartitionIndex": 0, "ReplicaEpoch": 7, "ReplicaId": 1, "PreVote": True}]}]},
     {"topics": {"__cluster_metadata": [0]}, "words": ["pre-vote for 1 epoch 7: asked of 3"]}),
    ("BeginQuorumEpoch", 1, {"VoterId": 3, "Topics": [{"TopicName": "__cluster_metadata", "Partitions": [
        {"PartitionIndex": 0, "LeaderId": 1, "LeaderEpoch": 8}]}]},
     {"topics": {"__cluster_metadata": [0]}, "words": ["leader 1 epoch 8, told to 3"]}),
    ("EndQuorumEpoch", 0, {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [
        {"PartitionIndex": 0, "LeaderId": 2, "LeaderEpoch": 7, "PreferredSuccessors": [1, 3]}]}]},
     {"topics": {"__cluster_metadata": [0]}, "words": ["leader 2 ends epoch 7, prefers 1 3"]}),
]  # fmt: skip
NOTHING: dict[str, Any] = {
    "topics": {},
    "groups": [],
    "transactions": [],
    "generation": None,
    "epoch": None,
    "member": None,
    "words": [],
}


@pytest.mark.parametrize(("api", "version", "body", "said"), CASES)
def test_what_a_request_is_about(
    api: str, version: int, body: dict[str, Any], said: dict[str, Any], traffic: Any
) -> None:
    traffic.connection().send(traffic.request(api, version, body))
    (exchange,) = traffic.read().exchanges
    found = {name: getattr(exchange.about, name) for name in NOTHING}
    assert found == NOTHING | said


def test_what_cannot_be_decoded_is_about_nothing(traffic: Any) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 3)).answer(traffic.response("Heartbeat", 3))
    tcp.send(traffic.request(3, 60, b"xx", 2)).send(traffic.request(200, 1, b"xx", 3))
    for exchange in traffic.read().exchanges[1:]:
        assert {name: getattr(exchange.about, name) for name in NOTHING} == NOTHING
