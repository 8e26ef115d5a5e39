"""Lines that are written beside the work: in order, whole, and never waited for."""

from __future__ import annotations

import io
import os
import re
import threading

from kwire.cli.notices import MOST, Notices


def test_lines_come_whole_and_in_order() -> None:
    stream = io.StringIO()
    notices = Notices(stream)
    for number in range(1000):
        notices.put(f"line {number}")
    notices.close()
    assert stream.getvalue().splitlines() == [f"line {number}" for number in range(1000)]


def test_what_nobody_reads_is_counted_and_holds_nobody_up() -> None:
    read, write = os.pipe()
    with open(write, "w") as stream, open(read) as reader:
        notices = Notices(stream)
        for number in range(2 * MOST):
            notices.put(f"line {number} {'x' * 100}")
        got: list[str] = []
        reading = threading.Thread(target=lambda: got.extend(reader.readlines()))
        reading.start()
        notices.close()
        stream.close()
        reading.join()
    told = [line for line in got if line.startswith("line ")]
    left_out = [re.fullmatch(r"kwire: ([\d,]+) lines left out here: nobody read them in time\n", line) for line in got]
    counts = [int(match[1].replace(",", "")) for match in left_out if match]
    assert len(told) + len(counts) == len(got)
    assert MOST <= len(told) < 2 * MOST
    assert told[0].startswith("line 0 ")
    assert left_out[-1], "what was left out last is told at the end"
    assert len(told) + sum(counts) == 2 * MOST


def test_a_reader_that_is_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as stream:
        notices = Notices(stream)
        notices.put("line")
        notices.close()
