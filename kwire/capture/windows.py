"""When a side lets its receive window run full, so that the other one may not send: it does not read what came.

Told by acknowledgements alone, which are no segments otherwise. Those that acknowledge the same byte again, as answers
to probes of the window, belong to one stall, which lasts at least from the first to the last of them (RFC 9293, 3.8.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class FullWindow(NamedTuple):
    """An acknowledgement with a window of zero. ack: the next byte that is awaited."""

    number: int
    time: int
    ack: int


@dataclass(slots=True)
class Stalls:
    """Of one side of a connection. count: how many stalls; total: how long they lasted at least, ns; first and last:
    when windows were told to be full, ns; packet: the first that said so."""

    packet: int
    first: int
    last: int
    ack: int
    count: int = 1
    total: int = 0

    def add(self, one: FullWindow) -> None:
        """The next one that says so."""
        if one.ack == self.ack:
            self.total += max(one.time - self.last, 0)
        else:
            self.count += 1
        self.ack, self.last = one.ack, one.time
