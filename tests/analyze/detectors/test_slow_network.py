"""A producer that is 120 ms away."""

from __future__ import annotations

from provoked import assert_proven, capture_of
from scenes import Scene, diagnosed, packets_of


def test_provoked() -> None:
    found = assert_proven("slow-network", "slow-network")
    assert "is 12" in found.what
    assert "away from broker 10.77.0.1:19010" in found.what


def greeted(times: list[float]) -> Scene:
    """Connections, seen beside the broker, whose clients go on 80 ms after the first answer."""
    scene = Scene()
    for at in times:
        line = scene.connect(at)
        line.ask(at, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
        line.ask(at + 0.081, "Metadata", 4, {"Topics": []}, {"Brokers": [], "Topics": []})
    return scene


def test_where_the_capture_is_near_the_broker_clients_that_go_on_late_each_time_are_far() -> None:
    (found,) = greeted([1, 2, 3, 4, 5]).findings("slow-network")
    assert "is 81 ms away" in found.what


def test_a_program_that_is_busy_as_it_starts_is_not_far() -> None:
    assert greeted([1, 1.01, 1.02, 1.03, 1.04, 1.05]).findings("slow-network") == []
    packets = packets_of(capture_of("streams-unrevoked-healthy"))
    assert diagnosed(packets[: len(packets) // 11], ["slow-network"]).findings == []
