"""Facts of exchanges, and the troubles that equal ones make: how often, for how long, and whether they were over."""

from __future__ import annotations

from typing import Any

from scenes import Scene
from session.conftest import block

from kwire.analyze.case import Case
from kwire.analyze.facts import Trouble
from kwire.session.reader import Reader

BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


def case_of(scene: Scene) -> Case:
    case = Case()
    reader = Reader("made.pcap", tracking=True, ended=lambda connection: case.close(connection) and None)
    packets = scene.packets
    for batch in [*reader.feed(block(packets, 1)), *reader.finish()]:
        case.add(batch)
    return case


def troubles(scene: Scene) -> list[Trouble]:
    return list(case_of(scene).troubles.known.values())


def beat(code: int) -> dict[str, Any]:
    return {"ErrorCode": code}


def test_equal_facts_are_one_trouble_that_is_over_with_the_next_success() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at, code in ((1, 16), (2, 16), (3, 0), (4, 16)):
        line.ask(at, "Heartbeat", 3, BEAT, beat(code))
    (found,) = troubles(scene)
    assert (found.count, found.most, found.over, found.lasted) == (3, 2, None, 1_000_000_000)
    assert found.fact.about == {"group": "billing"}
    assert [ref.time for ref in found.samples] == sorted(ref.time for ref in found.samples)


def test_a_success_about_something_else_ends_nothing() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Heartbeat", 3, BEAT, beat(16))
    line.ask(2, "Heartbeat", 3, BEAT | {"GroupId": "other"}, beat(0))
    assert [one.over for one in troubles(scene)] == [None]
    line.ask(3, "Heartbeat", 3, BEAT, beat(0))
    assert [one.over is not None for one in troubles(scene)] == [True]


def test_what_another_client_gets_ends_nothing() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Heartbeat", 3, BEAT, beat(16))
    scene.connect(1, client="c2").ask(2, "Heartbeat", 3, BEAT, beat(0))
    assert [one.over for one in troubles(scene)] == [None]


def test_an_element_that_goes_well_beside_one_that_fails() -> None:
    scene = Scene()
    body = {"TransactionalId": None, "Acks": -1, "TimeoutMs": 1000, "TopicData": [
        {"Name": "orders", "PartitionData": [{"Index": at, "Records": b""} for at in (0, 1)]}]}  # fmt: skip

    def answer(*codes: int) -> dict[str, Any]:
        parts = [{"Index": at, "ErrorCode": code} for at, code in enumerate(codes)]
        return {"Responses": [{"Name": "orders", "PartitionResponses": parts}]}

    scene.connect(0).ask(1, "Produce", 9, body, answer(6, 0)).ask(2, "Produce", 9, body, answer(0, 6))
    first, second = troubles(scene)
    assert (first.fact.about, first.over is not None) == ({"topic": "orders", "partition": 0}, True)
    assert (second.fact.about, second.over) == ({"topic": "orders", "partition": 1}, None)


def test_a_request_without_an_answer_says_how_it_ended() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Heartbeat", 3, BEAT)
    line.reset(2)
    (found,) = case_of(scene).troubles.unanswered()
    assert (found.fact.error, found.fact.ending) == ("no answer", "the connection was reset")


def test_the_key_of_find_coordinator_is_a_group_or_a_transactional_id() -> None:
    for kind, name in ((0, "group"), (1, "transactional_id")):
        scene = Scene()
        answer = {"Coordinators": [
            {"Key": "x", "NodeId": -1, "Host": "", "Port": -1, "ErrorCode": 15, "ErrorMessage": None}]}  # fmt: skip
        scene.connect(0).ask(1, "FindCoordinator", 4, {"KeyType": kind, "CoordinatorKeys": ["x"]}, answer)
        (found,) = troubles(scene)
        assert found.fact.about == {name: "x"}
