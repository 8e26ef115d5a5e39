"""Records in flight: who holds which, what becomes of them, what is stored, and what is loaded again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.coordinator.share.acquiring import RECORD_LIMIT, Ask, acquire
from kwire.coordinator.share.inflight import Acquired, RecordState
from kwire.coordinator.share.partition import ACCEPT, GAP, REJECT, RELEASE, RENEW, Ack, SharePartition, ShareRules
from kwire.coordinator.share.states import SharePartitionKey, ShareStates, StateBatch
from kwire.coordinator.types import MS

PLACE = SharePartitionKey("g", UUID(int=1), 0)
INVALID_REQUEST, INVALID_RECORD_STATE = 42, 121


class Made:
    """A share partition and the log that it reads: batches as (first, last)."""

    def __init__(self, *batches: tuple[int, int], **rules: Any) -> None:
        self.rules = ShareRules(**rules)
        self.states = ShareStates()
        self.states.initialise(PLACE, 1, -1)
        self.batches = list(batches)
        self.share = self.loaded()

    def loaded(self) -> SharePartition:
        stored = self.states.read(PLACE, 0)
        assert stored is not None
        return SharePartition(PLACE, stored, 0, lambda: self.rules, self.states)

    def acquire(self, member: str = "a", most: int = 500, now: int = 0, **how: Any) -> list[tuple[int, ...]]:
        offset = self.share.next_offset()
        found = [each for each in self.batches if each[1] >= offset]
        return [tuple(each) for each in acquire(self.share, Ask(member, most, **how), offset, found, now * MS)]

    def acknowledge(self, *acks: tuple[int, int, Any], member: str = "a", now: int = 0) -> int:
        made = [Ack(first, last, types if isinstance(types, list) else [types]) for first, last, types in acks]
        check = self.share.acknowledge(member, made, now * MS)
        self.share.finish()
        return check.error

    def stored(self) -> tuple[int, int, list[tuple[int, ...]]]:
        stored = self.states.known[PLACE]
        return stored.start, stored.complete, [tuple(each) for each in stored.batches]


def test_what_is_accepted_is_over() -> None:
    made = Made((0, 4), (5, 9))
    assert made.acquire(most=3) == [(0, 4, 1)]
    assert made.acquire("b") == [(5, 9, 1)]
    assert made.acquire("c") == []
    assert made.acknowledge((0, 4, ACCEPT)) == 0
    assert (made.share.start, made.share.end) == (5, 9)
    assert made.acknowledge((5, 9, REJECT), member="b") == 0
    assert (made.share.start, made.share.end, made.share.in_flight) == (10, 10, 0)
    assert made.acquire("c") == []


def test_what_is_released_is_delivered_again_until_its_deliveries_are_used_up() -> None:
    made = Made((0, 0), delivery_count_limit=3)
    for deliveries in (1, 2, 3):
        assert made.acquire() == [(0, 0, deliveries)]
        assert made.acknowledge((0, 0, RELEASE)) == 0
    assert made.acquire() == []
    assert made.share.start == 1


def test_every_offset_may_go_its_own_way() -> None:
    made = Made((0, 4))
    made.acquire()
    assert made.acknowledge((0, 4, [ACCEPT, RELEASE, GAP, REJECT, RELEASE])) == 0
    assert made.share.start == 1
    assert made.acquire("b") == [(1, 1, 2), (4, 4, 2)]
    assert made.stored() == (0, 3, [(0, 0, 2, 1), (1, 1, 0, 1), (2, 3, 4, 1), (4, 4, 0, 1)])


@pytest.mark.parametrize(
    ("acks", "error"),
    [
        ([(0, 0, 9)], INVALID_REQUEST),
        ([(0, 12, ACCEPT)], INVALID_REQUEST),
        ([(20, 21, ACCEPT)], INVALID_REQUEST),
        ([(0, 4, ACCEPT), (4, 4, ACCEPT)], INVALID_RECORD_STATE),
        ([(0, 4, ACCEPT), (5, 6, ACCEPT)], INVALID_RECORD_STATE),
        ([(0, 4, [ACCEPT] * 5), (5, 5, ACCEPT)], INVALID_RECORD_STATE),
    ],
)
def test_all_acknowledgements_of_a_partition_count_or_none(acks: list[Any], error: int) -> None:
    made = Made((0, 4), (5, 9))
    made.acquire(most=5)
    made.acquire("b", most=5)
    assert made.acknowledge(*acks) == error
    assert made.share.complete == 0
    assert made.acknowledge((0, 4, ACCEPT)) == 0


def test_the_check_says_why() -> None:
    made = Made((0, 4))
    made.acquire()
    check = made.share.acknowledge("b", [Ack(0, 4, [ACCEPT])], 0)
    assert (check.number, check.name, check.why) == (3, "member", "offsets 0 to 4: held by a, not by b")
    made.acknowledge((0, 4, RELEASE))
    check = made.share.acknowledge("a", [Ack(2, 2, [ACCEPT])], 0)
    assert (check.name, check.why) == ("state", "offsets 0 to 4: AVAILABLE, not ACQUIRED")


def test_a_lock_ends_by_itself_unless_it_is_renewed() -> None:
    made = Made((0, 1), record_lock_duration_ms=1_000)
    made.acquire(now=0)
    made.acknowledge((1, 1, RENEW), now=600)
    assert made.share.tick(999 * MS) == 0
    assert made.share.due == 1_000 * MS
    assert made.share.tick(1_000 * MS) == 1
    assert made.acquire("b", now=1_000) == [(0, 0, 2)]
    assert made.acknowledge((0, 0, ACCEPT)) == INVALID_RECORD_STATE
    assert made.share.tick(1_600 * MS) == 1
    assert made.acquire("b", now=1_600) == [(1, 1, 2)]


def test_renewal_may_be_off() -> None:
    made = Made((0, 1), renew_acknowledge_enable=False)
    made.acquire()
    assert made.acknowledge((0, 1, RENEW)) == INVALID_RECORD_STATE


def test_a_member_gives_back_what_it_holds() -> None:
    made = Made((0, 1), (2, 3))
    made.acquire("a", most=2)
    made.acquire("b", most=2)
    assert made.share.release("a") == 2
    assert made.acquire("c") == [(0, 1, 2)]
    assert made.acknowledge((2, 3, ACCEPT), member="b") == 0


def test_a_released_record_is_not_for_the_fetch_that_released_it() -> None:
    made = Made((0, 0), (1, 1))
    made.acquire(most=1)
    made.share.acknowledge("a", [Ack(0, 0, [RELEASE])], 0)
    assert made.acquire() == [(1, 1, 1)]
    made.share.finish()
    assert made.acquire() == [(0, 0, 2)]


def test_not_one_more_than_asked_for() -> None:
    made = Made((0, 9))
    assert made.acquire(most=3, mode=RECORD_LIMIT) == [(0, 2, 1)]
    assert made.acquire("b", most=4, mode=RECORD_LIMIT) == [(3, 6, 1)]
    assert made.acquire("c", most=1) == [(7, 9, 1)]


def test_ranges_come_in_pieces() -> None:
    made = Made((0, 1), (2, 3), (4, 8), (9, 9))
    assert made.acquire(pieces=3) == [(0, 3, 1), (4, 8, 1), (9, 9, 1)]


def test_the_window_is_full() -> None:
    made = Made((0, 59), (60, 119), partition_max_record_locks=100)
    assert made.acquire() == [(0, 119, 1)]
    made.batches.append((120, 129))
    assert not made.share.has_room()
    assert made.acquire() == []
    made.acknowledge((0, 59, ACCEPT))
    assert made.acquire() == [(120, 129, 1)]


def test_records_that_failed_often_come_a_few_at_a_time_and_the_last_time_alone() -> None:
    made = Made((0, 7), delivery_count_limit=5)
    counts = []
    for _ in range(40):
        for first, last, deliveries in made.acquire():
            counts.append((last - first + 1, deliveries))
            made.acknowledge((first, last, RELEASE))
    assert counts[:3] == [(8, 1), (8, 2), (8, 3)]
    assert {size for size, deliveries in counts if deliveries == 4} == {4}
    assert {size for size, deliveries in counts if deliveries == 5} == {1}
    assert made.share.start == 8


def test_aborted_records_are_nobodys() -> None:
    made = Made((0, 1), (2, 3), (4, 4))
    got = acquire(made.share, Ask("a", 10), 0, made.batches, 0, [(2, 3)])
    assert got == [Acquired(0, 1, 1), Acquired(4, 4, 1)]
    made.acknowledge((0, 1, ACCEPT), (4, 4, ACCEPT))
    assert made.share.start == 5


def test_the_log_loses_its_beginning() -> None:
    made = Made((0, 3), (4, 7))
    made.acquire(most=4)
    made.acquire("b", most=4)
    made.acknowledge((0, 1, RELEASE))
    made.share.log_starts_at(6)
    assert (made.share.start, made.share.complete) == (6, 0)
    assert made.acknowledge((0, 3, ACCEPT)) == 0, "what lies before the start is not looked at"
    assert made.acknowledge((4, 7, ACCEPT), member="b") == 0
    made.share.log_starts_at(2)
    assert made.share.start == 6


def test_the_log_loses_everything() -> None:
    made = Made()
    made.share.log_starts_at(9)
    assert (made.share.start, made.share.next_offset()) == (9, 9)


def test_what_was_compacted_away_is_not_waited_for() -> None:
    made = Made((0, 1), (2, 3))
    made.acquire()
    made.acknowledge((0, 3, RELEASE))
    made.batches = [(2, 3)]
    assert made.share.next_offset() == 0
    assert made.acquire() == [(2, 3, 2)]
    made.acknowledge((2, 3, ACCEPT))
    assert made.share.start == 4


def test_a_leader_goes_on_where_another_left_off() -> None:
    made = Made((0, 3), (4, 7))
    made.acquire(most=4)
    made.acquire("b", most=4)
    made.acknowledge((1, 2, ACCEPT), (3, 3, RELEASE))
    made.share.release("b")
    made.share = made.loaded()
    assert (made.share.start, made.share.end, made.share.complete) == (0, 7, 2)
    assert made.acquire("c") == [(0, 0, 1), (3, 7, 2)], "what is alike is stored together"
    made.acknowledge((0, 0, ACCEPT), (3, 7, ACCEPT), member="c")
    assert made.share.start == 8


def test_all_that_was_loaded_is_decided() -> None:
    made = Made((0, 3))
    made.acquire()
    made.acknowledge((0, 3, ACCEPT))
    made.share = made.loaded()
    assert (made.share.start, made.share.end, made.share.next_offset()) == (4, 4, 4)


def test_who_has_read_an_older_state_is_fenced() -> None:
    made = Made((0, 3))
    made.acquire()
    made.states.initialise(PLACE, 2, 0)
    check = made.share.acknowledge("a", [Ack(0, 3, [ACCEPT])], 0)
    assert (check.error, check.name) == (6, "state epoch")
    whole = made.share.window.first.whole
    assert whole is not None
    assert whole.state is RecordState.ACQUIRED
    made.states.forget("g")
    assert made.acknowledge((0, 3, ACCEPT)) == -1


def test_locks_that_ended_early_take_no_room() -> None:
    made = Made()
    for offset in range(2_000):
        made.batches = [(offset, offset)]
        made.acquire()
        made.acknowledge((offset, offset, ACCEPT))
    assert len(made.share._locks) < 100
    assert made.states.known[PLACE].batches == [StateBatch(1999, 1999, RecordState.ACKNOWLEDGED, 1)]
