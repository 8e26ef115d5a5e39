"""Consumers on their way through the seven steps, in real captures and cut ones."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from scenes import START, Scene
from traces import consumer, traced, traced_scene

from kwire.analyze.findings import TimeFormat
from kwire.analyze.standing import verdict
from kwire.codec.library import builtin_library


@pytest.mark.parametrize(
    ("capture", "client_id", "reached"),
    [
        ("classic", "classic-c1", [0.327, 0.384, 3.396, 3.402, 3.404, 3.405, 4.019]),
        ("consumer848", "consumer848-c2", [3.529, 3.534, 3.56, 8.622, 3.622, 8.828, 9.351]),
    ],
)
def test_all_seven_steps(capture: str, client_id: str, reached: list[float]) -> None:
    trace, clock = traced(capture)
    steps = consumer(trace, client_id).steps
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7]
    assert clock.start is not None
    times = [(step.reached.time - clock.start) / 1e9 for step in steps if step.reached]
    assert times == pytest.approx(reached, abs=0.0015)


def test_what_the_steps_say() -> None:
    trace, _ = traced("classic")
    assert [step.detail for step in consumer(trace, "classic-c1").steps] == [
        "1 broker; topics classic-orders (4)",
        "node 1, 127.0.0.1:9092",
        "generation 4, leader of 2, session timeout 6,000 ms",
        "2 partitions: classic-orders-0,1",
        "",
        "2 of 2 partitions with a committed offset",
        "2 partitions: classic-orders-0,1",
    ]


def test_producers_and_tools_are_no_consumers() -> None:
    trace, _ = traced("classic")
    assert [one.client_id for one in trace.consumers()] == ["classic-c1", "classic-c2"]


def test_rounds_count_joins() -> None:
    trace, _ = traced("classic")
    assert consumer(trace, "classic-c2").rounds == 3


def fetch(error: int = 0, records: bytes = b"", replica: int = -1) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Fetch of orders-0 (v4) and its answer."""
    asked = {
        "ReplicaId": replica, "MaxWaitMs": 500, "MinBytes": 1, "MaxBytes": 100, "IsolationLevel": 0,
        "Topics": [{"Topic": "orders", "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 100}]}],
    }  # fmt: skip
    part = {"PartitionIndex": 0, "ErrorCode": error, "HighWatermark": 1, "Records": records}
    return asked, {"Responses": [{"Topic": "orders", "Partitions": [part]}]}


def metadata(*topics: tuple[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Metadata (v1) for topics, each with its error."""
    answered = [{"Name": name, "ErrorCode": code, "IsInternal": False, "Partitions": []} for name, code in topics]
    asked = {"Topics": [{"Name": name} for name, _ in topics]}
    return asked, {"Brokers": [], "ControllerId": 1, "Topics": answered}


def list_offsets() -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {"ReplicaId": -1, "Topics": [{"Name": "orders", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}]}
    part = {"PartitionIndex": 0, "ErrorCode": 0, "Timestamp": -1, "Offset": 7}
    return asked, {"Topics": [{"Name": "orders", "Partitions": [part]}]}


def test_a_fetch_that_was_only_refused_is_not_reached() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(0.1, "ListOffsets", 1, *list_offsets())
    for turn in range(4):
        line.ask(1 + turn, "Fetch", 4, *fetch(error=29))
    (one,) = traced_scene(scene).consumers()
    assert (one.steps[6].reached, one.fetches, one.steps[6].errors) == (None, 0, {29: 4})
    found = verdict(one, START + 5_000_000_000, TimeFormat(START))
    assert found.severity == "error"
    assert found.what.startswith("repeats step 7, fetch: TOPIC_AUTHORIZATION_FAILED 4 times from 1.001 to 4.001")


def test_admin_clients_followers_and_controllers_are_no_consumers() -> None:
    scene = Scene()
    scene.connect(0, "ops").ask(0.1, "ListOffsets", 1, *list_offsets()).ask(0.2, "FindCoordinator", 0, {"Key": "g"})
    leave = {"GroupId": "g", "Members": [{"MemberId": "m", "GroupInstanceId": None}]}
    scene.connect(0, "remover", "10.0.0.8").ask(1, "LeaveGroup", 3, leave, {"ErrorCode": 0, "Members": []})
    scene.connect(0, "follower", "10.0.0.3").ask(1, "Fetch", 4, *fetch(replica=2))
    scene.connect(0, "raft-client-1", "10.0.0.4").ask(1, "Fetch", 4, *fetch())
    scene.connect(0, "quorum", "10.0.0.5").ask(1, "Fetch", 4, *fetch()).ask(2, "Vote", 0, {"ClusterId": None})
    scene.connect(0, "reader", "10.0.0.9").ask(1, "Fetch", 4, *fetch())
    assert [one.client_id for one in traced_scene(scene).consumers()] == ["reader"]


def test_the_coordinator_of_a_transaction_is_not_that_of_a_group() -> None:
    scene = Scene()
    line = scene.connect(0)
    answer = {"ErrorCode": 15, "ErrorMessage": None, "NodeId": -1, "Host": "", "Port": -1}
    line.ask(0.1, "FindCoordinator", 1, {"Key": "tx", "KeyType": 1}, answer)
    line.ask(1, "Fetch", 4, *fetch())
    (one,) = traced_scene(scene).consumers()
    assert one.steps[1].tries == 0


def test_an_error_of_one_topic_is_not_that_of_the_others() -> None:
    scene = Scene()
    line = scene.connect(0)
    for turn in range(4):
        line.ask(turn, "Metadata", 1, *metadata(("orders", 0), ("missing", 3)))
    line.ask(5, "Fetch", 4, *fetch())
    (one,) = traced_scene(scene).consumers()
    step = one.steps[0]
    assert (step.tries, step.good, {name: wrong.count for name, wrong in step.wrong.items()}) == (4, 4, {"missing": 4})
    assert step.reached is not None
    found = verdict(one, START + 6_000_000_000, TimeFormat(START))
    said = "repeats step 1, metadata, for missing: UNKNOWN_TOPIC_OR_PARTITION 4 times"
    assert (found.severity, found.what.startswith(said)) == ("error", True)


def test_an_error_is_over_when_that_topic_goes_well() -> None:
    scene = Scene()
    line = scene.connect(0)
    for turn in range(3):
        line.ask(turn, "Metadata", 1, *metadata(("orders", 0), ("late", 3)))
    line.ask(3, "Metadata", 1, *metadata(("orders", 0)))
    line.ask(5, "Fetch", 4, *fetch())
    (one,) = traced_scene(scene).consumers()
    assert list(one.steps[0].wrong) == ["late"]
    line.ask(6, "Metadata", 1, *metadata(("orders", 0), ("late", 0)))
    (one,) = traced_scene(scene).consumers()
    assert one.steps[0].wrong == {}


def test_what_fails_at_one_broker_is_over_when_it_goes_well_at_another() -> None:
    scene = Scene()
    old, new = scene.connect(0), scene.connect(0, broker="10.0.0.3:9092")
    for turn in range(4):
        old.ask(turn, "Fetch", 4, *fetch(error=6))
    new.ask(5, "Fetch", 4, *fetch())
    (one,) = traced_scene(scene).consumers()
    assert one.steps[6].wrong == {}
    assert verdict(one, START + 6_000_000_000, TimeFormat(START)).severity == "note"


def beat(member: str, error: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {"GroupId": "billing", "GenerationId": 1, "MemberId": member, "GroupInstanceId": None}
    return asked, {"ThrottleTimeMs": 0, "ErrorCode": error}


def test_two_members_under_one_client_id_are_two_consumers() -> None:
    scene = Scene()
    first, second = scene.connect(0), scene.connect(0)
    for turn in range(5):
        first.ask(1 + turn, "Heartbeat", 3, *beat("m-1"))
        second.ask(1.5 + turn, "Heartbeat", 3, *beat("m-2", 25 if turn else 0))
    found = traced_scene(scene).consumers()
    assert [(one.name, one.sharing, one.members, one.steps[4].errors) for one in found] == [
        ("c1", 2, ["m-1"], {}),
        ("c1/2", 2, ["m-2"], {25: 4}),
    ]


def test_a_restart_under_the_same_client_id_is_one_consumer() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Heartbeat", 3, *beat("m-1")).ask(2, "Heartbeat", 3, *beat("m-1"))
    scene.connect(5).ask(6, "Heartbeat", 3, *beat("m-2"))
    (one,) = traced_scene(scene).consumers()
    assert (one.name, one.sharing, one.members) == ("c1", 1, ["m-1", "m-2"])


def test_fetches_belong_to_the_member_that_was_given_their_partitions() -> None:
    scene = Scene()
    names = builtin_library().codec("ConsumerProtocolAssignment", 0)
    lines = [scene.connect(0), scene.connect(0)]
    for number, line in enumerate(lines):
        given = {"AssignedPartitions": [{"Topic": "orders", "Partitions": [number]}], "UserData": None}
        asked = {"GroupId": "g", "GenerationId": 1, "MemberId": f"m-{number}", "GroupInstanceId": None}
        answer = {"ThrottleTimeMs": 0, "ErrorCode": 0, "Assignment": b"\0\0" + names.encode(given)}
        line.ask(1, "SyncGroup", 3, asked | {"Assignments": []}, answer)
    for number, line in enumerate(lines):
        line.ask(3, "Heartbeat", 3, *beat(f"m-{number}"))
    scene.connect(2).ask(4, "Fetch", 4, *fetch())  # of orders-0
    found = traced_scene(scene).consumers()
    assert [(one.members, one.fetches) for one in found] == [(["m-0"], 1), (["m-1"], 0)]


def test_the_frame_of_an_assignment_holds_partitions() -> None:
    scene = Scene()
    line = scene.connect(0)
    ident = UUID(int=77)
    for at, epoch, given in ((1, 0, []), (2, 1, None), (3, 1, [{"TopicId": ident, "Partitions": [0, 1]}])):
        asked = {"GroupId": "g", "MemberId": "m", "MemberEpoch": epoch, "TopicPartitions": None}
        answer = {
            "ErrorCode": 0, "ErrorMessage": None, "MemberId": "m", "MemberEpoch": 1, "HeartbeatIntervalMs": 5000,
            "Assignment": None if given is None else {"TopicPartitions": given},
        }  # fmt: skip
        line.ask(at, "ConsumerGroupHeartbeat", 0, asked, answer)
    (one,) = traced_scene(scene).consumers()
    step = one.steps[3]
    assert step.reached is not None
    assert step.said_in == step.reached
    assert (step.reached.time - START) // 1_000_000 == 3001


def test_the_frame_of_a_step_is_the_one_that_says_so() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Metadata", 1, *metadata(("orders", 0)))
    line.ask(2, "Metadata", 1, *metadata(("orders", 0), ("more", 0)))
    line.ask(3, "Fetch", 4, *fetch())
    (one,) = traced_scene(scene).consumers()
    step = one.steps[0]
    assert step.detail == "0 brokers; topics orders (0), more (0)"
    assert step.said_in is not None
    assert step.reached is not None
    assert (step.reached.time, step.said_in.time) == (START + 1_001_000_000, START + 2_001_000_000)


def test_mixed_gaps_have_no_usual_interval() -> None:
    scene = Scene()
    line = scene.connect(0)
    at = 0.0
    for turn in range(40):
        line.ask(at, "Fetch", 4, *fetch())
        at += 0.005 if turn % 2 else 0.5
    (one,) = traced_scene(scene).consumers()
    step = one.steps[6]
    assert (step.usual, step.middle, step.longest) == (None, (5_000_000, 500_000_000), 500_000_000)


def test_fetches_of_several_brokers_are_not_mixed() -> None:
    scene = Scene()
    lines = [scene.connect(0, broker=f"10.0.0.{number}:9092") for number in (2, 3, 4)]
    for turn in range(8):
        for number, line in enumerate(lines):
            line.ask(turn * 0.5 + number * 0.1, "Fetch", 4, *fetch())
    (one,) = traced_scene(scene).consumers()
    assert one.steps[6].usual == 500_000_000


def test_answers_that_the_capture_lacks_are_neither_good_nor_bad() -> None:
    scene = Scene()
    line = scene.connect(0)
    for turn in range(5):
        line.ask(turn, "Fetch", 4, *fetch(), lost=True)
    line.ask(9, "Metadata", 1, *metadata(("orders", 0)))
    (one,) = traced_scene(scene).consumers()
    assert (one.steps[6].tries, one.steps[6].good, one.steps[6].unseen) == (5, 0, 5)
    found = verdict(one, START + 9_100_000_000, TimeFormat(START))
    assert (found.severity, "does not show" in found.what) == ("note", True)


def test_a_capture_without_answers_does_not_say_that_none_came() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Metadata", 1, *metadata(("orders", 0)))
    line.ask(2, "Heartbeat", 3, *beat("m"))
    line.ask(9, "Heartbeat", 3, *beat("m"))
    scene.traffic.packets = [packet for packet in scene.packets if packet.data[12:16] != bytes([10, 0, 0, 2])]
    (one,) = traced_scene(scene).consumers()
    found = verdict(one, START + 20_000_000_000, TimeFormat(START))
    assert found.severity == "note"
