"""ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]
HEARTBEAT = {
    "GroupId": "c",
    "MemberId": "m",
    "MemberEpoch": 0,
    "InstanceId": None,
    "RackId": None,
    "RebalanceTimeoutMs": 60_000,
    "SubscribedTopicNames": ["orders"],
    "SubscribedTopicRegex": None,
    "ServerAssignor": None,
    "TopicPartitions": [],
}


@pytest.fixture
def made(lab: Make) -> Any:
    """g: classic and stable; c: a consumer group; e: empty, with offsets."""
    made = lab()
    made.stable("a", GroupInstanceId="i")
    assert made.get("ConsumerGroupHeartbeat", 1, HEARTBEAT)["ErrorCode"] == 0
    made.commit(GroupId="e")
    return made


def listed(made: Any, version: int = 5, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
    groups = made.get("ListGroups", version, {"StatesFilter": list(states), "TypesFilter": list(types)})["Groups"]
    return [group["GroupId"] for group in groups]


def test_a_listing_has_protocol_state_and_type(made: Any) -> None:
    groups = made.get("ListGroups", 5, {"StatesFilter": [], "TypesFilter": []})["Groups"]
    assert [tuple(group.values()) for group in groups] == [
        ("g", "consumer", "Stable", "classic"),
        ("c", "consumer", "Stable", "consumer"),
        ("e", "", "Empty", "classic"),
    ]
    assert made.get("ListGroups", 0, {})["Groups"][0] == {"GroupId": "g", "ProtocolType": "consumer"}


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        (("Stable",), (), ["g", "c"]),
        (("stable", " EMPTY "), (), ["g", "c", "e"]),
        (("Dead",), (), []),
        ((), ("Classic",), ["g", "e"]),
        ((), ("consumer",), ["c"]),
        ((), ("share", "nonsense"), []),
        (("Empty",), ("classic",), ["e"]),
    ],
)
def test_a_listing_is_filtered(made: Any, states: tuple[str, ...], types: tuple[str, ...], found: list[str]) -> None:
    assert listed(made, 5, states, types) == found


def test_only_groups_that_are_ours_and_may_be_seen_are_listed(made: Any) -> None:
    made.coordinator.owns = lambda group: group != "g"
    made.coordinator.may = lambda _, group: group != "e"
    assert listed(made) == ["c"]


@pytest.mark.parametrize(("version", "error"), [(5, 0), (6, 69)])
def test_groups_that_are_not_classic_are_dead(made: Any, version: int, error: int) -> None:
    body = {"Groups": ["h", "c"], "IncludeAuthorizedOperations": True}
    groups = made.get("DescribeGroups", version, body)["Groups"]
    assert [(each["GroupId"], each["GroupState"], each["ErrorCode"]) for each in groups] == [
        ("h", "Dead", error),
        ("c", "Dead", error),
    ]
    if version == 6:
        assert [each["ErrorMessage"] for each in groups] == ["there is no group h", "group c is no classic group"]


def test_a_stable_group_shows_what_its_members_said(made: Any) -> None:
    (group,) = made.get("DescribeGroups", 5, {"Groups": ["g"], "IncludeAuthorizedOperations": True})["Groups"]
    assert group == {
        "ErrorCode": 0,
        "GroupId": "g",
        "GroupState": "Stable",
        "ProtocolType": "consumer",
        "ProtocolData": "range",
        "Members": [
            {
                "MemberId": "a-1" if "a-1" in made.group.members else "i-1",
                "GroupInstanceId": "i",
                "ClientId": "a",
                "ClientHost": "/127.0.0.1",
                "MemberMetadata": b"r",
                "MemberAssignment": b"i-1",
            }
        ],
        "AuthorizedOperations": 3400,
    }


@pytest.mark.parametrize(("era", "assignment", "operations"), [((4, 3), b"a-1", 3400), ((3, 7), b"", 328)])
def test_a_rebalancing_group_shows_less(lab: Make, era: tuple[int, int], assignment: bytes, operations: int) -> None:
    made = lab(era=era)
    made.stable("a")
    made.join(version=3, client="b")
    (group,) = made.get("DescribeGroups", 5, {"Groups": ["g"], "IncludeAuthorizedOperations": True})["Groups"]
    first = next(member for member in group["Members"] if member["MemberId"] == "a-1")
    assert (group["GroupState"], group["ProtocolData"]) == ("PreparingRebalance", "")
    assert (first["MemberMetadata"], first["MemberAssignment"]) == (b"", assignment)
    assert group["AuthorizedOperations"] == operations


def test_a_consumer_group_is_described(made: Any) -> None:
    body = {"GroupIds": ["c", "g", "h"], "IncludeAuthorizedOperations": False}
    groups = made.get("ConsumerGroupDescribe", 1, body)["Groups"]
    assert [(each["GroupId"], each["GroupState"], each["ErrorCode"], each["ErrorMessage"]) for each in groups] == [
        ("c", "Stable", 0, None),
        ("g", "", 69, "group g is no consumer group"),
        ("h", "", 69, "there is no group h"),
    ]
    assert [member["MemberId"] for member in groups[0]["Members"]] == ["m"]


def test_only_empty_groups_are_deleted(made: Any) -> None:
    names = ["g", "c", "e", "h", "e"]
    results = made.get("DeleteGroups", 3, {"GroupsNames": names})["Results"]
    assert [(each["GroupId"], each["ErrorCode"]) for each in results] == [("g", 68), ("c", 68), ("e", 0), ("h", 69)]
    assert results[0]["ErrorMessage"] == "group g is Stable and has members"
    assert listed(made) == ["g", "c"]
    assert not made.coordinator.offsets.holds("e")
    assert made.events("dead")[-1].group == "e"


@pytest.mark.parametrize(
    ("api", "version", "field", "answers"),
    [
        ("DescribeGroups", 5, "Groups", "Groups"),
        ("ConsumerGroupDescribe", 1, "GroupIds", "Groups"),
        ("DeleteGroups", 2, "GroupsNames", "Results"),
    ],
)
def test_the_gates_are_asked_about_each_group(made: Any, api: str, version: int, field: str, answers: str) -> None:
    made.coordinator.may = lambda _, group: group != "g"
    made.coordinator.owns = lambda group: group != "c"
    made.coordinator.loading = {"e"}
    body = {field: ["g", "c", "e"], "IncludeAuthorizedOperations": True}
    answer = made.answer(made.ask(api, version, body))
    assert [each["ErrorCode"] for each in answer.body[answers]] == [30, 16, 14]
    assert answer.check.error == 30
