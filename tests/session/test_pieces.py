"""Pieces put together, cut and collected."""

from __future__ import annotations

from kwire.capture.streams import PACKET_COST, Piece
from kwire.session.pieces import Collected, joined, rest, up_to

ONE, TWO = Piece(10, b"abcd", [10, 12], [1, 2], [7, 8]), Piece(14, b"ef", [14], [3], [9])


def test_pieces_in_a_row_are_one() -> None:
    assert joined([ONE]) is ONE
    assert joined([ONE, TWO]) == Piece(10, b"abcdef", [10, 12, 14], [1, 2, 3], [7, 8, 9])


def test_the_rest_of_a_piece_begins_with_the_packet_that_brought_it() -> None:
    assert rest(*ONE[:5], 1) == Piece(11, b"bcd", [10, 12], [1, 2], [7, 8])
    assert rest(*ONE[:5], 2) == Piece(12, b"cd", [12], [2], [8])
    assert rest(*ONE[:5], 4).data == b""


def test_pieces_are_parted_before_the_packet_that_comes_too_late() -> None:
    assert up_to([ONE, TWO], 9) == ([ONE, TWO], [])
    assert up_to([ONE, TWO], 8) == ([ONE], [TWO])
    first, second = Piece(10, b"ab", [10], [1], [7]), Piece(12, b"cd", [12], [2], [8])
    assert up_to([ONE, TWO], 7) == ([first], [second, TWO])
    assert up_to([ONE, TWO], 6) == ([], [ONE, TWO])


def test_what_is_collected_is_counted_with_what_its_packets_cost() -> None:
    collected = Collected()
    collected.add(ONE)
    assert (collected.size, collected.cost, collected.several) == (4, 4 + 2 * PACKET_COST, False)
    collected.add(TWO)
    assert (collected.size, collected.several, collected.first_time) == (6, True, 1)
    assert collected.whole() == joined([ONE, TWO])
    assert (collected.several, collected.drop(4)) == (False, 14)
    assert (collected.size, collected.cost, collected.whole()) == (2, 2 + PACKET_COST, TWO)
    assert collected.drop(2) == 16
    assert (collected.size, collected.cost) == (0, 0)
