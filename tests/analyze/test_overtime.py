"""Columns over time: nothing is lost when slots are joined, and held answers stand apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kwire.analyze.overtime import BINS, DECADE, FINEST, SHORTEST, SLOTS, OverTime, bins_of, edge, percentile
from kwire.session.batch import ExchangeBatch
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def _batches(name: str) -> list[ExchangeBatch]:
    return list(Reading([CAPTURES / name], tracking=True).batches())


@pytest.mark.parametrize("name", ["classic.pcap.gz", "evict-stopped.pcap.gz", "ipv6.pcap"])
def test_every_exchange_is_counted_once(name: str) -> None:
    found, batches = OverTime(), _batches(name)
    for batch in batches:
        found.add(batch)
    exchanges = sum(map(len, batches))
    assert found.exchanges.sum() == exchanges
    assert found.sent.sum() == sum(int((batch.request.size[batch.request.there] + 4).sum()) for batch in batches)
    paired = sum(int((batch.request.there & batch.response.there & ~batch.token).sum()) for batch in batches)
    assert found.prompt.sum() + found.held.sum() == paired
    assert found.held.sum() > 0
    assert 0 < found.used <= SLOTS
    assert found.length > FINEST


@pytest.mark.parametrize("most", [1, 7, 100, SLOTS])
def test_fewer_slots_hold_the_same(most: int) -> None:
    found = OverTime()
    for batch in _batches("evict-stopped.pcap.gz"):
        found.add(batch)
    made = found.grouped(most)
    assert made.count == len(made.exchanges) <= most
    assert sum(made.exchanges) == found.exchanges.sum()
    assert [sum(column) for column in zip(*made.held, strict=True)] == found.held.sum(axis=0).tolist()
    assert sum(made.wrong) == sum(map(sum, found.errors.values()))
    assert {name: sum(counts) for name, counts in made.errors.items()} == {
        name: int(counts.sum()) for name, counts in found.errors.items()
    }


def test_errors_and_requests_without_an_answer_are_told_by_name() -> None:
    found = OverTime()
    for batch in _batches("evict-stopped.pcap.gz"):
        found.add(batch)
    assert found.errors["UNKNOWN_MEMBER_ID"].sum() > 0


def test_latencies_fall_below_the_edge_of_their_bin() -> None:
    given = np.array([-5, 0, SHORTEST, SHORTEST + 1, 10 * SHORTEST, 10**9, 10**13])
    bins = bins_of(given)
    assert bins.tolist() == [0, 0, 0, 1, DECADE, 5 * DECADE, BINS - 1]
    inside = list(zip(given.tolist(), bins.tolist(), strict=True))[3:6]
    assert all(edge(at - 1) < value <= edge(at) for value, at in inside)


def test_percentiles() -> None:
    counts = [0] * BINS
    assert percentile(counts, 0.5) is None
    counts[6], counts[12] = 9, 1
    assert percentile(counts, 0.5) == edge(6)
    assert percentile(counts, 0.99) == edge(12)


def test_nothing() -> None:
    found = OverTime()
    assert found.used == 0
    assert found.grouped(10).count == 0
