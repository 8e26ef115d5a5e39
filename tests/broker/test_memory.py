"""What is remembered for clients is weighed and has a limit."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import BrokerLimits, BrokerSettings
from kwire.broker.memory import ENTRY, Memory, weigh
from kwire.coordinator.group import Group

PROTOCOLS = [{"Name": "range", "Metadata": bytes(10_000)}]


def join(group: str, **more: Any) -> dict[str, Any]:
    body = {"GroupId": group, "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 1_000, "MemberId": ""}
    return {**body, "ProtocolType": "consumer", "Protocols": PROTOCOLS, **more}


@pytest.fixture
def small(make_socketless: Any) -> Any:
    return make_socketless(BrokerSettings(topics=(("t", 3),), limits=BrokerLimits(remembered=400_000)))


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (1, 0, 0),
        (b"x" * 1_000, 1_000, 1_100),
        ({"a": ["x" * 100] * 10}, 1_000, 4_000),
        (Group("g" * 5_000), 5_000, 8_000),
        ([[b"x" * 1_000]], 1_000, 1_500),
    ],
)
def test_weights(value: object, least: int, most: int) -> None:
    assert least <= weigh(value) <= most


def test_a_weight_is_looked_for_no_further_than_asked() -> None:
    assert weigh([b"x" * 10 for _ in range(100_000)], 1_000) < 100_000 * ENTRY


def test_what_holds_itself_is_weighed_once() -> None:
    value: list[Any] = [b"x" * 1_000]
    value.append(value)
    assert weigh(value) < 2_000


def test_charges_are_made_good_by_what_there_really_is() -> None:
    there: list[bytes] = []
    now = [0]
    memory = Memory(40_000, lambda: there, lambda: now[0])
    for _ in range(100):
        now[0] += 10_000_000_000
        assert memory.allows("OffsetCommit", "c", {"a": b"x" * 1_000})
    assert 0 < memory.counts < 10
    there.append(b"x" * 39_500)
    now[0] += 10_000_000_000
    assert [memory.allows("JoinGroup", "c", {"a": b"x" * 1_000}) for _ in range(42)][-1] is False
    assert memory.allows("Fetch", "c", {"a": b"x" * 100_000})


def test_counting_is_not_done_for_every_request_that_is_refused() -> None:
    there = [b"x" * 200_000]
    memory = Memory(100_000, lambda: there, lambda: 1 << 60)
    asked = [memory.allows("JoinGroup", "c", {"a": b"x" * 4_000}) for _ in range(80)]
    assert asked.count(True) < 30
    assert not any(asked[30:])
    assert memory.counts == 1


def test_one_request_leaves_a_small_part_of_all_behind() -> None:
    memory = Memory(160_000, list, lambda: 0)
    assert not memory.allows("ConsumerGroupHeartbeat", "c", {"SubscribedTopicNames": [f"t{n}" for n in range(500)]})
    assert memory.allows("ConsumerGroupHeartbeat", "c", {"SubscribedTopicNames": [f"t{n}" for n in range(50)]})


def test_groups_take_no_more_than_their_memory(small: Any) -> None:
    codes = [small.ask("JoinGroup", 3, join(f"g{n}"))["ErrorCode"] for n in range(60)]
    assert codes[0] == 0
    assert codes[-1] == 44
    assert weigh(small.state.groups.remembered) < 440_000
    assert small.ask("Heartbeat", 3, {"GroupId": "g0", "MemberId": "nobody"})["ErrorCode"] == 25
    assert [event.kind for event in small.state.happenings].count("refused") > 5


def test_ids_that_are_handed_out_count(small: Any) -> None:
    def ask(number: int) -> int:
        code: int = small.ask("JoinGroup", 6, join("g"), client=f"{number}" + "c" * 8_000)["ErrorCode"]
        return code

    codes = [ask(number) for number in range(90)]
    assert (codes[0], codes[-1]) == (79, 44)


def test_offsets_and_settings_count(small: Any) -> None:
    parts = [{"PartitionIndex": n, "CommittedOffset": 1, "CommittedMetadata": "m" * 4_000} for n in range(3)]
    for number in range(60):
        body = {"GroupId": f"g{number}", "MemberId": "", "Topics": [{"Name": "t", "Partitions": parts}]}
        code = small.ask("OffsetCommit", 5, body)["Topics"][0]["Partitions"][0]["ErrorCode"]
    assert code == 44
    config = {"Name": "x", "ConfigOperation": 0, "Value": "v" * 20_000}
    resource = {"ResourceType": 32, "ResourceName": "g", "Configs": [config]}
    assert small.ask("IncrementalAlterConfigs", 0, {"Resources": [resource]})["Responses"][0]["ErrorCode"] == 44


def test_what_has_happened_is_kept_short(small: Any) -> None:
    small.ask("Heartbeat", 3, {"GroupId": "g" * 30_000, "MemberId": "m" * 30_000})
    small.ask("JoinGroup", 3, join("g" * 30_000, MemberId=""))
    assert small.state.happenings
    assert all(weigh(event) < 30_000 for event in small.state.happenings)
