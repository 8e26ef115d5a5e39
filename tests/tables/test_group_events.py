"""Events of groups that columns and bodies read one by one must give alike: every API in its oldest and newest form."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

COUNT = 40
FIRST = UUID(int=7 << 64 | 5)
EVENTS: list[tuple[str, int, Any, Any]] = [
    ("Heartbeat", 0, {"GroupId": "g", "GenerationId": -1, "MemberId": ""}, {"ErrorCode": 25}),
    ("Heartbeat", 4, {"GroupId": "g", "GenerationId": 3, "MemberId": "m", "GroupInstanceId": "i"}, {}),
    ("JoinGroup", 0, {"GroupId": "g", "SessionTimeoutMs": 5, "MemberId": "m"}, {"GenerationId": -1, "ErrorCode": 79}),
    (
        "JoinGroup", 9, {"GroupId": "g", "SessionTimeoutMs": 5, "RebalanceTimeoutMs": 6, "GroupInstanceId": ""},
        {
            "GenerationId": 4, "ProtocolName": "range", "Leader": "m", "MemberId": "m",
            "Members": [{"MemberId": "m", "Metadata": b""}, {"MemberId": "n", "Metadata": b""}],
        },
    ),
    ("SyncGroup", 3, {"GroupId": "g", "GenerationId": 3, "MemberId": "m"}, {"Assignment": b""}),
    ("SyncGroup", 5, {"GroupId": "", "GenerationId": 3, "ProtocolName": "range"}, {"ProtocolName": None}),
    ("LeaveGroup", 1, {"GroupId": "g", "MemberId": "m"}, {}),
    ("LeaveGroup", 4, {"GroupId": "g", "Members": [{"MemberId": "m"}, {"MemberId": "", "GroupInstanceId": "i"}]}, {}),
    ("LeaveGroup", 4, {"GroupId": "g", "Members": []}, {"ErrorCode": 25}),
    ("ConsumerGroupHeartbeat", 0, {"GroupId": "g", "MemberEpoch": 0}, {"MemberId": "new", "MemberEpoch": 1}),
    (
        "ConsumerGroupHeartbeat", 1, {"GroupId": "g", "MemberId": "m", "MemberEpoch": 5, "InstanceId": ""},
        {"MemberEpoch": 6, "Assignment": {"TopicPartitions": [{"TopicId": FIRST, "Partitions": [0, 1]}]}},
    ),
    ("ShareGroupHeartbeat", 1, {"GroupId": "g", "MemberId": "m", "MemberEpoch": -1}, {"MemberEpoch": -1}),
    ("StreamsGroupHeartbeat", 0, {"GroupId": "g", "MemberId": "m", "InstanceId": "i"}, {"MemberId": "m"}),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "asked", "answer"), EVENTS, ids=[f"{api}-{v}" for api, v, *_ in EVENTS])
def test_events_of_groups(api: str, version: int, asked: Any, answer: Any, made: Any) -> None:
    found = made(api, version, (asked, answer), (asked, {}))["group_events"]
    assert {row["group"] for row in found} == {asked["GroupId"]}
    assert len(found) == COUNT * max(len(asked.get("Members") or ()), 1)
