"""Records in pieces: boundaries, and which packets brought what was inside."""

from __future__ import annotations

import random

import pytest

from kwire.capture.streams import Piece
from kwire.capture.tls.records import begins_record, behind, boundaries, decrypted, joined, packet_at


def test_what_may_begin_a_record() -> None:
    assert begins_record(b"\x17\x03\x03\x00\x20")
    assert begins_record(b"\x16\x03")
    assert begins_record(b"")
    assert not begins_record(b"\x00\x00\x00\x1f")
    assert not begins_record(b"\x17\x03\x03\xff\xff")
    assert not begins_record(b"\x17\x03\x03\x00\x00")


def test_boundaries_are_those_that_another_record_follows() -> None:
    data = b"junk" + b"\x17\x03\x03\x00\x02ab" * 2 + b"\x17\x03\x03\x01\x00xx"
    assert boundaries(data, 0) == ([4, 11], 18)
    assert boundaries(b"junk", 0) == ([], 2)


def test_pieces_are_joined_and_cut() -> None:
    first, second = Piece(10, b"abc", [10], [1], [7], 5), Piece(13, b"de", [13], [2], [8])
    whole = joined([first, second])
    assert whole == Piece(10, b"abcde", [10, 13], [1, 2], [7, 8], 5)
    assert behind(whole, 4) == Piece(14, b"e", [13], [2], [8])
    assert [packet_at(whole, at) for at in (0, 2, 3)] == [0, 0, 1]


@pytest.mark.parametrize("seed", range(50))
def test_every_byte_inside_is_of_the_packet_that_brought_its_encrypted_form(seed: int) -> None:
    rng = random.Random(seed)
    lead, tail = rng.choice([0, 8]), rng.choice([16, 17])
    parts = [bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 5, 60]))) for _ in range(rng.randrange(1, 8))]
    data, heads, inside = b"", [], []
    for part in parts:
        heads.append(len(data))
        inside += [len(data) + 5 + lead + at for at in range(len(part))]
        data += bytes(5 + lead) + part + bytes(tail)
    starts, at = [], rng.choice([0, -3])
    while at < len(data):
        starts.append(1000 + at)
        at += rng.randrange(1, 40)
    numbers = list(range(len(starts)))
    made = decrypted(
        Piece(1000, data, starts, numbers, numbers), heads, [len(part) for part in parts], b"".join(parts), lead, 500
    )
    assert made.data == b"".join(parts)
    assert made.starts == sorted(set(made.starts))
    for offset, place in enumerate(inside):
        mine = max(i for i, start in enumerate(made.starts) if start <= 500 + offset)
        assert made.numbers[mine] == max(i for i, start in enumerate(starts) if start <= 1000 + place)
