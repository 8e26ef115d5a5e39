"""What is counted of captures agrees with what kwire stats counts; labels are bounded."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kwire.monitor import meters as module
from kwire.monitor.meters import OTHER, Histogram, Meters, Values, cumulated
from kwire.session.reading import Reading

CLASSIC = "fixtures/captures/classic.pcap.gz"


def _meters(path: str, most: int = 100) -> Meters:
    meters = Meters(most)
    for batch in Reading([path], tracking=True, ended=meters.close).batches():
        meters.add(batch)
    meters.finish()
    return meters


@pytest.mark.parametrize("name", ["classic", "txn", "consumer848", "sasl"])
def test_the_counts_are_those_of_stats(name: str, kwire: Any) -> None:
    path = next(str(found) for found in Path("fixtures/captures").glob(name + ".pcap*"))
    meters, stats = _meters(path), json.loads(kwire("stats", path, "--format", "json").text)
    total = stats["total"]
    assert meters.exchanges.total() == total["count"]
    assert (meters.sent.total(), meters.got.total()) == (total["sent_bytes"], total["got_bytes"])
    assert meters.unanswered.total() == total["unanswered"]
    errors: Counter[str] = Counter()
    for (*_, error), count in meters.errors.items():
        errors[error] += count
    assert errors == total["errors"]
    assert meters.connections == len(stats["connections"])


def test_what_is_held_is_told_apart() -> None:
    meters = _meters(CLASSIC)
    assert {api for api, _, _ in meters.held} <= {"Fetch", "JoinGroup", "SyncGroup"}
    assert "Heartbeat" in {api for api, _, _ in meters.latency}


def test_a_group_rebalances_and_the_doctor_finds_the_eviction() -> None:
    meters = _meters(CLASSIC)
    assert meters.rebalances["classic-billing"] >= 2
    assert any(detector == "evicted" for detector, _, _ in meters.findings)


def test_labels_are_bounded() -> None:
    values = Values(2)
    assert [values.of(text) for text in ("a", "b", "c", "a", "\x1b[2J")] == ["a", "b", OTHER, "a", OTHER]
    assert "\x1b" not in Values(2).of("\x1b[2J")
    assert len(Values(1).of("x" * 10_000)) <= 200
    assert len({client for _, client, _ in _meters(CLASSIC, 1).exchanges}) <= 2


def test_so_are_their_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _meters(CLASSIC).exchanges
    monkeypatch.setattr(module, "MOST_TOGETHER", 3)
    found = _meters(CLASSIC).exchanges
    assert found.total() == whole.total()
    assert sum(client != OTHER for _, client, _ in found) == 3
    assert len(found) <= 3 + len({api for api, _, _ in whole})


def test_histograms_add_up() -> None:
    histogram = Histogram()
    histogram.add(np.array([0.0001, 0.0005, 0.2, 100.0]))
    assert sum(histogram.counts) == 4
    assert (histogram.counts[0], histogram.counts[-1]) == (2, 1)
    assert list(cumulated(histogram.counts))[-1] == 4
    assert histogram.total == pytest.approx(100.2006)
