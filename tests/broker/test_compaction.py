"""Compaction: what stays, what goes and when, and that readers see it so."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.compaction import Rules, compact
from kwire.broker.log import Log, Room
from kwire.records import build, read_records

RULES = Rules(1 << 30, 1_000, 5_000, 0, 1 << 62, 0.5)
Pair = tuple[bytes | None, bytes | None]


def log_of(*batches: list[Pair], time: int = 0, **how: Any) -> Log:
    log = Log(Room(1 << 20))
    for number, pairs in enumerate(batches):
        log.append(build(pairs, timestamp=time + number, **how), 0, time + number)
    return log


def there(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    data = b"".join(log.read(log.start, 1 << 30, whole_first=True))
    return [(record.offset, record.key, record.value) for batch in read_records(data) for record in batch.records]


def test_the_newest_of_each_key_stays_with_its_offset() -> None:
    log = log_of([(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")], [(b"c", b"1"), (b"a", b"3")])
    assert compact(log, RULES, 100, force=True) == 2
    assert there(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3")]
    assert (log.start, log.end, len(log)) == (0, 5, 2)
    assert log.size == sum(len(entry.data) for entry in log.entries)
    assert log.first_after(2).offset == 3
    assert [batch.crc_ok for batch in read_records(b"".join(log.read(0, 1 << 20, whole_first=True)))] == [True, True]


def test_the_active_segment_is_left_alone_until_it_is_rolled() -> None:
    log = log_of([(b"a", b"1")], [(b"a", b"2")], time=10)
    assert compact(log, RULES, 500) == 0
    assert compact(log, RULES, 2_000) == 1
    assert there(log) == [(1, b"a", b"2")]
    small = log_of([(b"a", b"1")], [(b"a", b"2")], [(b"b", b"1")], time=10)
    assert compact(small, RULES._replace(segment_bytes=150), 11) == 1


def test_a_tombstone_stays_until_its_horizon() -> None:
    log = log_of([(b"a", b"1")], [(b"a", None), (b"b", b"1")])
    assert compact(log, RULES, 2_000) == 1
    assert there(log) == [(1, b"a", None), (2, b"b", b"1")]
    (batch,) = read_records(log.entries[0].data)
    assert [record.timestamp for record in batch.records] == [1, 1]
    assert compact(log, RULES, 6_999) == 0
    assert compact(log, RULES, 7_001) == 1
    assert there(log) == [(2, b"b", b"1")]


def test_what_is_young_and_what_is_mostly_clean_waits() -> None:
    log = log_of([(b"a", b"1")], [(b"a", b"2")])
    assert compact(log, RULES._replace(min_lag_ms=10_000), 5_000) == 0
    assert compact(log, RULES, 5_000) == 1
    log.append(build([(b"a", b"3")], timestamp=5_000), 0, 5_000)
    assert compact(log, RULES._replace(dirty=0.9), 9_000) == 0
    assert compact(log, RULES._replace(dirty=0.9, max_lag_ms=10), 9_000) == 1


def test_open_transactions_hold_it_up_and_aborted_records_go() -> None:
    log = Log(Room(1 << 20))
    how: Any = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True, "timestamp": 1}
    log.append(build([(b"a", b"plain")], timestamp=1), 0, 1)
    log.append(build([(b"a", b"aborted")], base_sequence=0, **how), 0, 1)
    log.mark(7, 0, False, 0, 1, 0, 2)
    log.append(build([(b"a", b"open")], base_sequence=1, **how), 0, 3)
    assert compact(log, RULES, 100, force=True) == 1
    assert b"aborted" not in [value for _, _, value in there(log)]
    assert log.stable == 3


def test_a_producers_last_batch_stays_without_its_records() -> None:
    log = log_of([(b"a", b"1")], producer_id=5, producer_epoch=0, base_sequence=0)
    log.append(build([(b"a", b"2")], timestamp=1), 0, 1)
    assert compact(log, RULES, 9, force=True) == 1
    assert [batch.base_sequence for batch in read_records(log.entries[0].data)] == [0]
    assert there(log) == [(1, b"a", b"2")]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_compacted_topic_takes_no_record_without_a_key(socketless: Any, acks: int) -> None:
    socketless.state.cluster.configs.change(2, "t", [("cleanup.policy", 0, "compact")])
    part = {"Index": 0, "Records": build([(b"k", b"v"), (None, b"v")], timestamp=socketless.clock.now() // 1_000_000)}
    body = {"Acks": acks, "TimeoutMs": 1, "TopicData": [{"Name": "t", "PartitionData": [part]}]}
    row = socketless.ask("Produce", 9, body)["Responses"][0]["PartitionResponses"][0]
    assert row["ErrorCode"] == 87
    why = "Compacted topic cannot accept message without key in topic partition t-0."
    assert row["RecordErrors"] == [{"BatchIndex": 1, "BatchIndexErrorMessage": why}]


def test_the_sweep_compacts_and_keeps_what_only_deleting_would_drop(socketless: Any) -> None:
    change = socketless.state.cluster.configs.change
    change(2, "t", [("cleanup.policy", 0, "compact"), ("segment.ms", 0, "10"), ("retention.ms", 0, "1")])
    now = socketless.clock.now() // 1_000_000
    for value in (b"1", b"2"):
        socketless.produce("t", records=build([(b"k", value)], timestamp=now))
    socketless.clock.run(1_000)
    socketless.state.retain()
    log = socketless.state.cluster.topics["t"].partitions[0].log
    assert there(log) == [(1, b"k", b"2")]
    change(2, "t", [("cleanup.policy", 0, "compact,delete")])
    socketless.state.retain()
    assert there(log) == []
