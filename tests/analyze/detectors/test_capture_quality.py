"""What a capture lacks is said, and a whole one is left alone."""

from __future__ import annotations

from pathlib import Path

from scenes import MILLISECOND, Scene, cut, diagnosed
from session.test_twins import translated

from kwire.analyze.doctor import Doctor
from kwire.session.reading import Reading

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


def test_each_kind_of_twins_is_told(tmp_path: Path) -> None:
    """Two captures of two points, and address translation behind one of them for some connections."""
    scene, doctor = Scene(), Doctor()
    for at in range(3):
        scene.connect(at).ask(at + 0.5, "ApiVersions", 0, {}, {})
    once = scene.packets
    some = [one for one in once if one.time < once[0].time + 1_900_000_000]
    later = [one._replace(time=one.time + MILLISECOND) for one in once]
    paths = []
    for name, packets in (("one", once), ("two", later), ("three", translated(some, "", "10.9.0.2:19092")[1::2])):
        paths.append(tmp_path / f"{name}.pcap")
        scene.traffic.save(paths[-1], packets)
    for batch in Reading(list(paths), tracking=True, ended=doctor.close).batches():
        doctor.add(batch)
    said = [(one.count, one.what) for one in doctor.diagnose().findings]
    assert said == [
        (3, "3 connections are in two captures (10.0.0.7:50001>10.0.0.2:9092#1 is the first), which were taken at two "
            "points; each is counted once, as it was seen first"),
        (2, "2 connections are there twice, under other addresses (10.0.0.7:50001>10.9.0.2:19092#1 is "
            "10.0.0.7:50001>10.0.0.2:9092#1), before and after address translation; each is counted once, as it was "
            "seen first"),
    ]  # fmt: skip


def test_the_same_traffic_before_and_after_translation_is_counted_once() -> None:
    once = scene_of().packets
    diagnosis = diagnosed(translated(once, "", "10.9.0.2:19092"))
    (found,) = diagnosis.findings
    assert (found.detector, found.severity, found.count) == ("capture-quality", "note", 1)
    assert "(10.0.0.7:50001>10.9.0.2:19092#1 is 10.0.0.7:50001>10.0.0.2:9092#1)" in found.what
    assert diagnosis.case.messages == diagnosed(once).case.messages
    assert diagnosis.case.coverage.connections == 1
