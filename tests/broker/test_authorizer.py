"""Rights in front of the handlers. What real brokers answer to who lacks them is in the transcript `denied`."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.acls import (
    ALL,
    ALLOW,
    CLUSTER,
    CREATE,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    THE_CLUSTER,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Acl,
)  # fmt: skip
from kwire.broker.apis import served
from kwire.broker.authorizer import RIGHTS
from kwire.broker.context import BrokerSettings

OPEN = {
    "ApiVersions",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "SaslHandshake",
    "SaslAuthenticate",
    "DescribeCluster",
} | {  # tokens ask for rights themselves
    f"{act}DelegationToken" for act in ("Create", "Renew", "Expire", "Describe")
}


@pytest.fixture
def guarded(make_socketless: Any) -> Any:
    """A broker with an authorizer: topics t1 and t2; who asks is ANONYMOUS, and no super user."""
    return make_socketless(BrokerSettings(topics=(("t1", 1), ("t2", 1)), super_users=("root",)))


def allow(socketless: Any, kind: int, name: str, operation: int, pattern: int = LITERAL) -> None:
    socketless.state.acls.add(Acl(kind, name, pattern, "User:ANONYMOUS", "*", operation, ALLOW))


def test_each_api_needs_rights_or_is_open_on_purpose() -> None:
    assert set(served()) - set(RIGHTS) == OPEN


def test_who_has_no_rights_sees_nothing(guarded: Any) -> None:
    assert guarded.ask("Metadata", 12, {"Topics": None})["Topics"] == []
    (row,) = guarded.ask("Metadata", 12, {"Topics": [{"Name": "t1"}]})["Topics"]
    assert (row["ErrorCode"], row["Name"], row["Partitions"]) == (29, "t1", [])
    assert guarded.produce("t1", b"v")["ErrorCode"] == 29
    filters = {"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
    assert guarded.ask("DescribeAcls", 3, filters)["ErrorCode"] == 31
    assert guarded.ask("InitProducerId", 4, {"TransactionalId": None})["ErrorCode"] == 31


def test_rights_open_one_thing_beside_another(guarded: Any) -> None:
    allow(guarded, TOPIC, "t1", WRITE)
    allow(guarded, TOPIC, "t1", READ)
    assert guarded.produce("t1", b"v")["ErrorCode"] == 0
    body = {**guarded.fetch_body("t1"), "MaxWaitMs": 0}
    body["Topics"] = [{**body["Topics"][0], "Topic": name} for name in ("t1", "t2")]
    rows = guarded.ask("Fetch", 11, body)["Responses"]
    assert {row["Topic"]: row["Partitions"][0]["ErrorCode"] for row in rows} == {"t1": 0, "t2": 29}
    assert [row["Name"] for row in guarded.ask("Metadata", 12, {"Topics": None})["Topics"]] == ["t1"]
    assert guarded.ask("InitProducerId", 4, {"TransactionalId": None})["ErrorCode"] == 0


def test_topics_are_made_by_who_may(guarded: Any) -> None:
    def asked(*names: str, create: bool = True) -> dict[str, int]:
        body = {"Topics": [{"Name": name} for name in names], "AllowAutoTopicCreation": create}
        return {row["Name"]: row["ErrorCode"] for row in guarded.ask("Metadata", 12, body)["Topics"]}

    allow(guarded, TOPIC, "new", READ)
    allow(guarded, TOPIC, "mine", READ)
    allow(guarded, TOPIC, "mine", CREATE)
    assert asked("new", "mine") == {"new": 29, "mine": 0}
    assert asked("new", create=False) == {"new": 3}
    allow(guarded, CLUSTER, THE_CLUSTER, CREATE)
    assert asked("new") == {"new": 0}


def test_an_answer_that_comes_later_is_guarded_too(guarded: Any) -> None:
    allow(guarded, GROUP, "g", READ, PREFIXED)
    join = {
        "GroupId": "g1",
        "SessionTimeoutMs": 10_000,
        "RebalanceTimeoutMs": 1_000,
        "MemberId": "",
        "ProtocolType": "c",
    }
    join["Protocols"] = [{"Name": "p", "Metadata": b""}]
    replies = guarded.send("JoinGroup", 2, join)
    guarded.clock.run(2_000)
    assert guarded.body("JoinGroup", 2, replies[0])["ErrorCode"] == 0
    assert [row["GroupId"] for row in guarded.ask("ListGroups", 4, {"StatesFilter": []})["Groups"]] == ["g1"]


def test_one_topic_without_rights_stops_a_transactions_others(guarded: Any) -> None:
    allow(guarded, TRANSACTIONAL_ID, "x", ALL)
    allow(guarded, TOPIC, "t1", WRITE)
    got = guarded.ask("InitProducerId", 4, {"TransactionalId": "x", "TransactionTimeoutMs": 1000})
    who = {"V3AndBelowTransactionalId": "x", "V3AndBelowProducerId": got["ProducerId"], "V3AndBelowProducerEpoch": 0}
    topics = [{"Name": name, "Partitions": [0]} for name in ("t1", "t2")]
    rows = guarded.ask("AddPartitionsToTxn", 3, {**who, "V3AndBelowTopics": topics})["ResultsByTopicV3AndBelow"]
    errors = {row["Name"]: row["ResultsByPartition"][0]["PartitionErrorCode"] for row in rows}
    assert errors == {"t1": 55, "t2": 29}


def test_rules_by_the_protocol(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("t", 1),), super_users=("ANONYMOUS",)))
    rule = {"ResourceType": 2, "ResourceName": "t", "ResourcePatternType": 3, "Principal": "User:ann", "Host": "*"}
    rule |= {"Operation": 3, "PermissionType": 3}
    made = socketless.ask("CreateAcls", 3, {"Creations": [rule, rule, {**rule, "ResourceName": ""}]})["Results"]
    assert [row["ErrorCode"] for row in made] == [0, 0, 42]
    wanted: dict[str, Any] = {"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
    wanted |= {"ResourceNameFilter": None, "PrincipalFilter": None, "HostFilter": None}
    (found,) = socketless.ask("DescribeAcls", 3, wanted)["Resources"]
    assert (found["ResourceName"], [acl["Principal"] for acl in found["Acls"]]) == ("t", ["User:ann"])
    (gone,) = socketless.ask("DeleteAcls", 3, {"Filters": [wanted]})["FilterResults"]
    assert [acl["ResourceName"] for acl in gone["MatchingAcls"]] == ["t"]
    assert socketless.ask("DescribeAcls", 3, wanted)["Resources"] == []
    (reply,) = socketless.send("DescribeAcls", 3, {**wanted, "Operation": 0})
    assert reply.close == "a filter of ACLs with an element that is UNKNOWN"
