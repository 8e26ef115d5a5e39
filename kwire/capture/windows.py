"""Times in which a side's receive window was full, because it did not read, so that the other side could not send.

Found in acknowledgements without data. Those of the same byte, as answers to window probes, belong to one stall, which
lasts at least from the first to the last of them (RFC 9293, 3.8.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class FullWindow(NamedTuple):
    """An acknowledgement with a window of zero. ack: the next expected sequence number."""

    number: int
    time: int
    ack: int


@dataclass(slots=True)
class Stalls:
    """The stalls of one side. count: their number; total: least time in all, ns; first, last: times of full windows,
    ns; packet: the first one."""

    packet: int
    first: int
    last: int
    ack: int
    count: int = 1
    total: int = 0

    def add(self, one: FullWindow) -> None:
        """Adds the next full window."""
        if one.ack == self.ack:
            self.total += max(one.time - self.last, 0)
        else:
            self.count += 1
        self.ack, self.last = one.ack, one.time
