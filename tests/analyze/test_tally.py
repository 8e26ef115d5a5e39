"""Equal things counted."""

from __future__ import annotations

from kwire.analyze import tally as module
from kwire.analyze.findings import Reference
from kwire.analyze.tally import Tallies, Tally


def ref(packet: int) -> Reference:
    return Reference("a.pcap", packet, packet, "c>b#1", "x")


def test_the_first_ones_and_the_last_are_kept() -> None:
    tally = Tally()
    for at in range(1, 100):
        tally.add(ref(at), at, at)
    assert [one.packet for one in tally.samples] == [1, 2, 3, 4, 5, 6, 7, 99]
    assert (tally.count, tally.first, tally.last, tally.total, tally.most) == (99, 1, 99, 4950, 99)


def test_keys_are_bounded() -> None:
    tallies: Tallies[int] = Tallies()
    for at in range(module.MOST + 5):
        tallies.add(at, None, at)
    assert (len(tallies.known), tallies.unkept) == (module.MOST, 5)
