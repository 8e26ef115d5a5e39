"""Clients that ask on while they are throttled."""

from __future__ import annotations

from scenes import Scene

FETCH = {"ReplicaId": -1, "MaxWaitMs": 1, "MinBytes": 1, "Topics": []}


def fetches(times: list[float], version: int = 12) -> Scene:
    scene = Scene()
    line = scene.connect(0)
    for at in times:
        line.ask(at, "Fetch", version, FETCH, {"ThrottleTimeMs": 1000, "Responses": []})
    return scene


def test_one_that_does_not_wait() -> None:
    (found,) = fetches([1, 1.3, 1.6]).findings("throttle-ignored")
    assert found.count == 2
    assert found.what == "c1 sent 2 requests while throttled, up to 701 ms too early"
    assert [ref.message for ref in found.evidence] == ["FetchRequest v12", "FetchRequest v12"]


def test_one_that_waits_is_fine() -> None:
    assert fetches([1, 2.1, 3.2]).findings("throttle-ignored") == []


def test_versions_before_kip_219_need_not_wait() -> None:
    assert fetches([1, 1.3, 1.6], version=7).findings("throttle-ignored") == []


def test_it_may_wait_longer_than_a_block_of_packets() -> None:
    found = fetches([1 + 0.5 * at for at in range(3000)]).findings("throttle-ignored")
    assert found[0].count > 2900


def test_what_was_under_way_does_not_count() -> None:
    """Requests that overlap: the answers to those before say that the client is throttled while more are sent."""
    scene = Scene()
    line = scene.connect(0)
    for number in range(12):
        line.ask(1 + number / 50, "Fetch", 12, FETCH, {"ThrottleTimeMs": 1000, "Responses": []}, took=0.1)
    assert scene.findings("throttle-ignored") == []
    line.ask(1.6, "Fetch", 12, FETCH, {"ThrottleTimeMs": 0, "Responses": []})
    (found,) = scene.findings("throttle-ignored")
    assert (found.count, found.what) == (1, "c1 sent 1 request while throttled, up to 720 ms too early")


def test_who_waits_for_each_answer_has_nothing_under_way() -> None:
    scene = Scene()
    line = scene.connect(0)
    for number in range(6):
        line.ask(1 + number / 10, "Fetch", 12, FETCH, {"ThrottleTimeMs": 0, "Responses": []})
    line.ask(2, "Fetch", 12, FETCH, {"ThrottleTimeMs": 1000, "Responses": []})
    line.ask(2.004, "Fetch", 12, FETCH, {"ThrottleTimeMs": 0, "Responses": []})
    (found,) = scene.findings("throttle-ignored")
    assert found.count == 1


def test_an_answer_that_comes_later_hides_none_before() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Fetch", 12, FETCH, {"ThrottleTimeMs": 1000, "Responses": []})
    line.ask(1.0005, "Fetch", 12, FETCH, {"ThrottleTimeMs": 1000, "Responses": []}, took=3)
    line.ask(1.5, "Fetch", 12, FETCH, {"ThrottleTimeMs": 0, "Responses": []}, took=4)
    (found,) = scene.findings("throttle-ignored")
    assert found.count == 1
