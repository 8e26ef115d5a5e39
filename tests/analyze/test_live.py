"""A doctor of traffic that goes on: looks change nothing, tell what the whole has too, and memory stays bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import Packet, Scene, packets_of
from session.conftest import block

from kwire.analyze import live
from kwire.analyze.doctor import Diagnosis, Doctor
from kwire.analyze.findings import Finding
from kwire.analyze.live import LiveDoctor, ToldFinding, gathered_news
from kwire.session.reader import Reader, Settings

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHOSEN = [
    "doctor/acl-denied.pcap", "doctor/broker-gone.pcap.gz", "doctor/controller-change.pcap.gz", "doctor/idle-cut.pcap",
    "doctor/lso-stuck.pcap", "doctor/rebalance-storm.pcap.gz", "doctor/share-redelivery.pcap",
    "doctor/slow-client.pcap", "doctor/throttled.pcap.gz", "doctor/unrevoked.pcap", "captures/notkafka.pcap",
    "captures/mid.pcapng", "captures/sasl.pcap.gz",
]  # fmt: skip
SETTINGS = Settings(patience=60_000_000_000)
DENIED = {"ThrottleTimeMs": 0, "ErrorCode": 30, "ErrorMessage": None, "NodeId": -1, "Host": "", "Port": -1}


def watched(packets: list[Packet], doctor: LiveDoctor, looks: int = 10) -> tuple[Diagnosis, list[ToldFinding]]:
    """The diagnosis in the end, and what was told at so many looks before."""
    reader, told = Reader("lo", SETTINGS, tracking=True, ended=doctor.close), list[ToldFinding]()
    step = max(1, len(packets) // looks)
    for at in range(0, len(packets), step):
        for batch in reader.feed(block(packets[at : at + step], at + 1)):
            doctor.add(batch)
        told += doctor.look(reader.open_connections)
    for batch in reader.finish():
        doctor.add(batch)
    return doctor.diagnose(reader.open_connections), told


def unwatched(packets: list[Packet], looks: int = 10) -> Diagnosis:
    """The same without looks."""
    doctor = Doctor(time_of_day=True)
    reader = Reader("lo", SETTINGS, tracking=True, ended=doctor.close)
    step = max(1, len(packets) // looks)
    for at in range(0, len(packets), step):
        for batch in reader.feed(block(packets[at : at + step], at + 1)):
            doctor.add(batch)
    for batch in reader.finish():
        doctor.add(batch)
    return doctor.diagnose()


def records(findings: list[Finding]) -> list[str]:
    return sorted(repr(one.record()) for one in findings)


@pytest.mark.parametrize("name", [name for name in CHOSEN if (FIXTURES / name).exists()])
def test_looks_change_nothing_and_tell_what_the_whole_has(name: str) -> None:
    packets = packets_of(FIXTURES / name)
    diagnosis, told = watched(packets, LiveDoctor())
    whole = unwatched(packets)
    assert records(diagnosis.findings) == records(whole.findings)
    assert (diagnosis.quiet, diagnosis.blind) == (whole.quiet, whole.blind)
    there = {(one.detector, repr(sorted(one.about.items()))) for one in whole.findings}
    gone = {repr(one.finding.about) for one in told if one.gone}
    for one in told:
        about = one.finding.detector, repr(sorted(one.finding.about.items()))
        assert about in there or repr(one.finding.about) in gone, one


def denials(seconds: range, every: int = 10) -> list[Packet]:
    """A consumer that may not see its group, again and again, on one connection."""
    scene = Scene()
    line = scene.connect(seconds.start, "member")
    line.ask(seconds.start, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
    for second in range(seconds.start + 1, seconds.stop, every):
        line.ask(second, "FindCoordinator", 2, {"Key": "billing", "KeyType": 0}, DENIED)
    return scene.packets


def test_what_two_looks_find_is_told_once_and_again_when_there_is_much_more() -> None:
    _, told = watched(denials(range(1000)), LiveDoctor(["acl-denied"]), looks=100)
    counts = [one.finding.count for one in told]
    assert told[0].before is None
    assert [one.before.count for one in told[1:] if one.before] == counts[:-1]
    assert 4 < len(counts) < 25
    assert all(one.finding.last and one.before and one.before.last and
               (one.finding.count >= 2 * one.before.count or one.finding.last - one.before.last >= live.AGAIN)
               for one in told[1:])  # fmt: skip


def test_facts_are_let_go_and_what_was_found_stays() -> None:
    packets = denials(range(1000))
    doctor = LiveDoctor(["acl-denied", "kafka4-blocked", "capture-quality"], age=200_000_000_000)
    diagnosis, _ = watched(packets, doctor, looks=50)
    (found,) = diagnosis.findings
    assert doctor.aged is not None
    assert found.count == 100
    assert found.last is not None
    assert found.last - found.time == 990_000_000_000
    assert diagnosis.case.messages == 202
    assert sorted(diagnosis.quiet) == ["capture-quality", "kafka4-blocked"]


def test_a_client_that_negotiated_before_is_not_blocked_for_it() -> None:
    """What a connection said before the doctor began anew is not known any more, and not taken for unsaid."""
    scene = Scene()
    line = scene.connect(0, "c1").ask(0.1, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": [
        {"ApiKey": 1, "MinVersion": 0, "MaxVersion": 99}]})  # fmt: skip
    for second in range(1, 400):
        line.ask(second, "Heartbeat", 4, {"GroupId": "g", "MemberId": "m"}, {"ErrorCode": 0})
    diagnosis, _ = watched(scene.packets, LiveDoctor(["kafka4-blocked"], age=50_000_000_000), looks=40)
    assert diagnosis.findings == []


@pytest.mark.slow
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new group with each request: more than is kept makes the doctor begin anew."""
    monkeypatch.setattr(live, "MOST_BYTES", 60_000)
    monkeypatch.setattr(live, "MOST_FOUND", 50)
    scene = Scene()
    line = scene.connect(0, "member")
    for number in range(600):
        line.ask(number, "FindCoordinator", 2, {"Key": f"group-{number}", "KeyType": 0}, DENIED)
    doctor = LiveDoctor(["acl-denied"])
    costs: list[int] = []
    reader = Reader("lo", SETTINGS, tracking=True, ended=doctor.close)
    for at in range(0, len(scene.packets), 20):
        for batch in reader.feed(block(scene.packets[at : at + 20], at + 1)):
            doctor.add(batch)
        doctor.look(reader.open_connections)
        costs.append(doctor.cost)
    assert max(costs) < 80_000
    diagnosis = doctor.diagnose(reader.open_connections)
    assert doctor.aged is not None
    assert len(diagnosis.findings) + doctor.unkept >= 600
    assert len(diagnosis.findings) < 600


def test_new_findings_that_are_alike_are_told_as_one() -> None:
    def finding(partition: int) -> Finding:
        words = f"shop was refused a batch for orders-{partition}"
        about: dict[str, str | int] = {"client_id": "shop", "topic": "orders", "partition": partition}
        return Finding("error", words, time=partition, detector="message-too-large", about=about)

    again = ToldFinding(finding(70), finding(70))
    gone = ToldFinding(finding(71), gone=True)
    news = gathered_news([again, *(ToldFinding(finding(number)) for number in range(60)), gone])
    assert [(one.finding.stands_for, one.before is None, one.gone) for one in news] == [
        (60, True, False), (1, False, False), (1, True, True),
    ]  # fmt: skip
