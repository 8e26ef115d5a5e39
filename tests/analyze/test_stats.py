"""A capture in numbers: percentiles to 2%, counts over time, and rows that agree with the exchanges behind them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scenes import Scene
from session.conftest import block

from kwire.analyze import measures
from kwire.analyze import stats as module
from kwire.analyze.measures import FINEST, Latencies, Timeline, buckets_of
from kwire.analyze.stats import OTHERS, Stats
from kwire.render.stats import stats_lines
from kwire.session.reader import Reader
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
MS = 1_000_000


def collected(*names: str) -> Stats:
    stats = Stats()
    for batch in Reading([CAPTURES / name for name in names], tracking=True, ended=stats.close).batches():
        stats.add(batch)
    return stats


def add(latencies: Latencies, value: int) -> None:
    latencies.add({int(buckets_of(np.array([value]))[0]): 1}, value, value)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_percentiles_are_right_to_two_percent(share: float) -> None:
    rng = random.Random(7)
    values = sorted(round(rng.lognormvariate(15, 2)) for _ in range(5000))
    latencies = Latencies()
    for value in values:
        add(latencies, value)
    exact = values[max(round(share * len(values)) - 1, 0)]
    found = latencies.percentile(share)
    assert found is not None
    assert abs(found - exact) <= 0.021 * exact
    assert (latencies.count, latencies.highest) == (5000, values[-1])


def test_a_percentile_lies_within_what_was_measured() -> None:
    latencies = Latencies()
    assert latencies.percentile(0.5) is None
    for value in (1_000_000, 1_000_001):
        add(latencies, value)
    assert latencies.percentile(0.01) is not None
    assert latencies.percentile(1.0) in (1_000_000, 1_000_001)


@pytest.mark.parametrize("value", [0, -5, 1])
def test_no_time_at_all_and_less_than_that(value: int) -> None:
    latencies = Latencies()
    add(latencies, value)
    assert latencies.count == 1
    found = latencies.percentile(0.5)
    assert found is not None
    assert found <= 1


def test_counts_over_time_stay_few_and_none_is_lost() -> None:
    timeline = Timeline()
    for second in range(100_000):
        timeline.add({second * 1_000_000_000 // FINEST: 1})
    assert len(timeline.counts) <= measures.BUCKETS
    assert sum(timeline.counts.values()) == 100_000
    parts = timeline.over(0, 99_999 * 1_000_000_000, 10)
    assert sum(parts) == 100_000
    assert max(parts) - min(parts) < 400


@pytest.mark.parametrize(("moments", "parts"), [([0, 1, 2], [3, 0]), ([0, 10], [1, 1]), ([5], [0, 1])])
def test_counts_in_equal_parts(moments: list[int], parts: list[int]) -> None:
    timeline = Timeline()
    for moment in moments:
        timeline.add({moment * 1_000_000_000 // FINEST: 1})
    assert timeline.over(0, 10_000_000_000, 2) == parts


def test_a_single_moment_has_no_length() -> None:
    timeline = Timeline()
    timeline.add({7 // FINEST: 1})
    assert sum(timeline.over(7, 7, 5)) == 1


def test_what_is_counted_of_a_capture() -> None:
    stats = collected("classic.pcap.gz")
    assert (stats.total.count, stats.total.unanswered) == (166, 2)
    assert stats.total.errors == Counter({79: 3, 27: 3, 15: 1, 16: 1, 25: 1})
    assert sum(measure.count for measure in stats.apis.values()) == 166
    assert sum(measure.count for measure in stats.clients.values()) == 166
    assert stats.apis["Heartbeat v3"].errors == Counter({27: 3, 25: 1})
    assert list(stats.brokers) == ["127.0.0.1:9092"]
    assert list(stats.topics) == ["classic-orders"]
    assert [kind for kind, _ in stats.groups()] == ["api", "client", "broker", "topic"]


def test_connections_with_what_they_are() -> None:
    stats = collected("notkafka.pcap")
    found = Counter(row.what for row in stats.connections)
    assert found["Kafka"] == 2
    assert found["refused"] == 1
    assert found["nothing said"] == 1
    (refused,) = [row for row in stats.connections if row.what == "refused"]
    assert (refused.ending, refused.exchanges, refused.name) == ("reset", 0, "127.0.0.1:51830>127.0.0.1:9099#1")


def test_beyond_so_many_names_the_rest_is_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 2)
    stats = collected("classic.pcap.gz")
    assert len(stats.apis) == 3
    assert OTHERS in stats.apis
    assert sum(measure.count for measure in stats.apis.values()) == 166


def test_beyond_so_many_connections_the_rest_is_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(module, "MOST_HOSTS", 0)
    stats, whole = collected("notkafka.pcap"), Counter({"Kafka": 2, "refused": 1, "nothing said": 1})
    assert (whole - stats.kinds, stats.kinds.total() - len(stats.connections)) == (Counter(), stats.connections_untold)
    assert [row.exchanges > 0 for row in stats.connections].count(True) == 1
    assert [row.exchanges > 0 for row in stats.connections].count(False) == 1
    (refused,) = stats.refused.values()
    assert (refused.count, refused.hosts) == (1, set())
    lines = ["".join(text for text, _ in line) for line in stats_lines(stats, 80)]
    assert lines[-1] == f"  … and {stats.connections_untold} connections that are only counted"


def test_a_row_of_json() -> None:
    row = collected("classic.pcap.gz").apis["Heartbeat v3"].row()
    assert (row["count"], row["unanswered"]) == (32, 0)
    assert row["errors"] == {"REBALANCE_IN_PROGRESS": 3, "UNKNOWN_MEMBER_ID": 1}
    assert row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"]


def test_connections_that_are_not_over_may_stand_for_all() -> None:
    stats = Stats()
    seen = []
    for batch in Reading([CAPTURES / "share.pcap"]).batches():
        stats.add(batch)
        seen += batch.connections
    stats.connections_of(dict.fromkeys(seen))
    assert sum(row.exchanges for row in stats.connections) == stats.total.count


def test_an_answer_before_its_request_is_not_measured() -> None:
    scene = Scene()
    beat = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}
    line = scene.connect(0)
    for at in range(1, 6):
        line.ask(at, "Heartbeat", 3, beat, {"ErrorCode": 0}, took=-0.2 if at % 2 else 0.004)
    reader, stats = Reader("made.pcap"), Stats()
    for batch in [*reader.feed(block(scene.packets, 1)), *reader.finish()]:
        stats.add(batch)
    row = stats.total.row()
    assert (row["count"], row["answered_before_asked"]) == (5, 3)
    assert row["p50_ns"] == pytest.approx(4_000_000, rel=0.02)
    assert stats.total.latencies.lowest == 4_000_000


def test_where_a_broker_held_all_none_is_work() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Fetch", 4, {"Topics": []}, {"Responses": []})
    stats, reader = Stats(), Reader("made.pcap", tracking=True)
    for batch in (*reader.feed(block(scene.packets, 1)), *reader.finish()):
        stats.add(batch)
    found = stats.apis["Fetch v4"]
    assert (found.latencies.count, found.work.count) == (1, 0)


def test_what_a_quota_made_requests_wait_is_held_and_no_work() -> None:
    """librdkafka goes on sending while the broker does not listen: up to 23 s from a request to its answer."""
    stats = collected("../doctor/throttled.pcap.gz")
    limited = stats.clients["limited"].row()
    assert limited["p99_ns"] > 20_000_000_000 > 1_000_000_000 > limited["work_max_ns"]
    assert limited["held_ns"] > 300_000_000_000
    assert collected("../doctor/throttled-healthy.pcap.gz").clients["limited"].row()["held_ns"] == 0


def test_a_request_that_waits_when_the_capture_ends_is_pending_and_no_error() -> None:
    scene, stats, reader = Scene(), Stats(), Reader("made.pcap", tracking=True)
    scene.connect(0).ask(1, "Heartbeat", 3, {"GroupId": "g", "MemberId": "m", "GenerationId": 1})
    for batch in (*reader.feed(block(scene.packets, 1)), *reader.finish()):
        stats.add(batch)
    assert (stats.total.count, stats.total.pending, stats.total.unanswered) == (1, 1, 0)
    assert not stats.total.errors
