"""A partition's log: offsets, limits, retention, timestamps, and the room that all logs share."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.log import NOTHING, FoundOffset, Log, Room
from kwire.broker.refused import Refused
from kwire.records import build, read_records
from kwire.schema import codes

T = 1_700_000_000_000


def made(*times: int, **how: Any) -> bytes:
    """A batch with a record at each of these times (ms after T)."""
    records = build([(None, b"v%d" % time) for time in times], timestamp=T + times[0], **how)
    if len(times) == 1:
        return records
    from kwire.records import Record

    listed = [Record(n, T + time, None, b"v%d" % time, []) for n, time in enumerate(times)]
    return build(listed, base_offset=0, **how)


def filled(*batches: bytes | bytearray, room: int = 1 << 30) -> Log:
    log = Log(Room(room))
    for data in batches:
        log.append(data, 4, T)
    return log


def offsets(batches: list[bytes]) -> list[int]:
    return [record.offset for batch in read_records(b"".join(batches)) for record in batch.records]


def test_offsets_and_epoch_are_assigned_and_the_checksum_still_fits() -> None:
    log = filled(made(0, 1, 2), made(3))
    batches = read_records(b"".join(log.read(0, 1 << 20, True)))
    assert [(b.base_offset, b.last_offset, b.partition_leader_epoch, b.crc_ok) for b in batches] == [
        (0, 2, 4, True),
        (3, 3, 4, True),
    ]
    assert (log.start, log.end) == (0, 4)


def test_a_batch_that_is_the_logs_own_is_not_copied() -> None:
    own = bytearray(made(3))
    log = filled(made(0, 1, 2), own)
    assert log.entries[1].data is own
    assert own == filled(made(0, 1, 2), made(3)).entries[1].data


def test_append_time_replaces_the_records_times() -> None:
    log = Log(Room(1 << 20))
    assert log.append(made(0, 1), 0, T + 500, append_time=True) == (0, T + 500)
    (batch,) = read_records(log.read(0, 1 << 20, True)[0])
    assert (batch.timestamp_type, batch.crc_ok) == ("LogAppendTime", True)
    assert [record.timestamp for record in batch.records] == [T + 500, T + 500]


def damaged(at: int, value: int) -> bytes:
    data = bytearray(made(0))
    data[at] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (b"", codes.CORRUPT_MESSAGE, "a batch of 0 bytes, the least is 61"),
        (made(0)[:-1], codes.CORRUPT_MESSAGE, "a length of 58, there are 57"),
        (made(0) + made(1), codes.INVALID_RECORD, "more than one batch for a partition"),
        (damaged(-1, 0xFF), codes.CORRUPT_MESSAGE, "the checksum is wrong"),
        (made(0, is_control=True), codes.INVALID_RECORD, "clients may not write control batches"),
        (build([]), codes.INVALID_RECORD, "0 records, but the last one's offset delta is 0"),
    ],
    ids=["empty", "cut", "two", "checksum", "control", "none"],
)
def test_what_is_no_batch_is_refused_and_nothing_is_written(data: bytes, code: int, why: str) -> None:
    log = filled(made(0))
    with pytest.raises(Refused) as refused:
        log.append(data, 0, T)
    assert (refused.value.code, refused.value.why, log.end) == (code, why, 1)


@pytest.mark.parametrize(
    ("offset", "limit", "whole", "until", "expected"),
    [
        (0, 1 << 20, True, None, [0, 1, 2, 3, 4]),
        (1, 1 << 20, True, None, [0, 1, 2, 3, 4]),
        (2, 1 << 20, True, None, [2, 3, 4]),
        (3, 1, True, None, [3, 4]),
        (3, 1, False, None, []),
        (5, 1 << 20, True, None, []),
        (0, 1 << 20, True, 3, [0, 1, 2]),
        (0, 140, True, None, [0, 1]),
    ],
)
def test_whole_batches_are_read(offset: int, limit: int, whole: bool, until: int | None, expected: list[int]) -> None:
    log = filled(made(0, 1), made(2), made(3, 4))
    assert offsets(log.read(offset, limit, whole, until)) == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, FoundOffset(0, T + 0, 4)),
        (T + 1, FoundOffset(1, T + 10, 4)),
        (T + 15, FoundOffset(2, T + 20, 4)),
        (T + 20, FoundOffset(2, T + 20, 4)),
        (T + 21, NOTHING),
    ],
)
def test_the_first_record_at_or_after_a_time(timestamp: int, expected: FoundOffset) -> None:
    assert filled(made(0, 10), made(20, 5)).first_after(timestamp) == expected


def test_the_record_with_the_greatest_time() -> None:
    assert filled(made(0, 30), made(20, 5)).latest_time() == FoundOffset(1, T + 30, 4)
    assert filled().latest_time() == NOTHING


def test_epochs_end_where_the_next_begins() -> None:
    log = Log(Room(1 << 20))
    for epoch in (0, 0, 3):
        log.append(made(0), epoch, T)
    assert [log.epoch_end(epoch) for epoch in (-1, 0, 2, 3, 9)] == [(-1, -1), (0, 2), (0, 2), (3, 3), (3, 3)]


def test_deleted_records_are_gone_for_readers_and_whole_batches_for_good() -> None:
    log = filled(made(0, 1), made(2, 3))
    size = log.size
    log.delete_before(3)
    assert (log.start, len(log), log.size) == (3, 1, size // 2)
    log.delete_before(99)
    assert (log.start, log.end, len(log), log.size) == (4, 4, 0, 0)


def test_retention_by_bytes_and_by_time() -> None:
    log = filled(*(made(number) for number in range(5)))
    log.keep_bytes(log.size // 5 * 2)
    assert (log.start, len(log)) == (3, 2)
    log.keep_since(T + 4)
    assert (log.start, len(log)) == (4, 1)


def test_the_oldest_batch_of_all_logs_makes_room() -> None:
    room = Room(3 * len(made(0)))
    first, second = Log(room), Log(room)
    for log in (first, second, first, second):
        log.append(made(0), 0, T)
    assert (first.start, second.start, room.used) == (1, 0, 3 * len(made(0)))
    first.close()
    assert room.used == 2 * len(made(0))


def test_many_batches_come_and_go_without_being_kept() -> None:
    log = filled(*(made(0) for _ in range(500)), room=10 * len(made(0)))
    assert (log.start, log.end, len(log)) == (490, 500, 10)
    assert offsets(log.read(490, 1 << 20, True)) == list(range(490, 500))


def test_who_waits_is_woken_by_a_batch_and_by_the_end() -> None:
    log, woken = filled(), []
    log.waiting[1] = lambda _: woken.append("a")
    log.append(made(0), 0, T)
    log.close()
    assert woken == ["a", "a"]


def test_batches_that_went_by_other_ways_are_forgotten_by_the_room() -> None:
    room = Room(1 << 30)
    log = Log(room)
    for _ in range(5_000):
        log.append(made(0), 0, T)
        log.delete_before(log.end)
    assert (room.used, len(log)) == (0, 0)
    assert len(room._order) < 2_100


def test_small_batches_count_with_what_they_take_besides() -> None:
    room = Room(100 * 1_000, overhead=930)
    log = Log(room)
    for _ in range(500):
        log.append(made(0), 0, T)
    assert len(log) == 100_000 // (930 + len(made(0)))


def test_a_time_is_found_among_many_batches_without_going_over_them_all() -> None:
    log = Log(Room(1 << 30))
    for number in range(3_000):
        log.append(made(0 if number % 1_000 else number), 0, T)
    log.append(made(9_000), 0, T)
    looked: list[int] = []

    class Watched(list[Any]):
        def __getitem__(self, at: Any) -> Any:
            looked.append(at)
            return super().__getitem__(at)

    log._entries = Watched(log._entries)
    assert log.first_after(T + 8_000) == FoundOffset(3_000, T + 9_000, 0)
    assert log.latest_time() == FoundOffset(3_000, T + 9_000, 0)
    assert log.first_after(T + 1_500).offset == 2_000
    assert log.first_after(T + 9_001) == NOTHING
    assert len(looked) < 3_000
    log.delete_before(2_500)
    assert log.first_after(T + 1_500).offset == 3_000
    log.delete_before(3_001)
    assert log.latest_time() == NOTHING


def test_a_batch_of_too_many_records_answers_with_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(made(0, 10, 20), made(30))
    monkeypatch.setattr("kwire.broker.log.OPENED", 2)
    assert log.first_after(T + 5) == FoundOffset(0, T + 20, 4)
    assert log.first_after(T + 25) == FoundOffset(3, T + 30, 4)
