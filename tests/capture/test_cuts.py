"""Comments of a slice's packets: written, read again, and never believed beyond their packet."""

from __future__ import annotations

import io

import numpy as np
import pytest

from kwire.capture.cuts import Cut, cut_of, trim
from kwire.capture.pcapng import PcapngReader
from kwire.capture.save import PcapngWriter

CUTS = [
    Cut(begin=305419896, before=5120, frame=17, position=48211),
    Cut(end=4294967295),
    Cut(begin=0, before=0, frame=0, position=0, end=7),
    Cut(begin=5, before=999),
]


@pytest.mark.parametrize("cut", CUTS)
def test_what_is_written_is_read(cut: Cut) -> None:
    assert cut_of(str(cut).encode()) == cut


@pytest.mark.parametrize(
    "text", [b"", b"hello", b"kwire: hello", b"kwire: \xff" * 90,
             b"kwire: -5 bytes before sequence number 3 were left out",
             b"kwire: 9999999999999999 bytes before sequence number 3 were left out",
             b"note: kwire: what follows sequence number 3 was left out"],
)  # fmt: skip
def test_other_comments_are_none(text: bytes) -> None:
    assert cut_of(text) is None


def test_numbers_are_those_of_tcp() -> None:
    assert cut_of(b"kwire: what follows sequence number 4294967299 was left out") == Cut(end=3)


@pytest.mark.parametrize(
    ("cut", "segment"),
    [
        (Cut(begin=105), (105, 55, 15, 15)),
        (Cut(begin=100), (100, 50, 20, 20)),
        (Cut(begin=120), (120, 70, 0, 0)),
        (Cut(begin=121), (100, 50, 20, 20)),
        (Cut(begin=3), (100, 50, 20, 20)),
        (Cut(end=110), (100, 50, 10, 10)),
        (Cut(end=100), (100, 50, 0, 0)),
        (Cut(end=99), (100, 50, 20, 20)),
        (Cut(begin=105, end=110), (105, 55, 5, 5)),
    ],
)
def test_a_segment_is_trimmed_within_its_bounds(cut: Cut, segment: tuple[int, ...]) -> None:
    columns = [np.array([1, value, 2], np.int64) for value in (100, 50, 20, 20)]
    trim(cut, 1, *columns)
    assert tuple(int(column[1]) for column in columns) == segment
    assert [(int(column[0]), int(column[2])) for column in columns] == [(1, 2)] * 4


def test_sequence_numbers_wrap() -> None:
    columns = [np.array([value], np.int64) for value in (2**32 - 4, 50, 10, 20)]
    trim(Cut(begin=2, end=12), 0, *columns)
    assert [int(column[0]) for column in columns] == [2, 56, 4, 10]


def test_the_reader_finds_them_beside_other_packets() -> None:
    file = io.BytesIO()
    writer = PcapngWriter(file)
    for number, size in enumerate((1, 2, 3, 4, 40)):
        comment = str(CUTS[0]) if number == 2 else "seen" if number == 3 else ""
        writer.write(number, bytes(size), size, 1, comment=comment)
    data = file.getvalue()
    blocks, used = PcapngReader("made.pcapng").read(memoryview(data), True)
    (block,) = blocks
    assert (used, block.captured.tolist(), dict(block.cuts)) == (len(data), [1, 2, 3, 4, 40], {2: CUTS[0]})
    assert dict(block.at(np.array([False, False, True, True, True])).cuts) == {0: CUTS[0]}
