"""What a capture can have seen of connections."""

from __future__ import annotations

from scenes import Packet, Scene, cut, diagnosed
from session.conftest import block

from kwire.analyze.case import Case
from kwire.analyze.coverage import Coverage
from kwire.analyze.doctor import Diagnosis
from kwire.session.connection_info import ConnectionInfo
from kwire.session.reader import Reader

BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


def scene_of(syn: bool = True) -> Scene:
    scene = Scene()
    line = scene.connect(0, syn=syn)
    for at in range(1, 6):
        line.ask(at, "Heartbeat", 3, BEAT, {"ErrorCode": 0})
    return scene


def coverage_of(packets: list[Packet]) -> Coverage:
    found: Diagnosis = diagnosed(packets, ["capture-quality"])
    case: Case = found.case
    return case.coverage


def from_client(packet: Packet) -> bool:
    return packet.data[12:16] == bytes([10, 0, 0, 7])


def test_a_whole_connection() -> None:
    coverage = coverage_of(scene_of().packets)
    assert (coverage.connections, coverage.midstream, coverage.one_sided, coverage.incomplete) == (1, 0, "", False)
    assert coverage.answers_seen("10.0.0.7")


def test_one_from_its_midst() -> None:
    assert coverage_of(scene_of(syn=False).packets).midstream == 1


def test_one_direction_only() -> None:
    packets = scene_of().packets
    assert coverage_of([one for one in packets if from_client(one)]).one_sided == "client only"
    answers = coverage_of([one for one in packets if not from_client(one)])
    assert (answers.one_sided, answers.incomplete) == ("broker only", True)


def test_cut_by_the_snaplen() -> None:
    coverage = coverage_of(cut(scene_of().packets, 50))
    assert coverage.incomplete
    assert coverage.cut > 0


def test_bytes_that_are_missing() -> None:
    packets = scene_of().packets
    coverage = coverage_of(packets[:6] + packets[7:])
    assert sum(coverage.missing) > 0
    assert coverage.lossy == 1


def test_the_clocks_of_captures_that_are_read_together() -> None:
    """Each has one that steps: connections that close later tell theirs too, and none twice."""
    coverage = Coverage()
    infos: list[ConnectionInfo] = []
    for name in ("first.pcap", "second.pcap"):
        packets = scene_of().packets
        stepped = [*packets[:6], *(one._replace(time=one.time - 7_000_000_000) for one in packets[6:])]
        reader = Reader(name, ended=infos.append)
        reader.feed(block(stepped, 1))
        reader.finish()
    for info in [*infos, *infos]:
        coverage.close(info)
    assert [(reference.capture, reference.packet) for _, reference in coverage.clock] == [
        ("first.pcap", 7), ("second.pcap", 7),
    ]  # fmt: skip
