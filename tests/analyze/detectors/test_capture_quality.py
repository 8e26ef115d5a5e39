"""What a capture lacks is said, and a whole one is left alone."""

from __future__ import annotations

from scenes import Scene, cut, diagnosed
from session.test_twins import translated

BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


def scene_of(took: float = 0.002) -> Scene:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 6):
        line.ask(at, "Heartbeat", 3, BEAT, {"ErrorCode": 0}, took)
    return scene


def said(scene: Scene) -> list[str]:
    return [f"{one.severity}: {one.what}" for one in diagnosed(scene.packets, ["capture-quality"]).findings]


def test_a_whole_capture_is_fine() -> None:
    assert said(scene_of()) == []


def test_one_direction() -> None:
    packets = [one for one in scene_of().packets if one.data[12:16] == bytes([10, 0, 0, 7])]
    (found,) = diagnosed(packets, ["capture-quality"]).findings
    assert found.severity == "warning"
    assert found.what == "all packets come from clients only; what brokers said is not in the capture"


def test_the_snaplen() -> None:
    (found,) = diagnosed(cut(scene_of().packets, 50), ["capture-quality"]).findings
    assert "cut off by the snaplen" in found.what


def test_losses() -> None:
    packets = scene_of().packets
    (found,) = diagnosed(packets[:6] + packets[7:], ["capture-quality"]).findings
    assert found.severity == "warning"
    assert "were not captured, in 1 of 1 connection" in found.what


def test_answers_before_their_requests() -> None:
    (found,) = said(scene_of(took=-0.2))
    assert found == (
        "warning: 5 answers stand before their requests, by up to 200 ms: the clock stepped, "
        "or packets came out of order"
    )


def test_a_clock_that_goes_back() -> None:
    packets = scene_of().packets
    stepped = [*packets[:6], *(one._replace(time=one.time - 7_000_000_000) for one in packets[6:])]
    (found,) = diagnosed(stepped, ["capture-quality"]).findings
    assert found.severity == "warning"
    assert found.what == (
        "the capture's clock went back 1 time, by 6.0 s at packet 7: it was set, or packets stand in another order "
        "than they came in"
    )
    assert [reference.packet for reference in found.evidence] == [7]


def test_the_same_traffic_before_and_after_translation_is_counted_once() -> None:
    once = scene_of().packets
    diagnosis = diagnosed(translated(once, "", "10.9.0.2:19092"))
    (found,) = diagnosis.findings
    assert (found.detector, found.severity, found.count) == ("capture-quality", "note", 1)
    assert "(10.0.0.7:50001>10.9.0.2:19092#1 is 10.0.0.7:50001>10.0.0.2:9092#1)" in found.what
    assert diagnosis.case.messages == diagnosed(once).case.messages
    assert diagnosis.case.coverage.connections == 1
