"""Frames from a stream: over pieces, packets and holes; what cannot be framed is said."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise
from struct import pack

import pytest

from kwire.capture.streams import Piece
from kwire.session.framing import COLLECTED, TAIL, Framer, Raw, Skipped

MARK = b"\0\0\0\x06FRAME"  # what the tests' searches believe in


def sized(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def piece(position: int, *packets: bytes, time: int = 100, missing: int = 0, cut: bool = False) -> Piece:
    """A piece of packets; their times count from time, their numbers are a tenth of it."""
    starts = list(accumulate((len(data) for data in packets), initial=position))[:-1] or [position]
    times = [time + n for n in range(len(starts))]
    return Piece(position, b"".join(packets), starts, times, [each // 10 + each % 10 for each in times], missing, cut)


def search(data: bytes, _: list[int]) -> int | None:
    at = data.find(MARK)
    return at if at >= 0 else None


def framer(lost: bool = False, max_size: int = 1000) -> Framer:
    return Framer(search, lost, max_size)


def short(raws: list[Raw]) -> list[tuple[int, bytes, str]]:
    return [(raw.position, raw.data[4:], raw.quality) for raw in raws]


# ---------------------------------------------------------------- whole frames

A, B, C = sized(b"alpha"), sized(b""), sized(b"c" * 300)
CUTS = [
    [A],
    [A + B + C],
    [A, B, C],
    [A[:2], A[2:]],  # within the size prefix
    [A[:1], A[1:2], A[2:3], A[3:4], A[4:]],
    [A[:4], A[4:]],
    [A + B[:3], B[3:] + C],
    [A[:-1], A[-1:] + B + C[:-1], C[-1:]],
    [bytes([byte]) for byte in A + B + C],
    [b"", A, b"", B],
]


@pytest.mark.parametrize("parts", CUTS)
@pytest.mark.parametrize("together", [True, False])
def test_frames_do_not_depend_on_pieces_and_packets(parts: list[bytes], together: bool) -> None:
    made, out, position = framer(), [], 0
    if together:
        out = made.feed([piece(0, *parts)])
    else:
        for part in parts:
            out += made.feed([piece(position, part)])
            position += len(part)
    whole = [(0, b"alpha", "ok"), (9, b"", "ok"), (13, b"c" * 300, "ok")]
    data = b"".join(parts)
    count = next(n for n in (3, 2, 1) if len(data) >= len(b"".join((A, B, C)[:n])))
    assert short(out) == whole[:count]
    assert (made.frames, made.waiting, made.finish("the end", False), made.skipped) == (count, 0, [], [])


def test_any_cutting_gives_the_same_frames_times_and_packets() -> None:
    rng = random.Random(1)
    data = b"".join(sized(rng.randbytes(rng.choice((0, 1, 5, 30, 200)))) for _ in range(40))
    for _ in range(60):
        cuts = [0, *sorted(rng.sample(range(1, len(data)), rng.randrange(1, 60))), len(data)]
        packets = [(low, data[low:high]) for low, high in pairwise(cuts)]
        made, out, at = framer(), [], 0
        while at < len(packets):
            count = rng.randrange(1, 6)
            some = packets[at : at + count]
            lows = [low for low, _ in some]
            out += made.feed([Piece(lows[0], b"".join(part for _, part in some), lows, [n + 10 for n in lows], lows)])
            at += count
        assert b"".join(raw.data for raw in out) == data
        for raw in out:
            end = raw.position + len(raw.data)
            first = max(low for low, _ in packets if low <= raw.position)
            last = max(low for low, _ in packets if low < end)
            assert (raw.packet, raw.last_packet, raw.time, raw.last_time) == (first, last, first + 10, last + 10)
            inside = [first, *(low for low, _ in packets if raw.position < low < end)]
            marks = [(max(low - raw.position, 0), low) for low in inside]
            assert raw.marks == (tuple(marks) if len(marks) > 1 else ())


def test_a_frame_over_hundreds_of_packets_is_put_together_once() -> None:
    data = sized(random.Random(2).randbytes(1_000_000))
    made = framer(max_size=1 << 21)
    for at in range(0, len(data) - 1400, 1400):
        assert made.feed([piece(at, data[at : at + 1400])]) == []
        assert len(made._parts) == at // 1400 + 1  # parts are kept as they came
    rest = len(data) // 1400 * 1400
    (raw,) = made.feed([piece(rest, data[rest:])])
    assert (raw.data, raw.size, raw.quality) == (data, 1_000_000, "ok")
    assert (len(raw.marks), made.waiting) == (len(data) // 1400 + 1, 0)


# ---------------------------------------------------------------- sizes that cannot be


@pytest.mark.parametrize(("size", "reason"), [
    (-1, "a size of -1 bytes cannot be"),
    (1001, "a size of 1,001 bytes cannot be"),
    (0x47455420, "a size of 1,195,725,856 bytes cannot be"),
])  # fmt: skip
def test_a_size_that_cannot_be_is_skipped_to_the_next_boundary(size: int, reason: str) -> None:
    made = framer()
    out = made.feed([piece(0, A, pack(">i", size) + b"junk", MARK + b"!", A)])
    assert short(out) == [(0, b"alpha", "ok"), (17, b"FRAME!", "ok"), (27, b"alpha", "ok")]
    assert made.take_skipped() == [Skipped(9, 8, 101, reason)]
    assert made.take_skipped() == []


@pytest.mark.parametrize("size", [0, 1000])
def test_the_smallest_and_the_largest_size(size: int) -> None:
    assert short(framer().feed([piece(0, sized(bytes(size)))])) == [(0, bytes(size), "ok")]


def test_a_negative_size_in_pieces_is_no_frame() -> None:
    made = framer()
    assert made.feed([piece(0, b"\xff\xff"), piece(2, b"\xff\xff"), piece(4, b"junk" + MARK + b"!")]) == [
        Raw(8, MARK + b"!", 6, 100, 100, 10, 10)
    ]
    assert made.skipped == [Skipped(0, 8, 100, "a size of -1 bytes cannot be")]


# ---------------------------------------------------------------- midstream


def test_what_stands_before_the_first_boundary_is_said() -> None:
    made = framer(lost=True)
    assert made.feed([piece(0, b"rest of a frame"), piece(15, b"more")]) == []
    assert made.waiting == 19
    assert short(made.feed([piece(19, b"and" + MARK + b"!" + A)])) == [(22, b"FRAME!", "ok"), (32, b"alpha", "ok")]
    assert made.skipped == [Skipped(0, 22, 100, "the capture begins in midstream")]


def test_a_boundary_that_lies_in_two_pieces_is_found() -> None:
    made = framer(lost=True)
    assert made.feed([piece(0, b"xx" + MARK[:5])]) == []
    assert short(made.feed([piece(7, MARK[5:] + b"!" + A * 3)]) + made.finish("the end", False))[0] == (
        2, b"FRAME!", "ok",
    )  # fmt: skip


def test_without_a_boundary_everything_is_skipped_at_the_end() -> None:
    made = framer(lost=True)
    made.feed([piece(0, b"x" * 30), piece(30, b"y" * 5)])
    assert made.finish("the capture ended", False) == []
    assert made.skipped == [Skipped(0, 35, 100, "the capture begins in midstream")]


def test_the_search_is_bounded_in_memory_and_in_work() -> None:
    searched = []

    def nothing(data: bytes, _: list[int]) -> int | None:
        searched.append(len(data))
        return None

    made, step = Framer(nothing, True), 1 << 14
    for n in range(400):
        made.feed([piece(n * step, b"z" * step)])
        assert made.waiting <= COLLECTED + step
    assert sum(searched) < 4 * 400 * step
    made.finish("the end", False)
    assert sum(skipped.length for skipped in made.skipped) == 400 * step
    ends = [skipped.position + skipped.length for skipped in made.skipped]
    assert [0, *ends[:-1]] == [skipped.position for skipped in made.skipped]
    assert made.skipped[0].length > COLLECTED - TAIL


# ---------------------------------------------------------------- holes


def test_a_hole_within_a_frame_costs_only_that_frame() -> None:
    made = framer()
    out = made.feed([piece(0, A + C[:100]), piece(209, C[200:] + A, time=200, missing=100)])
    assert short(out) == [(0, b"alpha", "ok"), (9, C[4:100], "gap"), (313, b"alpha", "ok")]
    gap = out[1]
    assert (gap.size, gap.note) == (300, "100 of 304 bytes are missing from the capture")
    assert (gap.time, gap.last_time, gap.packet, gap.last_packet) == (100, 200, 10, 20)


def test_a_hole_up_to_the_end_of_a_frame() -> None:
    out = framer().feed([piece(0, C[:100]), piece(304, A, time=200, missing=204)])
    assert short(out) == [(0, C[4:100], "gap"), (304, b"alpha", "ok")]
    assert out[0].note == "204 of 304 bytes are missing from the capture"


def test_behind_a_hole_over_a_frames_end_the_place_is_lost() -> None:
    made = framer()
    out = made.feed([piece(0, C[:100]), piece(350, b"??" + MARK + b"!", time=200, missing=250)])
    assert short(out) == [(0, C[4:100], "gap"), (352, b"FRAME!", "ok")]
    assert out[0].note == "204 of 304 bytes are missing from the capture"
    assert made.skipped == [Skipped(304, 48, 200, "46 bytes are missing at position 304")]


@pytest.mark.parametrize("have", [0, 1, 3])
def test_a_hole_in_the_size_loses_the_place(have: int) -> None:
    made = framer()
    out = made.feed([piece(0, A + C[:have]), piece(59, b"?" + MARK + b"!", missing=50 - have)])
    assert short(out) == [(0, b"alpha", "ok"), (60, b"FRAME!", "ok")]
    reason = f"{50 - have} bytes are missing at position {9 + have}"
    assert [(each.position, each.length, each.reason) for each in made.skipped] == [(9, 51, reason)]


def test_two_holes_in_one_frame() -> None:
    out = framer().feed([piece(0, C[:100]), piece(150, C[150:200], missing=50), piece(250, C[250:] + A, missing=50)])
    assert short(out) == [(0, C[4:100], "gap"), (304, b"alpha", "ok")]
    assert out[0].note == "50 of 304 bytes are missing from the capture"


def test_what_the_snaplen_cut_is_truncated_and_the_next_frame_is_whole() -> None:
    made = framer()
    out = made.feed([piece(0, C[:54]), piece(304, missing=250, cut=True), piece(304, A, time=200)])
    assert short(out) == [(0, C[4:54], "truncated"), (304, b"alpha", "ok")]
    assert out[0].note == "the capture's snaplen cut off all but 54 of 304 bytes"
    assert made.skipped == []


# ---------------------------------------------------------------- the end

ENDS = [
    (C[:100], "the capture ended", False, "the capture ended after 100 of 304 bytes"),
    (C[:100], "the capture ended", True, "the connection closed after 100 of 304 bytes"),
    (C[:4], "the connection fell silent", False, "the connection fell silent after 4 of 304 bytes"),
]


@pytest.mark.parametrize(("data", "why", "ended", "note"), ENDS)
def test_a_frame_that_is_not_whole_at_the_end_is_truncated(data: bytes, why: str, ended: bool, note: str) -> None:
    made = framer()
    made.feed([piece(0, A + data)])
    (raw,) = made.finish(why, ended)
    assert (raw.position, raw.data, raw.size, raw.quality, raw.note) == (9, data, 300, "truncated", note)
    assert (made.waiting, made.frames, made.skipped) == (0, 2, [])


@pytest.mark.parametrize("have", [1, 2, 3])
def test_less_than_a_size_at_the_end_is_skipped(have: int) -> None:
    made = framer()
    made.feed([piece(0, A + C[:have])])
    assert made.finish("the capture ended", False) == []
    assert made.skipped == [Skipped(9, have, 100, f"the capture ended after {have} bytes")]


def test_a_hole_at_the_end_stays_a_gap() -> None:
    made = framer()
    made.feed([piece(0, C[:100]), piece(250, C[250:260], missing=150)])
    (raw,) = made.finish("the capture ended", False)
    assert (raw.quality, raw.note) == ("gap", "150 of 304 bytes are missing from the capture")


def test_what_is_given_up_to_bound_memory_is_said() -> None:
    made = framer()
    made.feed([piece(0, C[:100])])
    made.give_up()
    assert (made.waiting, made.lost) == (0, True)
    assert short(made.feed([piece(100, C[100:] + MARK + b"!")])) == [(304, b"FRAME!", "ok")]
    assert made.take_skipped() == [Skipped(0, 304, 100, "given up to bound memory")]
