"""Online migration between classic and consumer groups: what the policy allows. Transcripts have the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kwire
from kwire.coordinator.consumer import protocol
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.group import Group

Make = Callable[..., Any]
METADATA = b"\0\0" + kwire.encode("ConsumerProtocolSubscription", 0, {"Topics": ["orders"], "UserData": None})
JOIN_848 = {
    "GroupId": "g", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000,
    "SubscribedTopicNames": ["orders"], "TopicPartitions": [],
}  # fmt: skip


def classic(made: Any) -> str:
    """A stable classic group of one; its member's id."""
    body = {
        "GroupId": "g", "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 10_000, "MemberId": "",
        "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": METADATA}],
    }  # fmt: skip
    member = str(made.get("JoinGroup", 3, body)["MemberId"])
    made.get("SyncGroup", 3, {"GroupId": "g", "GenerationId": 1, "MemberId": member, "Assignments": []})
    return member


@pytest.mark.parametrize(("policy", "kind"), [("disabled", Group), ("downgrade", Group), ("upgrade", ConsumerGroup)])
def test_a_classic_group_is_upgraded_where_the_policy_says_so(lab: Make, policy: str, kind: type) -> None:
    made = lab(group_consumer_migration_policy=policy, group_initial_rebalance_delay_ms=0)
    classic(made)
    answer = made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    assert answer["ErrorCode"] == (0 if kind is ConsumerGroup else 69)
    assert isinstance(made.coordinator.groups["g"], kind)


@pytest.mark.parametrize(("policy", "kind"), [("upgrade", ConsumerGroup), ("bidirectional", Group)])
def test_and_downgraded(lab: Make, policy: str, kind: Any) -> None:
    made = lab(group_consumer_migration_policy=policy, group_initial_rebalance_delay_ms=0)
    member = classic(made)
    made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    made.get("ConsumerGroupHeartbeat", 1, {**JOIN_848, "MemberEpoch": -1})
    group = made.coordinator.groups["g"]
    assert isinstance(group, kind)
    assert list(group.members) == [member]


def test_a_downgrade_follows_when_the_last_one_falls_silent(lab: Make) -> None:
    made = lab(group_initial_rebalance_delay_ms=0, group_consumer_session_timeout_ms=3_000)
    classic(made)
    made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    made.wait(3_000)
    group = made.coordinator.groups["g"]
    assert (str(group.state), group.generation) == ("PreparingRebalance", 2)
    made.wait(3_600_000)
    assert made.coordinator.groups == {}
    assert made.coordinator.due is None


def test_who_waits_in_a_group_that_is_upgraded_is_to_join_again(lab: Make) -> None:
    made = lab(group_initial_rebalance_delay_ms=0)
    member = classic(made)
    body = {
        "GroupId": "g", "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 10_000, "MemberId": "",
        "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": METADATA}],
    }  # fmt: skip
    waiting = made.ask("JoinGroup", 3, body)
    made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    assert made.answer(waiting).body["ErrorCode"] == 27
    assert member in made.coordinator.groups["g"].members


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\1\0\0", b"\0\3" + b"\x7f\xff" * 9])
def test_what_is_no_subscription_and_no_assignment(data: bytes) -> None:
    assert protocol.subscription(data) is None
    assert protocol.assignment(data, {}) is None
