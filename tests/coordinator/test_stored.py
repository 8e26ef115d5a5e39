"""Groups of every kind come back from their records as they were, and their members go on with the same epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.codec.library import builtin_library
from kwire.coordinator.consumer.reconciliation import MemberState
from kwire.coordinator.stored import KINDS, StoredKind
from kwire.coordinator.stored_records import Fields, RecordKey
from kwire.coordinator.types import MS, KnownTopic

Make = Callable[..., Any]
Found = dict[str, dict[RecordKey, Fields]]
METADATA = b"\0\0" + kwire.encode("ConsumerProtocolSubscription", 0, {"Topics": ["orders"], "UserData": None})
ASSIGNED = {"AssignedPartitions": [{"Topic": "orders", "Partitions": [1]}], "UserData": None}
ASSIGNMENT = b"\0\0" + kwire.encode("ConsumerProtocolAssignment", 0, ASSIGNED)
CLASSIC, CONSUMER, SHARE, _ = KINDS
JOIN_848 = {"GroupId": "g", "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000, "SubscribedTopicNames": ["orders"],
            "TopicPartitions": []}  # fmt: skip


def found(made: Any, kind: StoredKind) -> Found:
    """What is stored of the group, through the records' bytes."""
    out: Found = {}
    for record in kind.numbers:
        codec = builtin_library().codec(f"{kind.prefix}{record}Value", kind.version)
        rows = kind.stored(made.coordinator.groups["g"], record)
        out[record] = {key: codec.decode(codec.encode(row)) for key, row in rows.items() if row is not None}
        assert out[record] == {key: row for key, row in rows.items() if row is not None}, record
    return out


def again(lab: Make, made: Any, kind: StoredKind, rows: Found | None = None, **settings: Any) -> Any:
    """Another coordinator that has loaded the group."""
    other = lab(**settings)
    other.now = made.now
    other.topics = dict(made.topics)
    for place, stored in made.coordinator.share_states.known.items():
        other.coordinator.share_states.known[place] = stored
    other.coordinator.revive_stored(kind, "g", rows or found(made, kind), made.now * MS)
    return other


def described(made: Any, api: str, version: int) -> Any:
    (group,) = made.get(api, version, {"GroupIds": ["g"], "Groups": ["g"]})["Groups"]
    return group


def stable(made: Any, *clients: str) -> list[str]:
    """A classic group of a static and other members; their ids."""
    body = {"GroupId": "g", "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 20_000, "MemberId": "",
            "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": METADATA}]}  # fmt: skip
    tickets = []
    for client in clients:
        member = {"GroupInstanceId": client if client == clients[0] else None, "MemberId": ""}
        answer = made.answer(ticket := made.ask("JoinGroup", 5, {**body, **member}, client))
        if answer is not None and answer.body["ErrorCode"] == 79:
            ticket = made.ask("JoinGroup", 5, {**body, "MemberId": answer.body["MemberId"]}, client)
            answer = None
        tickets.append((ticket, answer))
    if len(clients) > 1:
        first = tickets[0][1].body["MemberId"]
        tickets[0] = made.ask("JoinGroup", 5, {**body, "MemberId": first, "GroupInstanceId": clients[0]}), None
    bodies = [answer.body if answer else made.body(ticket) for ticket, answer in tickets]
    ids = [each["MemberId"] for each in bodies]
    given = [{"MemberId": each, "Assignment": ASSIGNMENT} for each in ids]
    leader = bodies[0]["Leader"]
    synced = {"GroupId": "g", "GenerationId": bodies[0]["GenerationId"]}
    for each in sorted(ids, key=lambda name: name != leader):
        made.get("SyncGroup", 3, {**synced, "MemberId": each, "Assignments": given if each == leader else []})
    return ids


def beat(made: Any, member: str, generation: int, instance: str | None = None) -> int:
    body = {"GroupId": "g", "GenerationId": generation, "MemberId": member, "GroupInstanceId": instance}
    return int(made.get("Heartbeat", 3, body)["ErrorCode"])


def test_a_classic_group(lab: Make) -> None:
    made = lab()
    ids = stable(made, "a", "b")
    made.now += 9_000
    other = again(lab, made, CLASSIC)
    before, after = (described(each, "DescribeGroups", 4) for each in (made, other))
    assert (before["GroupState"], len(before["Members"])) == ("Stable", 2)
    assert after == before
    group = other.coordinator.groups["g"]
    assert (group.leader, group.topics) == (made.coordinator.groups["g"].leader, {"orders"})
    assert (group.generation, group.since) == (2, made.coordinator.groups["g"].since)
    other.wait(9_000)  # a whole session is left to everyone
    assert [beat(other, ids[0], 2, "a"), beat(other, ids[1], 2)] == [0, 0]
    assert beat(other, ids[1], 1) == 22
    other.wait(9_000)
    assert beat(other, ids[1], 2) == 0
    other.wait(1_000)  # the static one falls silent
    assert beat(other, ids[1], 2) == 27


def test_a_classic_group_that_rebalances_stays_as_it_was_written(lab: Make) -> None:
    made = lab()
    assert found(made_empty(made), CLASSIC) == {"Metadata": {}}
    (member,) = stable(made, "a")
    before = found(made, CLASSIC)
    join = {"GroupId": "g", "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 20_000, "MemberId": "",
            "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": METADATA}]}  # fmt: skip
    made.ask("JoinGroup", 3, join)
    assert list(CLASSIC.stored(made.coordinator.groups["g"], "Metadata").values()) == [None]
    other = again(lab, made, CLASSIC, before)
    assert beat(other, member, 1, "a") == 0


def made_empty(made: Any) -> Any:
    """A group of which there are offsets alone."""
    made.coordinator.revive("g", 0)
    return made


def test_an_empty_classic_group_goes_when_it_has_no_offsets(lab: Make) -> None:
    made = lab()
    (member,) = stable(made, "a")
    made.get("LeaveGroup", 3, {"GroupId": "g", "Members": [{"MemberId": member, "GroupInstanceId": None}]})
    other = again(lab, made, CLASSIC)
    group = other.coordinator.groups["g"]
    assert (str(group.state), group.generation, group.protocol_type) == ("Empty", 2, "consumer")
    other.wait(601_000)
    assert "g" not in other.coordinator.groups


def test_a_classic_group_with_more_members_than_it_may_have_rebalances(lab: Make) -> None:
    made = lab()
    stable(made, "a", "b")
    other = again(lab, made, CLASSIC, group_max_size=1)
    assert str(other.coordinator.groups["g"].state) == "PreparingRebalance"


def test_a_classic_group_as_early_brokers_wrote_it(lab: Make) -> None:
    made = lab()
    (member,) = stable(made, "a")
    rows = found(made, CLASSIC)
    row = rows["Metadata"]["g",]
    del row["CurrentStateTimestamp"], row["Members"][0]["GroupInstanceId"], row["Members"][0]["RebalanceTimeout"]
    other = again(lab, made, CLASSIC, rows)
    assert other.coordinator.groups["g"].members[member].rebalance_timeout_ms == 10_000
    assert beat(other, member, 1) == 0


def joined(made: Any, member: str, epoch: int = 0, version: int = 1, **more: Any) -> dict[str, Any]:
    body = {**JOIN_848, "MemberId": member, "MemberEpoch": epoch, **more}
    answer: dict[str, Any] = made.get("ConsumerGroupHeartbeat", version, body, f"c-{member}")
    assert answer["ErrorCode"] == 0, answer
    return answer


def test_a_consumer_group_in_the_middle_of_a_move(lab: Make) -> None:
    made = lab()
    first = joined(made, "m1", InstanceId="i", RackId="r", ServerAssignor="range")
    made.now += 2_000
    joined(made, "m2", SubscribedTopicNames=None, SubscribedTopicRegex="ord.*")
    made.now += 2_000
    joined(made, "m2", 2, SubscribedTopicNames=None)
    held = first["Assignment"]["TopicPartitions"]
    asked = joined(made, "m1", first["MemberEpoch"], TopicPartitions=held)
    group = made.coordinator.groups["g"]
    assert group.members["m1"].hold.state is MemberState.UNREVOKED_PARTITIONS
    other = again(lab, made, CONSUMER)
    assert described(other, "ConsumerGroupDescribe", 1) == described(made, "ConsumerGroupDescribe", 1)
    assert found(other, CONSUMER) == found(made, CONSUMER)
    kept = asked["Assignment"]["TopicPartitions"]
    for each in (made, other):
        each.now += 1_000
        joined(each, "m1", asked["MemberEpoch"], TopicPartitions=kept)
        joined(each, "m2", each.coordinator.groups["g"].members["m2"].hold.epoch, SubscribedTopicNames=None)
    assert described(other, "ConsumerGroupDescribe", 1) == described(made, "ConsumerGroupDescribe", 1)
    assert described(other, "ConsumerGroupDescribe", 1)["GroupState"] == "Stable"
    other.wait(45_000)
    assert described(other, "ConsumerGroupDescribe", 1)["GroupState"] == "Empty"


def test_a_consumer_group_finds_topics_that_changed(lab: Make) -> None:
    made = lab()
    epoch = joined(made, "m")["MemberEpoch"]
    other = again(lab, made, CONSUMER)
    assert joined(other, "m", epoch)["MemberEpoch"] == epoch
    made.topics["orders"] = KnownTopic("orders", UUID(int=1), 8)
    other = again(lab, made, CONSUMER)
    other.now += 1_000
    assert joined(other, "m", epoch)["MemberEpoch"] == epoch + 1


def test_members_of_the_classic_protocol_in_a_consumer_group(lab: Make) -> None:
    made = lab(group_consumer_migration_policy="bidirectional")
    (member,) = stable(made, "a")
    made.get("ConsumerGroupHeartbeat", 1, {**JOIN_848, "MemberId": "m"})
    assert found(made, CONSUMER)["MemberMetadata"]["g", member]["ClassicMemberMetadata"]["SessionTimeoutMs"] == 10_000
    other = again(lab, made, CONSUMER, group_consumer_migration_policy="bidirectional")
    assert described(other, "ConsumerGroupDescribe", 1) == described(made, "ConsumerGroupDescribe", 1)
    assert {beat(each, member, 1, "a") for each in (made, other)} == {27}  # to join again, in both


def test_what_other_brokers_wrote_may_lack_fields(lab: Make) -> None:
    made = lab()
    joined(made, "m")
    rows = found(made, CONSUMER)
    (current,) = rows["CurrentMemberAssignment"].values()
    del current["AssignedPartitions"][0]["AssignmentEpochs"]
    rows["MemberMetadata"]["g", "m"]["SubscribedTopicRegex"] = "("
    rows["TargetAssignmentMetadata"] = {}
    other = again(lab, made, CONSUMER, rows)
    member = other.coordinator.groups["g"].members["m"]
    assert set(member.hold.assigned.values()) == {current["MemberEpoch"]}
    assert member.regex == ""


@pytest.mark.parametrize("change", [False, True])
def test_a_share_group(lab: Make, change: bool) -> None:
    made = lab()

    def share(made: Any, member: str, epoch: int) -> Mapping[str, Any]:
        body = {"GroupId": "g", "MemberId": member, "MemberEpoch": epoch, "RackId": "r", "SubscribedTopicNames": None}
        body |= {"SubscribedTopicNames": ["orders"]} if epoch == 0 else {}
        answer: dict[str, Any] = made.get("ShareGroupHeartbeat", 1, body, f"c-{member}")
        assert answer["ErrorCode"] == 0, answer
        return answer

    for member in ("m1", "m2"):
        epoch = share(made, member, 0)["MemberEpoch"]
        made.wait(2_000)
        epoch = share(made, member, epoch)["MemberEpoch"]
    assert len(found(made, SHARE)["StatePartitionMetadata"]["g",]["InitializedTopics"]) == 1
    before = described(made, "ShareGroupDescribe", 1)
    if change:
        made.topics["orders"] = KnownTopic("orders", UUID(int=1), 8)
    other = again(lab, made, SHARE)
    assert described(other, "ShareGroupDescribe", 1) == before
    assert found(other, SHARE) == found(made, SHARE)
    other.wait(2_000)
    assert share(other, "m2", epoch)["MemberEpoch"] == epoch + change
    other.wait(43_000)
    assert [each["MemberId"] for each in described(other, "ShareGroupDescribe", 1)["Members"]] == ["m2"]
