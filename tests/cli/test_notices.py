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
    assert MOST < len(got) < 2 * MOST
    assert got[0].startswith("line 0 ")
    left_out = re.fullmatch(r"kwire: ([\d,]+) lines left out here: nobody read them in time\n", got[-1])
    assert left_out
    assert int(left_out[1].replace(",", "")) == 2 * MOST - (len(got) - 1)


def test_a_reader_that_is_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as stream:
        notices = Notices(stream)
        notices.put("line")
        notices.close()
