"""Committed offsets: who may commit, what is kept, what is fetched, in every version."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.types import ClientIdentity, KnownTopic

Make = Callable[..., Any]
UNKNOWN = UUID(int=99)


def part(index: int = 0, offset: int = 7, metadata: str | None = "m") -> dict[str, Any]:
    return {
        "PartitionIndex": index,
        "CommittedOffset": offset,
        "CommittedLeaderEpoch": 3,
        "CommittedMetadata": metadata,
    }


def error(answer: Any) -> int:
    return int(answer.body["Topics"][0]["Partitions"][0]["ErrorCode"])


def fetched(made: Any, version: int = 8, group: str = "g", topics: Any = None, stable: bool = False) -> Any:
    body: dict[str, Any] = {"RequireStable": stable}
    if version >= 8:
        body["Groups"] = [{"GroupId": group, "Topics": topics}]
        return made.get("OffsetFetch", version, body)["Groups"][0]
    return made.get("OffsetFetch", version, {**body, "GroupId": group, "Topics": topics})


# state of the group, member, generation, version: error
COMMITS = [
    ("none", "", -1, 9, 0),
    ("none", "a-1", 1, 9, 69),
    ("none", "a-1", 1, 8, 22),
    ("Empty", "", -1, 9, 0),
    ("Empty", "a-1", 2, 9, 25),
    ("Stable", "a-1", 1, 9, 0),
    ("Stable", "a-1", 0, 9, 22),
    ("Stable", "ghost", 1, 9, 25),
    ("Stable", "", -1, 9, 25),
    ("Stable", "a-1", -1, 9, 22),
    ("PreparingRebalance", "a-1", 1, 9, 0),
    ("CompletingRebalance", "a-1", 1, 9, 27),
    ("CompletingRebalance", "a-1", 0, 9, 22),
    ("CompletingRebalance", "ghost", 1, 9, 25),
    ("Stable", "", -1, 0, 0),  # to ZooKeeper, in its day
]


@pytest.mark.parametrize(("state", "member", "generation", "version", "code"), COMMITS)
def test_who_may_commit(lab: Make, state: str, member: str, generation: int, version: int, code: int) -> None:
    made = lab().in_state(state)
    answer = made.commit(member, generation, version)
    assert error(answer) == answer.check.error == code
    assert (made.coordinator.offsets.holds("g")) == (code == 0)
    assert len(made.events("committed")) == (code == 0)


@pytest.mark.parametrize(("era", "code"), [((4, 3), 69), ((3, 9), 22)])
def test_a_group_that_is_not_there_before_4_0(lab: Make, era: tuple[int, int], code: int) -> None:
    assert error(lab(era=era).commit("a-1", 1, 9)) == code


@pytest.mark.parametrize(("era", "code"), [((4, 3), 25), ((2, 3), 27)])
def test_completing_was_asked_first_before_2_4(lab: Make, era: tuple[int, int], code: int) -> None:
    assert error(lab(era=era).in_state("CompletingRebalance").commit("ghost", 1)) == code


@pytest.mark.parametrize(("member", "instance", "code"), [("i-1", "i", 0), ("x", "i", 82), ("i-1", "j", 25)])
def test_static_members_commit(lab: Make, member: str, instance: str, code: int) -> None:
    made = lab()
    made.stable("a", GroupInstanceId="i")
    assert error(made.commit(member, 1, GroupInstanceId=instance)) == code


def test_a_commit_keeps_a_member_alive(lab: Make) -> None:
    made = lab().in_state("Stable")
    made.wait(9_000)
    made.commit("a-1", 1)
    made.wait(9_000)
    assert made.group.members["a-1"].heard == "OffsetCommit"


@pytest.mark.parametrize("version", range(11))
def test_commit_and_fetch_in_every_version(lab: Make, version: int) -> None:
    made = lab()
    topic = {"TopicId": UUID(int=1)} if version >= 10 else {"Name": "orders"}
    answer = made.commit(version=version, Topics=[{**topic, "Partitions": [part()]}])
    assert answer.body["Topics"] == [{**topic, "Partitions": [{"PartitionIndex": 0, "ErrorCode": 0}]}]
    body = fetched(made, version, topics=[{**topic, "PartitionIndexes": [0, 1]}])
    epoch = {"CommittedLeaderEpoch": 3} if version >= 5 else {}
    absent = {"CommittedLeaderEpoch": -1} if version >= 5 else {}
    assert body["Topics"] == [
        {
            **topic,
            "Partitions": [
                {"PartitionIndex": 0, "CommittedOffset": 7, **epoch, "Metadata": "m", "ErrorCode": 0},
                {"PartitionIndex": 1, "CommittedOffset": -1, **absent, "Metadata": "", "ErrorCode": 0},
            ],
        }
    ]
    assert body.get("ErrorCode") == (0 if version >= 2 else None)


@pytest.mark.parametrize(
    ("version", "topic", "index", "code"),
    [
        (9, {"Name": "ghost"}, 0, 3),
        (9, {"Name": "orders"}, 4, 3),
        (9, {"Name": "orders"}, -1, 3),
        (10, {"TopicId": UNKNOWN}, 0, 100),
        (10, {"TopicId": UUID(int=2)}, 2, 3),
    ],
)
def test_partitions_that_are_not_there(lab: Make, version: int, topic: dict[str, Any], index: int, code: int) -> None:
    made = lab().in_state("Stable")
    answer = made.commit("ghost", 5, version, Topics=[{**topic, "Partitions": [part(index)]}])
    assert error(answer) == code


def test_topics_are_judged_one_by_one(lab: Make) -> None:
    made = lab().in_state("Stable")
    topics = [
        {"Name": "orders", "Partitions": [part(0), part(9), part(1, metadata="x" * 4097), part(2, metadata=None)]},
        {"Name": "ghost", "Partitions": [part(0)]},
    ]
    body = made.commit("a-1", 1, Topics=topics).body
    assert [[each["ErrorCode"] for each in topic["Partitions"]] for topic in body["Topics"]] == [[0, 3, 12, 0], [3]]
    assert made.events("committed")[0].facts == {
        "offsets": {"orders-0": 7, "orders-2": 7},
        "transactional": False,
    }
    assert [each["Name"] for each in fetched(made)["Topics"]] == ["orders"]


def test_without_topics_any_will_do() -> None:
    coordinator = Coordinator()
    topic = {"TopicId": UNKNOWN, "Partitions": [part()]}
    body = {"GroupId": "g", "GenerationIdOrMemberEpoch": -1, "MemberId": "", "Topics": [topic]}
    coordinator.ask("OffsetCommit", 10, body, ClientIdentity(), 0)
    coordinator.ask("OffsetFetch", 10, {"Groups": [{"GroupId": "g", "Topics": None}]}, ClientIdentity(), 0)
    committed, everything = coordinator.answers()
    assert error(committed) == 0
    assert everything.body["Groups"][0]["Topics"][0]["Partitions"][0]["CommittedOffset"] == 7


def test_a_group_that_is_not_there_has_no_offsets(lab: Make) -> None:
    made = lab()
    assert fetched(made) == {"GroupId": "g", "Topics": [], "ErrorCode": 0}
    body = fetched(made, topics=[{"Name": "ghost", "PartitionIndexes": [0]}])
    assert body["Topics"][0]["Partitions"][0]["CommittedOffset"] == -1
    body = fetched(made, 10, topics=[{"TopicId": UNKNOWN, "PartitionIndexes": [0]}])
    assert body["Topics"][0]["Partitions"][0]["ErrorCode"] == 100


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1, {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0, "ErrorCode": 16}]}]}),
        (2, {"ErrorCode": 16, "Topics": []}),
        (8, {"ErrorCode": 16, "Topics": []}),
    ],
)
def test_a_fetch_that_is_refused(lab: Make, version: int, body: dict[str, Any]) -> None:
    made = lab()
    made.coordinator.owns = lambda _: False
    answer = fetched(made, version, topics=[{"Name": "t", "PartitionIndexes": [0]}])
    got = answer["Topics"] and {
        "Topics": [
            {**t, "Partitions": [{k: p[k] for k in ("PartitionIndex", "ErrorCode")} for p in t["Partitions"]]}
            for t in answer["Topics"]
        ]
    }
    assert (got or {key: answer[key] for key in body}) == body


def test_a_commit_that_is_refused(lab: Make) -> None:
    made = lab()
    made.coordinator.may = lambda *_: False
    answer = made.commit()
    assert (error(answer), answer.check.number) == (30, 1)


def test_several_groups_at_once(lab: Make) -> None:
    made = lab()
    made.commit()
    groups = [{"GroupId": name, "Topics": None} for name in ("g", "h")]
    made.coordinator.may = lambda _, group: group != "h"
    answers = made.get("OffsetFetch", 8, {"Groups": groups, "RequireStable": False})["Groups"]
    assert [(each["GroupId"], each["ErrorCode"], len(each["Topics"])) for each in answers] == [
        ("g", 0, 1),
        ("h", 30, 0),
    ]


# transactions


def txn(made: Any, producer: int = 1, offset: int = 50, **fields: Any) -> int:
    body = {
        "TransactionalId": "t",
        "GroupId": "g",
        "ProducerId": producer,
        "ProducerEpoch": 0,
        "GenerationIdOrMemberEpoch": -1,
        "MemberId": "",
        "GroupInstanceId": None,
        "Topics": [{"Name": "orders", "Partitions": [part(0, offset)]}],
        **fields,
    }
    answer = made.answer(made.ask("TxnOffsetCommit", 3, body))
    return error(answer)


def committed(made: Any, stable: bool = False) -> tuple[int, int]:
    found = fetched(made, topics=[{"Name": "orders", "PartitionIndexes": [0]}], stable=stable)
    only = found["Topics"][0]["Partitions"][0]
    return only["CommittedOffset"], only["ErrorCode"]


@pytest.mark.parametrize(("commits", "offset"), [(True, 50), (False, 7)])
def test_a_transactions_offsets_wait_for_its_end(lab: Make, commits: bool, offset: int) -> None:
    made = lab()
    made.commit()
    assert txn(made) == 0
    assert (committed(made), committed(made, stable=True)) == ((7, 0), (-1, 88))
    made.coordinator.end_transaction(2, True)
    assert committed(made) == (7, 0)
    made.coordinator.end_transaction(1, commits)
    assert committed(made, stable=True) == (offset, 0)


def test_a_later_plain_commit_wins(lab: Make) -> None:
    made = lab()
    txn(made)
    made.wait(1)
    made.commit(offset=99)
    made.coordinator.end_transaction(1, True)
    assert committed(made) == (99, 0)


@pytest.mark.parametrize(
    ("state", "member", "generation", "code"),
    [
        ("none", "", -1, 0),
        ("none", "a-1", 1, 22),
        ("Stable", "", -1, 0),  # older versions know no member
        ("Stable", "a-1", 1, 0),
        ("Stable", "a-1", 0, 22),
        ("Stable", "ghost", 1, 25),
        ("CompletingRebalance", "a-1", 1, 0),
    ],
)
def test_who_may_commit_in_a_transaction(lab: Make, state: str, member: str, generation: int, code: int) -> None:
    made = lab().in_state(state)
    assert txn(made, MemberId=member, GenerationIdOrMemberEpoch=generation) == code


# delete


@pytest.mark.parametrize(
    ("state", "topic", "top", "code", "left"),
    [
        ("none", "orders", 69, None, 0),
        ("Empty", "orders", 0, 0, 0),
        ("Empty", "ghost", 0, 3, 1),
        ("Stable", "orders", 0, 86, 1),
        ("Stable", "payments", 0, 0, 1),
    ],
)
def test_offsets_are_deleted_unless_subscribed(
    lab: Make, state: str, topic: str, top: int, code: int | None, left: int
) -> None:
    made = lab()
    if state != "none":
        subscription = bytes.fromhex("0000 00000001 0006 6f7264657273 ffffffff")
        made.commit(*made.stable("a", protocols={"range": subscription}), 1)
    if state == "Empty":
        made.leave(("a-1", None))
    parts = [{"PartitionIndex": 0}]
    body = made.get("OffsetDelete", 0, {"GroupId": "g", "Topics": [{"Name": topic, "Partitions": parts}]})
    assert body["ErrorCode"] == top
    assert [each["Partitions"][0]["ErrorCode"] for each in body["Topics"]] == ([] if code is None else [code])
    assert len(made.coordinator.offsets.committed.get("g", {})) == left


@pytest.mark.parametrize(("protocol_type", "top", "code"), [("connect", 68, None), ("consumer", 0, 86)])
def test_where_the_subscription_cannot_be_read(lab: Make, protocol_type: str, top: int, code: int | None) -> None:
    made = lab()
    made.stable("a", ProtocolType=protocol_type) if protocol_type == "consumer" else made.joined(
        "a", ProtocolType=protocol_type
    )
    topics = [{"Name": "orders", "Partitions": [{"PartitionIndex": 0}]}]
    body = made.get("OffsetDelete", 0, {"GroupId": "g", "Topics": topics})
    assert body["ErrorCode"] == top
    assert [each["Partitions"][0]["ErrorCode"] for each in body["Topics"]] == ([] if code is None else [code])


@pytest.mark.parametrize(("version", "offset"), [(9, 7), (10, -1)])
def test_a_topic_that_comes_back_under_another_id(lab: Make, version: int, offset: int) -> None:
    made = lab()
    topic = {"TopicId": UUID(int=1)} if version >= 10 else {"Name": "orders"}
    made.commit(version=version, Topics=[{**topic, "Partitions": [part()]}])
    made.topics["orders"] = KnownTopic("orders", UNKNOWN, 4)
    body = fetched(made, 10, topics=[{"TopicId": UNKNOWN, "PartitionIndexes": [0]}])
    assert body["Topics"][0]["Partitions"][0]["CommittedOffset"] == offset
    del made.topics["orders"]
    assert fetched(made, 10)["Topics"] == []
    assert [each["Name"] for each in fetched(made, 8)["Topics"]] == ["orders"]
