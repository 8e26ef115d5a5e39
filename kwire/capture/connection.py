"""The state of a TCP connection: both streams, and the packets that opened and closed it."""

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

    epoch: counts the connections between these endpoints, from 1. opener: the index of the side that sent the SYN.
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
    tunnel: str = ""  # as "VXLAN" or "GRE in VXLAN"
    ended_by: tuple[int, int] | None = None  # time of the first FIN or RST, and its side
    known: bool = False  # to be Kafka's
    tls: object = None  # state of capture/tls; None before the first bytes

    @property
    def closed(self) -> bool:
        """Whether it was reset, or both sides sent a FIN and all their bytes are there."""
        first, second = self.streams
        ended = self.fins == 3 and (first.ended or first.next is None) and (second.ended or second.next is None)
        return self.reset or ended

    @property
    def handshake(self) -> int | None:
        """ns from the SYN to the SYN-ACK: the round trip from the capture point to the broker. None unless each was
        captured once."""
        return self.opened_at[1] - self.opened_at[0] if len(self.opened_at) == 2 else None

    @property
    def ending(self) -> str | None:
        """How it ended; None if the capture does not show it. A RST after a FIN, as when a client closes before a
        response arrives, is part of the close."""
        if self.fin is not None and (self.rst is None or self.fin < self.rst):
            return "the connection closed"
        return None if self.rst is None else "the connection was reset"

    def open(self, side: int, seq: int, flags: int, number: int, time: int) -> None:
        """Takes a SYN or SYN-ACK of this side. number, time (ns): of its packet."""
        if len(self.opening) < 8:
            self.opening.append(number)
            self.opened_at.append(time)
        self.streams[side].open(seq)
        self.opener = 1 - side if flags & ACK else side

    def open_whole(self, ask: Opening, answer: Opening) -> bool:
        """Opens it with these flows, whose bytes are read elsewhere. Returns whether both end with a FIN; otherwise
        their FINs and RSTs are still to be added."""
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
        """Drops the pieces that were not read."""
        for stream in self.streams:
            stream.pieces = []

    def finish(self) -> None:
        """Ends it: gives up all holes and delivers what is held."""
        self.finished = True
        for stream in self.streams:
            while stream.held:
                stream.give_up()
