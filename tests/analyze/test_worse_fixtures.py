"""Each fixture as a worse capture would have it: one direction, short packets, losses, cut anywhere, all packets twice.
No finding appears that the whole capture does not have, but what is said of the capture itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from scenes import Packet, cut, diagnosed, packets_of
from session.conftest import block

from kwire.analyze.coverage import Coverage
from kwire.analyze.findings import Finding, TimeFormat
from kwire.analyze.groups import GroupHistories
from kwire.analyze.standing import verdict
from kwire.analyze.trace import Trace
from kwire.analyze.verdicts import judge
from kwire.session.connection_info import ConnectionInfo
from kwire.session.reader import Reader

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = sorted(f"captures/{path.name}" for path in (FIXTURES / "captures").glob("*.pcap*"))
PORTS = {9092, 9094, 19010}
IP_AT = {1: 14, 101: 0, 113: 16, 276: 20, 0: 4}
SELF = "capture-quality"
Told = tuple[str, frozenset[tuple[str, str | int]]]


def to_broker(packet: Packet) -> bool:
    """Whether a packet goes to a broker, by its port."""
    at = IP_AT[packet.link]
    first = packet.data[at] >> 4
    tcp = at + (40 if first == 6 else (packet.data[at] & 15) * 4)
    return int.from_bytes(packet.data[tcp + 2 : tcp + 4], "big") in PORTS


@cache
def whole(name: str) -> list[Packet]:
    return packets_of(FIXTURES / name)


def told(packets: list[Packet]) -> set[Told]:
    return {(one.detector, frozenset(one.about.items())) for one in diagnosed(packets).findings if one.detector != SELF}


@cache
def told_of(name: str) -> set[Told]:
    return told(whole(name))


def lossy(packets: list[Packet]) -> list[Packet]:
    dice = random.Random(3)
    return [packet for packet in packets if dice.random() >= 0.03]


def set_back(packets: list[Packet]) -> list[Packet]:
    middle = len(packets) // 2
    return packets[:middle] + [packet._replace(time=packet.time - 30_000_000_000) for packet in packets[middle:]]


def part(tenth: int) -> Callable[[list[Packet]], list[Packet]]:
    """The first tenths of a capture, and from there on."""
    return lambda packets: packets[: len(packets) * tenth // 11]


def rest(tenth: int) -> Callable[[list[Packet]], list[Packet]]:
    return lambda packets: packets[len(packets) * tenth // 11 :]


CHANGES: dict[str, Callable[[list[Packet]], list[Packet]]] = {
    "no requests": lambda packets: [one for one in packets if not to_broker(one)],
    "no answers": lambda packets: [one for one in packets if to_broker(one)],
    "snaplen 96": lambda packets: cut(packets, 96),
    "3 % lost": lossy,
    "doubled": lambda packets: [one for packet in packets for one in (packet, packet)],
    "clock set back": set_back,
    **{f"up to {tenth}": part(tenth) for tenth in range(1, 11)},
    **{f"from {tenth}": rest(tenth) for tenth in range(1, 11)},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_no_finding_appears(name: str, change: str) -> None:
    known = told_of(name)
    for detector, about in told(CHANGES[change](whole(name))):
        assert any(detector == other and fits(dict(about), dict(wider)) for other, wider in known), (detector, about)


def fits(about: dict[str, str | int], wider: dict[str, str | int]) -> bool:
    """Whether both are about the same client, group and broker, as far as they name them: what stands for several
    names none, and a topic may be known by its id only."""
    return all(
        about[name] == wider[name] for name in ("client_id", "group", "broker") if name in about and name in wider
    )


@pytest.mark.parametrize("name", ["captures/evict-fenced.pcap.gz", "captures/sasl.pcap.gz", "captures/txn.pcap.gz"])
def test_of_requests_alone_consumers_and_rebalances_are_not_told_to_have_failed(name: str) -> None:
    told = judged(CHANGES["no answers"](whole(name)))
    assert [one.what for one in told if one.severity != "note"] == []


def judged(packets: list[Packet]) -> list[Finding]:
    """What trace and groups say."""
    trace, groups, coverage = Trace(), GroupHistories(), Coverage()

    def ended(connection: ConnectionInfo) -> None:
        groups.activity.close(connection, connection.coverage)
        coverage.close(connection)

    reader = Reader("made.pcap", tracking=True, ended=ended)
    for batch in [*reader.feed(block(packets, 1)), *reader.finish()]:
        for exchange in batch:
            trace.add(exchange)
            groups.add(exchange)
    groups.finish()
    told = [verdict(one, trace.end, TimeFormat(), coverage) for one in trace.consumers()]
    return told + [one for _, _, found in judge(groups, TimeFormat(), coverage=coverage).groups for one in found]


def graver(packets: list[Packet]) -> Counter[tuple[str, str, str]]:
    """How often who is said to have what, notes left out."""
    return Counter((one.subject, one.detector, one.severity) for one in judged(packets) if one.severity != "note")


@pytest.mark.parametrize("change", ["clock set back", "3 % lost"])
@pytest.mark.parametrize(
    "name", ["evict-consumer-protocol", "evict-stopped", "evict-fenced", "ipv6", "evict-refused-commits"]
)
def test_groups_and_trace_say_no_more_than_of_the_whole(name: str, change: str) -> None:
    packets = whole(next(one for one in NAMES if one.startswith(f"captures/{name}.pcap")))
    assert graver(CHANGES[change](packets)) - graver(packets) == Counter()


def test_groups_and_trace_say_where_the_clock_was_set_back() -> None:
    packets = whole("captures/evict-fenced.pcap.gz")
    told = {one.subject: one.what for one in judged(set_back(packets)) if "clock goes back" in one.what}
    jump = "the capture's clock goes back by 30.0 s at packet 277"
    reached = "came as far as step 7, fetch"
    assert told == {
        "client usurper": f"{reached}; {jump}: what it waits for or repeats at the end, and how long, is not judged",
        "group billing": f"{jump}: how long something took across it, and what came first, is not judged",
    }


def test_what_came_behind_a_step_of_the_clock_is_judged_as_without_it() -> None:
    (found,) = (one for one in judged(set_back(whole("captures/evict-stopped.pcap.gz"))) if one.severity != "note")
    assert "evicted at 08:16:04.777, 6.0 s after its last heartbeat (frame 306)" in found.what
