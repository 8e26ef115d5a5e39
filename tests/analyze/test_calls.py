"""Requests about several groups: each has its own element's error."""

from __future__ import annotations

from scenes import Scene
from session.conftest import block

from kwire.analyze.calls import calls_of
from kwire.session.reader import Reader


def errors(scene: Scene) -> list[tuple[str, int]]:
    reader = Reader("made.pcap", tracking=True)
    batches = [*reader.feed(block(scene.packets, 1)), *reader.finish()]
    return [(call.group, call.error) for batch in batches for exchange in batch for call in calls_of(exchange)]


def test_delete_groups() -> None:
    scene = Scene()
    results = [{"GroupId": "a", "ErrorCode": 0}, {"GroupId": "b", "ErrorCode": 68}]
    scene.connect(0).ask(1, "DeleteGroups", 1, {"GroupsNames": ["a", "b"]}, {"Results": results})
    assert errors(scene) == [("a", 0), ("b", 68)]


def test_find_coordinator() -> None:
    scene = Scene()
    found = [
        {"Key": name, "NodeId": 1, "Host": "h", "Port": 1, "ErrorCode": code, "ErrorMessage": None}
        for name, code in (("a", 0), ("b", 15))
    ]
    asked = {"KeyType": 0, "CoordinatorKeys": ["a", "b"]}
    scene.connect(0).ask(1, "FindCoordinator", 4, asked, {"Coordinators": found})
    assert errors(scene) == [("a", 0), ("b", 15)]


def test_one_error_for_all() -> None:
    scene = Scene()
    asked = {"GroupId": "a", "MemberId": "m", "GenerationId": 1}
    scene.connect(0).ask(1, "Heartbeat", 3, asked, {"ErrorCode": 25})
    assert errors(scene) == [("a", 25)]


def test_an_answer_that_tells_errors_only_is_not_decoded_where_there_are_none() -> None:
    scene = Scene()
    line, asked = scene.connect(0), {"GroupId": "a", "MemberId": "m", "GenerationId": 1}
    line.ask(1, "Heartbeat", 3, asked, {"ErrorCode": 0}).ask(2, "Heartbeat", 3, asked, {"ErrorCode": 25})
    reader = Reader("made.pcap", tracking=True)
    batches = [*reader.feed(block(scene.packets, 1)), *reader.finish()]
    fine, wrong = (call for batch in batches for exchange in batch for call in calls_of(exchange))
    assert (fine.fine, fine.answer) == (True, {})
    assert (wrong.error, (wrong.answer or {})["ErrorCode"]) == (25, 25)
