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
