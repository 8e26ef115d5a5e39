"""Nonces: each is the initial one with its record's number in it, wherever one begins."""

from __future__ import annotations

from itertools import islice

import pytest

from kwire.capture.tls.nonces import Nonces

IV = bytes.fromhex("0102030405060708f0ffeeff")


def right(number: int) -> bytes:
    return (int.from_bytes(IV, "big") ^ number).to_bytes(12, "big")


@pytest.mark.parametrize("many", [1, 7, 8, 9, 264, 265, 1_000])
def test_they_follow_their_numbers_from_wherever_one_begins(many: int) -> None:
    nonces = Nonces(IV)
    for first in (0, 3, many, 5_000, 2, 1 << 40, (1 << 32) - 5):
        assert list(islice(nonces.since(first), many)) == [right(first + each) for each in range(many)]


def test_two_may_be_read_beside_each_other() -> None:
    nonces = Nonces(IV)
    one, other = nonces.since(0), nonces.since(700)
    pairs = list(islice(zip(one, other, strict=False), 600))
    assert pairs == [(right(each), right(700 + each)) for each in range(600)]
