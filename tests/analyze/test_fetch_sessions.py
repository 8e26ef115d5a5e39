"""Fetch sessions: an answer that leaves a partition out says that nothing of it changed, as long as the session goes
on. Seen at lso-stuck, which counts by it how long a partition stood still."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from scenes import Line, Scene, diagnosed

from kwire.analyze.findings import Finding

SESSION = 77
LSO_STUCK = {"seconds": 10.0}


def fetch(
    session: int, epoch: int, asked: Sequence[int] = (), forgotten: Sequence[int] = (),
) -> dict[str, Any]:  # fmt: skip
    parts = [{"Partition": number, "FetchOffset": 5, "PartitionMaxBytes": 1} for number in asked]
    left = [{"Topic": "orders", "Partitions": list(forgotten)}] if forgotten else []
    return {
        "ReplicaId": -1, "MaxWaitMs": 500, "MinBytes": 1, "MaxBytes": 1, "IsolationLevel": 1, "SessionId": session,
        "SessionEpoch": epoch, "Topics": [{"Topic": "orders", "Partitions": parts}] if parts else [],
        "ForgottenTopicsData": left, "RackId": "",
    }  # fmt: skip


def answer(
    *told: tuple[int, int, int], session: int = SESSION, error: int = 0, throttle: int = 0, refused: int = 0
) -> dict[str, Any]:
    """told: partition, high watermark, last stable offset; refused: their error."""
    parts = [
        {"PartitionIndex": number, "ErrorCode": refused, "HighWatermark": high, "LastStableOffset": stable,
         "LogStartOffset": 0, "AbortedTransactions": None, "PreferredReadReplica": -1, "Records": b""}
        for number, high, stable in told
    ]  # fmt: skip
    return {
        "ThrottleTimeMs": throttle, "ErrorCode": error, "SessionId": session,
        "Responses": [{"Topic": "orders", "Partitions": parts}] if parts else [],
    }  # fmt: skip


class Reading:
    """A client's fetches, one a second; each is answered half a second later."""

    def __init__(self, scene: Scene, client: str = "reader", session: int = SESSION) -> None:
        self.line: Line = scene.connect(0, client)
        self.now, self.session, self.epoch = 1, session, 0

    def ask(
        self, *told: tuple[int, int, int], asked: Sequence[int] = (), forgotten: Sequence[int] = (), lost: bool = False,
        **said: int,
    ) -> Reading:  # fmt: skip
        body = fetch(self.session if self.epoch else 0, self.epoch, asked, forgotten)
        self.line.ask(self.now, "Fetch", 11, body, answer(*told, session=self.session, **said), 0.5, lost)
        self.now, self.epoch = self.now + 1, self.epoch + 1
        return self

    def empty(self, times: int) -> Reading:
        for _ in range(times):
            self.ask()
        return self


def stuck(scene: Scene, size: int = 5000) -> list[Finding]:
    return diagnosed(scene.packets, ["lso-stuck"], {"lso_stuck": LSO_STUCK}, size).findings


def length(found: Finding) -> float:
    assert found.last is not None
    return (found.last - found.time) / 1e9


@pytest.mark.parametrize("size", [3, 7, 5000])
def test_empty_answers_of_the_session_say_that_it_stands(size: int) -> None:
    scene = Scene()
    Reading(scene).ask((0, 9, 5), asked=[0]).empty(15)
    (found,) = stuck(scene, size)
    assert (found.severity, length(found)) == ("error", 15)
    assert "do not get past offset 5 for 15.0 s" in found.what
    assert "had not moved" in found.what
    assert [ref.packet for ref in found.evidence] == [4, 34]  # the answers at 1.5 and 16.5 s


@pytest.mark.parametrize("size", [3, 7, 5000])
def test_it_stands_until_the_answer_before_the_one_that_moves(size: int) -> None:
    scene = Scene()
    Reading(scene).ask((0, 9, 5), asked=[0]).empty(12).ask((0, 10, 10)).empty(20)
    (found,) = stuck(scene, size)
    assert found.severity == "warning"
    assert "for 12.0 s" in found.what
    assert "it moved at 14.5" in found.what


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("broken", ["error", "throttle", "refused", "lost", "epoch", "another", "forgotten"])
def test_what_ends_the_proof(broken: str, size: int) -> None:
    """Five seconds are proven; what follows does not say anything of the partition."""
    scene = Scene()
    reading = Reading(scene).ask((0, 9, 5), asked=[0]).empty(5)
    match broken:
        case "error":
            reading.ask(error=71).empty(10)
        case "throttle":
            for _ in range(10):
                reading.ask(throttle=100)
        case "refused":
            reading.ask((0, -1, -1), refused=6).empty(10)
        case "lost":
            reading.ask(lost=True).empty(10)
        case "epoch":
            reading.epoch += 1
            reading.empty(10)
        case "another":
            reading.session, reading.epoch = 78, 0
            reading.ask((1, 3, 3), asked=[1]).empty(10)
        case "forgotten":
            reading.ask(forgotten=[0]).empty(10)
    assert stuck(scene, size) == []


def test_what_does_not_end_it() -> None:
    """Another partition that is answered, forgotten or refused; a throttled answer on the way."""
    scene = Scene()
    reading = Reading(scene).ask((0, 9, 5), (1, 3, 3), asked=[0, 1]).empty(2).ask((1, 4, 4)).ask(throttle=100)
    reading.ask((1, -1, -1), refused=6).ask(forgotten=[1]).empty(8)
    (found,) = stuck(scene)
    assert (found.about["partition"], length(found)) == (0, 14)


def test_a_partition_that_was_forgotten_and_comes_back_stands_again() -> None:
    scene = Scene()
    reading = Reading(scene).ask((0, 9, 5), asked=[0]).ask(forgotten=[0]).empty(3).ask((0, 9, 5), asked=[0]).empty(11)
    (found,) = stuck(scene)
    assert length(found) == 16
    assert reading.now == 18


def test_a_session_goes_on_over_another_connection_and_past_the_last_epoch() -> None:
    scene = Scene()
    reading = Reading(scene).ask((0, 9, 5), asked=[0]).empty(2)
    reading.line.close(4)
    reading.line = scene.connect(4, "reader")
    reading.empty(9)
    (found,) = stuck(scene)
    assert length(found) == 11
    scene = Scene()
    reading = Reading(scene).ask((0, 9, 5), asked=[0])
    reading.epoch = 2**31 - 2
    reading.ask((0, 10, 5)).empty(1)
    reading.epoch = 1
    reading.empty(12)
    (found,) = stuck(scene)
    assert length(found) == 14


def test_of_two_readers_the_longer_tells() -> None:
    scene = Scene()
    Reading(scene).ask((0, 9, 5), asked=[0]).empty(15)
    other = Reading(scene, "other", 78)
    other.now = 5
    other.ask((0, 9, 5), asked=[0]).ask(forgotten=[0])
    (found,) = stuck(scene)
    assert length(found) == 15


def test_many_sessions_that_do_not_last_leave_room_for_the_one_that_does() -> None:
    scene = Scene()
    for session in range(100, 120):
        Reading(scene, session=session).ask((0, 9, 5), asked=[0])
    last = Reading(scene)
    last.now = 3
    last.ask((0, 9, 5), asked=[0]).empty(15)
    (found,) = stuck(scene)
    assert length(found) == 17


def test_blocks_do_not_matter() -> None:
    chance = random.Random(1)
    for _ in range(20):
        scene = Scene()
        for session in (77, 78):
            reading, high, stable = Reading(scene, f"r{session}", session), 9, 5
            reading.ask((0, high, stable), (1, 4, 4), asked=[0, 1])
            for _ in range(40):
                match chance.randrange(12):
                    case 0:
                        high += 1
                        stable = high if chance.random() < 0.2 else stable
                        reading.ask((0, high, stable))
                    case 1:
                        reading.ask(forgotten=[0])
                    case 2:
                        reading.ask((0, high, stable), asked=[0])
                    case 3:
                        reading.ask((1, high, high))
                    case _:
                        reading.empty(1)
        whole = [(one.time, one.last, one.what, one.evidence) for one in stuck(scene)]
        for size in (4, 11):
            assert [(one.time, one.last, one.what, one.evidence) for one in stuck(scene, size)] == whole
