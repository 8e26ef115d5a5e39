"""Captures that lack packets, hold them twice or in another order, begin anywhere: cut anywhere, the same tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.tables.columns import DEFAULT

BASES = ("kafkajs.pcap", "pyclients.pcap", "sasl-v0.pcap", "ipv6.pcap", "franz.pcap.gz", "old39.pcap.gz")
HARMS = ("none", "drop", "twice", "swap", "cut", "all")


def harmed(packets: list[Any], harm: str, rate: float, chance: random.Random) -> list[Any]:
    """The packets with some missing, again, in another order, or cut by a snaplen."""
    out = list(packets)
    if harm in ("drop", "all"):
        out = [packet for packet in out if chance.random() > rate]
    if harm in ("twice", "all"):
        for at in range(len(out)):
            if chance.random() < rate:
                later = min(len(out) - 1, at + chance.randrange(1, 30))
                out.insert(later, (out[later][0], *out[at][1:]))
    if harm in ("swap", "all"):
        for at in range(len(out) - 1):
            if chance.random() < 2 * rate:
                out[at], out[at + 1] = out[at + 1], out[at]
    if harm == "cut":
        out = [(time, data[:90] if chance.random() < rate else data, *rest) for time, data, *rest in out]
    return out


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    base=st.sampled_from(BASES), harm=st.sampled_from(HARMS), rate=st.sampled_from([0.003, 0.02, 0.1]),
    begin=st.floats(0, 0.5), cuts=st.lists(st.floats(0.05, 0.95), max_size=2),
    window=st.sampled_from([1000, 5000, 24000]),
    times=st.sampled_from([1, 2, 0.4]), seed=st.integers(0, 1 << 30), all_tables=st.booleans(), again=st.booleans(),
)  # fmt: skip
def test_tables_are_the_same(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call,
    cut: Call, base: str, harm: str, rate: float, begin: float, cuts: list[float], window: int, times: float,
    seed: int, all_tables: bool, again: bool,
) -> None:  # fmt: skip
    packets = packets_of(unpacked(base))
    packets = harmed(packets[int(begin * len(packets)) :], harm, rate, random.Random(seed))
    ends = sorted({0, len(packets), *(int(place * len(packets)) for place in cuts)})
    paths = [save(tmp_path / f"{low}.pcap", packets[low:high]) for low, high in pairwise(ends)]
    names = DEFAULT if all_tables else ("messages", "exchanges", "connections", "quality")
    found = cut(paths, names, int(window * times), window, again=again)[0]
    assert found == expected(paths, names, window)


# found by such captures: each once went wrong
@pytest.mark.parametrize(
    ("base", "harm", "rate", "window", "size"),
    [("franz.pcap.gz", "drop", 0.1, 1 << 23, 40000), ("old39.pcap.gz", "all", 0.002, 8000, 40000)],
)
def test_known_ones(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call,
    cut: Call, base: str, harm: str, rate: float, window: int, size: int,
) -> None:  # fmt: skip
    for seed in range(4):
        packets = harmed(packets_of(unpacked(base)), harm, rate, random.Random(seed))
        path = save(tmp_path / f"{seed}.pcap", packets)
        assert cut([path], DEFAULT, size, window)[0] == expected([path], DEFAULT, window)
