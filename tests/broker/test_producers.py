"""Sequence numbers of idempotent producers: what is written, what is a repeat, what is refused."""

from __future__ import annotations

import pytest

from kwire.broker.producers import Producers
from kwire.broker.refused import Refused
from kwire.records import build
from kwire.records.batch import Header, read_header
from kwire.schema import codes


def batch(sequence: int, count: int = 1, epoch: int = 0, producer: int = 5) -> Header:
    values = [(None, b"v")] * count
    return read_header(build(values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence), 0)


def after(*batches: Header) -> Producers:
    known = Producers(10)
    for number, header in enumerate(batches):
        known.wrote(header, number * 100, 0)
    return known


@pytest.mark.parametrize(
    ("before", "header", "expected"),
    [
        ([], batch(0), None),
        ([], batch(77), None),
        ([batch(0)], batch(1), None),
        ([batch(0, 3)], batch(3), None),
        ([batch(0, 3)], batch(0, 3), 0),
        ([batch(0), batch(1)], batch(1), 100),
        ([batch(2**31 - 1)], batch(0), None),
        ([batch(0)], batch(0, epoch=1), None),
        ([batch(9)], batch(0, producer=-1), None),
    ],
)
def test_what_fits_is_written_and_a_repeat_gives_its_offset(
    before: list[Header], header: Header, expected: int | None
) -> None:
    again = after(*before).check(header)
    assert (again and again.base) == expected


@pytest.mark.parametrize(
    ("before", "header", "code", "why"),
    [
        ([batch(0)], batch(2), codes.OUT_OF_ORDER_SEQUENCE_NUMBER, "sequence 2, the last one was 0"),
        ([batch(0, 3)], batch(1), codes.OUT_OF_ORDER_SEQUENCE_NUMBER, "sequence 1, the last one was 2"),
        ([batch(0, epoch=2)], batch(1, epoch=1), codes.INVALID_PRODUCER_EPOCH, "epoch 1, the newest is 2"),
        (
            [batch(0)],
            batch(1, epoch=1),
            codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
            "sequence 1 at the start of epoch 1, must be 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused(before: list[Header], header: Header, code: int, why: str) -> None:
    with pytest.raises(Refused) as refused:
        after(*before).check(header)
    assert (refused.value.code, refused.value.why) == (code, why)


def test_only_the_last_five_batches_are_known() -> None:
    known = after(*(batch(number) for number in range(7)))
    assert getattr(known.check(batch(2)), "base", None) == 200
    with pytest.raises(Refused):
        known.check(batch(1))


def test_the_longest_silent_producer_is_forgotten() -> None:
    known = Producers(2)
    for producer in (1, 2, 1, 3):
        known.wrote(batch(0, producer=producer), 0, 0)
    assert list(known.known) == [1, 3]


def test_what_was_refused_comes_first_but_not_for_a_newer_epoch() -> None:
    known = after(batch(0, epoch=2))
    known.refused(batch(0, epoch=1))
    assert known.check(batch(1, epoch=2)) is None
    known.refused(batch(1, epoch=2))
    with pytest.raises(Refused, match="sequence 2, but 1 has been refused"):
        known.check(batch(2, epoch=2))
    known.wrote(batch(1, epoch=2), 1, 0)
    assert known.check(batch(2, epoch=2)) is None
