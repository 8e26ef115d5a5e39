"""A TCP connection as it stands: both streams, and the packets that opened and closed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.capture.streams import Stream
from kwire.capture.tcp import ACK, Key

if TYPE_CHECKING:
    from kwire.capture.flows import Opening

Endpoint = tuple[str, int]


@dataclass(slots=True, eq=False)
class Connection:
    """Both directions between two endpoints. streams[0] carries what ends[0] sends.

    epoch counts, from 1, how often these two endpoints began anew. opener: the index of the side that sent the SYN.
    """

    key: Key
    ends: tuple[Endpoint, Endpoint]
    epoch: int
    streams: tuple[Stream, Stream] = field(default_factory=lambda: (Stream(), Stream()))
    opener: int | None = None
    first_time: int = 0
    last_time: int = 0
    segments: int = 0
    reset: bool = False
    fins: int = 0  # a bit for each side
    fin: int | None = None  # the packet with the first FIN
    rst: int | None = None  # the packet with the first RST
    finished: bool = False
    opening: list[int] = field(default_factory=list)  # the packets with its SYNs
    opened_at: list[int] = field(default_factory=list)  # their times, ns
    closing: list[tuple[int, int]] = field(default_factory=list)  # side and packet of its FINs and RSTs
    tunnel: str = ""  # what it came through, as "VXLAN" or "GRE in VXLAN"
    ended_by: tuple[int, int] | None = None  # when the first FIN or RST came, and from which side
    known: bool = False  # to be Kafka's
    tls: object = None  # what capture/tls makes of it; None before its first bytes

    @property
    def closed(self) -> bool:
        """Whether both sides have said that they are done, and all that they sent is there."""
        return self.reset or (self.fins == 3 and all(stream.ended or stream.next is None for stream in self.streams))

    @property
    def handshake(self) -> int | None:
        """ns from the SYN to its answer, where each came once: the network's round trip, seen from where packets were
        captured to the broker and back. None where it was not seen."""
        return self.opened_at[1] - self.opened_at[0] if len(self.opened_at) == 2 else None

    @property
    def ending(self) -> str | None:
        """How it ended, as far as the capture tells; None where it does not. A RST behind a FIN, as of a client that
        closes while an answer is on its way, is a part of the close."""
        if self.fin is not None and (self.rst is None or self.fin < self.rst):
            return "the connection closed"
        return None if self.rst is None else "the connection was reset"

    def open(self, side: int, seq: int, flags: int, number: int, time: int) -> None:
        """A SYN of this side, or its answer to one, in the packet of that number, at that time, ns."""
        if len(self.opening) < 8:
            self.opening.append(number)
            self.opened_at.append(time)
        self.streams[side].open(seq)
        self.opener = 1 - side if flags & ACK else side

    def open_whole(self, ask: Opening, answer: Opening) -> bool:
        """It begins with these flows, whose bytes are read elsewhere. Whether it ends with them too, each with a FIN:
        else what they say of its end is still to be added."""
        self.opener = 0
        self.opening, self.opened_at = [ask.number, answer.number], [ask.time, answer.time]
        self.segments = ask.segments + answer.segments
        self.first_time, self.last_time = min(ask.first, answer.first), max(ask.last, answer.last)
        for stream, one in zip(self.streams, (ask, answer), strict=True):
            stream.pass_over(one.seq, one.size, one.last_number, one.last_time)
        if ask.fin_number < 0 or answer.fin_number < 0:
            return False
        for stream in self.streams:
            stream.end = stream.position
        self.fins, self.closing = 3, [(0, ask.fin_number), (1, answer.fin_number)]
        self.fin = min(ask.fin_number, answer.fin_number)
        self.ended_by = min((ask.fin_time, 0), (answer.fin_time, 1))
        return True

    def let_go(self) -> None:
        """What came and was not read is of no use."""
        for stream in self.streams:
            stream.pieces = []

    def finish(self) -> None:
        """Nothing more will come: what waits behind holes is delivered."""
        self.finished = True
        for stream in self.streams:
            while stream.held:
                stream.give_up()
