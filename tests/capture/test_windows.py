"""Full windows: which of them belong together, and how long they last."""

from __future__ import annotations

from kwire.capture.windows import FullWindow, Stalls


def test_answers_to_probes_are_one_stall() -> None:
    stalls = Stalls(packet=7, first=1000, last=1000, ack=55)
    for time in (1200, 1600):
        stalls.add(FullWindow(9, time, 55))
    assert (stalls.count, stalls.total, stalls.last) == (1, 600, 1600)


def test_after_more_bytes_it_is_another_one() -> None:
    stalls = Stalls(packet=7, first=1000, last=1000, ack=55)
    for time, ack in ((9000, 88), (9300, 88)):
        stalls.add(FullWindow(9, time, ack))
    assert (stalls.count, stalls.total, stalls.packet) == (2, 300, 7)


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    stalls = Stalls(packet=7, first=1000, last=1000, ack=55)
    stalls.add(FullWindow(9, 400, 55))
    assert stalls.total == 0
