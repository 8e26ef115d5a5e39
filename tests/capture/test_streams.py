"""One direction of a connection: order, repetition, overlap, holes, cut segments, and sequence numbers that wrap."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.capture.streams import AHEAD, BACK, PACKET_COST, RUN_COST, WRAP, Piece, SegmentRun, Stream, signed

TEXT = bytes(range(256)) * 2
FIRST = 1000


def run(low: int, high: int, number: int = 1, first: int = FIRST, kept: int | None = None) -> SegmentRun:
    """Bytes low to high of TEXT, of which kept were captured."""
    data = TEXT[low:high] if kept is None else TEXT[low : low + kept]
    return SegmentRun((first + low) % WRAP, data, high - low, [0], [number * 10], [number])


def opened(first: int = FIRST) -> Stream:
    stream = Stream()
    stream.open((first - 1) % WRAP)
    return stream


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0, 0), (1, 1), (-1, -1), (WRAP - 1, -1), (1 - WRAP, 1), (1 << 31, -(1 << 31)), ((1 << 31) - 1, (1 << 31) - 1)],
)
def test_sequence_numbers_differ_by_the_shorter_way(difference: int, expected: int) -> None:
    assert signed(difference) == expected


@pytest.mark.parametrize(
    ("spans", "repeated"),
    [
        ([(0, 10), (10, 30)], 0),
        ([(10, 30), (0, 10)], 0),
        ([(20, 30), (10, 20), (0, 10)], 0),
        ([(0, 10), (0, 10), (10, 30), (0, 10)], 20),
        ([(0, 20), (10, 30)], 10),
        ([(0, 20), (5, 15), (20, 30)], 10),
        ([(0, 10), (9, 10), (10, 30)], 1),  # a keep-alive carries the last byte again
        ([(0, 30), (0, 10), (10, 30)], 30),
        ([(15, 30), (5, 25), (0, 6)], 11),
        ([(0, 0), (0, 30)], 0),
    ],
)
@pytest.mark.parametrize("first", [FIRST, WRAP - 7, WRAP - 1, 0])
def test_bytes_come_once_and_in_order(make: Any, spans: list[tuple[int, int]], repeated: int, first: int) -> None:
    one_by_one, at_once = opened(first), opened(first)
    for number, (low, high) in enumerate(spans, 1):
        one_by_one.take([run(low, high, number, first)])
    at_once.take([run(low, high, number, first) for number, (low, high) in enumerate(spans, 1)])
    for stream in (one_by_one, at_once):
        assert make.data(stream) == TEXT[:30]
        assert make.in_order(stream)
        assert (stream.position, stream.missing, stream.repeated) == (30, 0, repeated)
        assert (stream.next, stream.held, stream.held_bytes) == ((first + 30) % WRAP, [], 0)


def test_an_overlap_is_told_of_the_packets_that_brought_what_is_new() -> None:
    stream = opened()
    stream.take([run(0, 5)])
    stream.take([SegmentRun(FIRST + 2, TEXT[2:12], 10, [0, 2, 6], [20, 30, 40], [2, 3, 4])])
    stream.take([SegmentRun(FIRST + 4, TEXT[4:20], 16, [0, 8], [50, 60], [5, 6])])
    assert stream.pieces == [
        Piece(0, TEXT[:5], [0], [10], [1]),
        Piece(5, TEXT[5:12], [5, 8], [30, 40], [3, 4]),
        Piece(12, TEXT[12:20], [12], [60], [6]),
    ]


def test_extend_adds_to_what_take_brought() -> None:
    stream = opened(WRAP - 3)
    stream.take([run(0, 2, 1, WRAP - 3)])
    stream.extend(TEXT[2:9], [2, 6], [20, 30], [2, 3])
    assert stream.pieces[1] == Piece(2, TEXT[2:9], [2, 6], [20, 30], [2, 3])
    assert (stream.position, stream.next) == (9, 6)


def test_without_a_syn_the_first_block_begins_with_its_lowest_byte(make: Any) -> None:
    stream = Stream()
    stream.take([])
    assert (stream.next, stream.first) == (None, None)
    stream.take([run(10, 20, 1, WRAP - 5), run(0, 10, 2, WRAP - 5)])
    assert (make.data(stream), stream.first, stream.syn) == (TEXT[:20], WRAP - 5, None)


def test_what_lies_before_the_first_byte_is_a_repetition(make: Any) -> None:
    stream = Stream()
    stream.take([run(10, 20)])
    stream.take([run(0, 15, 2)])
    stream.take([run(5, 25, 3)])
    assert (make.data(stream), stream.repeated) == (TEXT[10:25], 30)
    assert stream.pieces[1] == Piece(10, TEXT[20:25], [10], [30], [3])


def test_a_late_syn_moves_nothing(make: Any) -> None:
    stream = Stream()
    stream.take([run(3, 8)])
    stream.open(FIRST - 1)
    stream.take([run(8, 12, 2)])
    assert (make.data(stream), stream.syn, stream.first) == (TEXT[3:12], FIRST - 1, FIRST + 3)


def test_a_hole_holds_what_lies_behind_it_until_it_is_filled(make: Any) -> None:
    stream = opened()
    stream.take([run(5, 10), run(20, 30, 2)])
    assert (stream.pieces, stream.held_bytes, len(stream.held)) == ([], 15, 2)
    stream.take([run(0, 5, 3)])
    assert (make.data(stream), stream.held_bytes, len(stream.held)) == (TEXT[:10], 10, 1)
    stream.take([run(10, 20, 4)])
    assert (make.data(stream), stream.held_bytes, stream.missing) == (TEXT[:30], 0, 0)


def test_holes_are_given_up_one_after_the_other(make: Any) -> None:
    stream = opened()
    stream.take([run(5, 10), run(10, 12, 2), run(20, 30, 3)])
    assert stream.give_up() == 5
    assert make.gaps(stream) == [(5, 5, False)]
    assert stream.pieces[0] == Piece(5, b"", [5], [10], [1], 5)
    assert (make.data(stream), stream.held_bytes) == (TEXT[5:12], 10)
    assert stream.give_up() == 8
    assert make.gaps(stream) == [(5, 5, False), (20, 8, False)]
    assert (stream.position, stream.missing, stream.next) == (30, 13, FIRST + 30)
    assert stream.give_up() == 0
    assert make.in_order(stream)


def test_bytes_that_come_after_their_hole_was_given_up_are_a_repetition(make: Any) -> None:
    stream = opened()
    stream.take([run(5, 10)])
    stream.give_up()
    stream.take([run(0, 8, 2)])
    assert (make.data(stream), stream.repeated, stream.missing) == (TEXT[5:10], 8, 5)


def test_a_cut_segment_says_what_is_missing_and_which_packet_was_cut(make: Any) -> None:
    stream = opened()
    stream.take([run(0, 10, 1, kept=4), run(10, 20, 2)])
    assert stream.pieces == [
        Piece(0, TEXT[:4], [0], [10], [1]),
        Piece(10, b"", [4], [10], [1], 6, True),
        Piece(10, TEXT[10:20], [10], [20], [2]),
    ]
    assert (stream.missing, stream.position) == (6, 20)
    assert make.in_order(stream)


@pytest.mark.parametrize("kept", range(11))
def test_a_repetition_that_is_cut_brings_only_what_it_has(make: Any, kept: int) -> None:
    stream = opened()
    stream.take([run(0, 6)])
    stream.take([run(0, 10, 2, kept=kept)])
    stream.take([run(10, 12, 3)])
    had = max(kept, 6)
    assert make.data(stream) == TEXT[:had] + TEXT[10:12]
    assert make.gaps(stream) == ([] if had == 10 else [(10, 10 - had, True)])
    assert make.in_order(stream)


def test_a_run_of_several_packets_is_cut_in_the_last() -> None:
    stream = opened()
    stream.take([SegmentRun(FIRST, TEXT[:13], 20, [0, 10], [10, 20], [1, 2])])
    assert stream.pieces == [
        Piece(0, TEXT[:13], [0, 10], [10, 20], [1, 2]),
        Piece(20, b"", [13], [20], [2], 7, True),
    ]


def test_a_fin_ends_the_stream_once_all_before_it_is_there() -> None:
    stream = opened(WRAP - 2)
    assert (stream.end, stream.ended) == (None, False)
    stream.take([run(0, 5, 1, WRAP - 2)])
    stream.close(8)
    assert (stream.end, stream.ended) == (10, False)
    stream.take([run(5, 10, 2, WRAP - 2)])
    assert stream.ended


def test_a_fin_before_anything_else_ends_nothing() -> None:
    stream = Stream()
    stream.close(77)
    assert (stream.end, stream.ended) == (None, False)


def test_a_second_syn_is_remembered_and_moves_nothing() -> None:
    stream = opened()
    stream.take([run(0, 5)])
    stream.open(FIRST - 1)
    assert (stream.syn, stream.first, stream.position) == (FIRST - 1, FIRST, 5)


@pytest.mark.slow
def test_very_many_holes_are_given_up(make: Any) -> None:
    stream = opened()
    stream.take([SegmentRun(FIRST + 1 + 2 * number, b"x", 1, [0], [number], [number]) for number in range(100_000)])
    assert stream.held_bytes == 100_000
    lost = 0
    while stream.held:
        lost += stream.give_up()
    assert (lost, stream.missing, stream.held_bytes, stream.position) == (100_000, 100_000, 0, 200_000)
    assert make.data(stream) == b"x" * 100_000


FAR = [AHEAD + 1000, BACK + 1000, (1 << 31) - 5000]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_stray_packet_costs_nothing(make: Any, far: int, sign: int) -> None:
    stream = opened()
    stream.take([run(0, 10, 1)])
    stream.take([SegmentRun((FIRST + sign * far) % WRAP, b"stray", 5, [0], [20], [2])])
    if sign > 0:
        assert stream.lone
    stream.take([run(10, 20, 3)])
    while stream.held:
        assert stream.give_up() == 0
    stream.take([run(20, 30, 4)])
    assert (make.data(stream), make.gaps(stream), stream.held_bytes, stream.held_cost) == (TEXT[:30], [], 0, 0)
    assert stream.stray + stream.repeated == 5


@pytest.mark.parametrize("far", FAR[1:])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_stray_packet_in_front_costs_nothing(make: Any, far: int, sign: int) -> None:
    stream = Stream()
    stray = SegmentRun((FIRST + sign * far) % WRAP, b"stray", 5, [0], [10], [1])
    stream.take([stray, run(0, 10, 2), run(10, 20, 3)])
    while stream.held:
        stream.give_up()
    stream.take([run(20, 30, 4)])
    assert (make.data(stream), make.gaps(stream)) == (TEXT[:30], [])


@pytest.mark.parametrize("lost", [AHEAD + 1, BACK + 1, (1 << 31) + 5, WRAP - BACK - 1000])
def test_a_jump_that_goes_on_is_believed(make: Any, lost: int) -> None:
    stream = opened()
    stream.take([run(0, 10, 1)])
    stream.take([SegmentRun((FIRST + 10 + lost) % WRAP, b"far", 3, [0], [20], [2])])
    stream.take([SegmentRun((FIRST + 13 + lost) % WRAP, b"away", 4, [0], [30], [3])])
    if stream.held:
        assert (stream.lone, stream.give_up()) == (False, lost)
    assert (make.data(stream), [gap.missing for gap in make.gaps(stream)]) == (TEXT[:10] + b"faraway", [lost])
    stream.take([SegmentRun((FIRST + 17 + lost) % WRAP, b"!", 1, [0], [40], [4])])
    assert make.data(stream).endswith(b"away!")


def test_what_was_captured_twice_does_not_come_again(make: Any) -> None:
    stream = opened()
    data = bytes(1 << 20)
    whole = [SegmentRun((FIRST + (at << 20)) % WRAP, data, 1 << 20, [0], [at], [at]) for at in range(80)]
    stream.take(whole)
    again = [one._replace(numbers=[one.numbers[0] + 80]) for one in whole]
    for one in again:
        stream.take([one])
    assert (stream.position, make.gaps(stream), stream.back) == (80 << 20, [], [])


@pytest.mark.parametrize("far", [BACK + 1000, (1 << 31) - 5000])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_stray_fin_ends_nothing(far: int, sign: int) -> None:
    stream = opened()
    stream.take([run(0, 10)])
    assert not stream.near((FIRST + sign * far) % WRAP)
    stream.close((FIRST + sign * far) % WRAP)
    assert stream.end is None
    stream.close(FIRST + 10)
    assert stream.ended


@pytest.mark.parametrize("kept", [None, 0])
def test_what_is_held_is_counted_with_what_its_packets_cost(kept: int | None) -> None:
    stream = opened()
    stream.take([run(at, at + 1, at, kept=kept) for at in range(1, 101)])
    assert stream.held_cost == 100 * (RUN_COST + PACKET_COST) + stream.held_bytes
    stream.give_up()
    assert (stream.held_cost, stream.held_bytes) == (0, 0)


def test_many_copies_of_a_stray_are_left_out_at_once() -> None:
    stream = opened()
    stream.take([run(0, 10, 1)])
    stream.take([SegmentRun((FIRST + BACK * 2) % WRAP, b"far", 3, [0], [at * 10], [at]) for at in range(2, 500)])
    assert (stream.lone, stream.give_up(), stream.held, stream.held_cost, stream.stray) == (True, 0, [], 0, 3 * 498)
