"""From packets to TCP segments, one block at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kwire.capture.files import packet_notes
from kwire.capture.ip import Network
from kwire.capture.packets import Columns, Packets
from kwire.capture.tcp import ConnectionFilter, Segments, read_segments

STEPS = 100  # most clock steps reported per block
BACK = 1_000_000_000  # ns by which a packet must be earlier than the one before it to count as a clock step


class ClockStep(NamedTuple):
    """The capture's clock went back between two packets: the second one's number, the times of both, ns."""

    packet: int
    before: int
    after: int


class CaptureMoment(NamedTuple):
    """When a packet was captured, comparable. era: clock steps before it; time: ns since the epoch."""

    era: int
    time: int


class Block(NamedTuple):
    """packets: their number; first_time, last_time: ns since the epoch, 0 without packets; segments: of the packets,
    then of reassembled IP datagrams; secrets: TLS key logs among the packets; steps: where the clock went back."""

    packets: int
    first_time: int
    last_time: int
    segments: list[Segments]
    secrets: tuple[bytes, ...] = ()
    steps: tuple[ClockStep, ...] = ()


class Segmenter:
    """read(packets) gives the block of these packets. Keeps fragments of incomplete IP datagrams."""

    def __init__(self, chosen: ConnectionFilter) -> None:
        self._chosen, self._network = chosen, Network()
        self._latest = 0  # the time of the last packet

    @property
    def notes(self) -> list[str]:
        """What could not be read, and what came through tunnels."""
        return packet_notes(self._network.counts)

    @property
    def counts(self) -> dict[str, int]:
        """Counts of unread or tunnelled packets, by reason."""
        return self._network.counts

    @property
    def pending(self) -> int:
        """The number of incomplete IP datagrams."""
        return self._network.pending

    def read(self, packets: Packets) -> Block:
        """The segments of the chosen connections."""
        first, last = (int(packets.time.min()), int(packets.time.max())) if len(packets) else (0, 0)
        segments = [self._segments(packets)]
        whole = self._network.take_whole()
        if whole is not None:
            segments.append(self._segments(whole))
        return Block(len(packets), first, last, segments, packets.secrets, self._steps(packets))

    def _steps(self, packets: Packets) -> tuple[ClockStep, ...]:
        if not len(packets):
            return ()
        before = np.concatenate(([self._latest], packets.time[:-1]))
        self._latest = int(packets.time[-1])
        back = np.flatnonzero(before - packets.time > BACK)[:STEPS]
        columns = (column[back].tolist() for column in (packets.number, before, packets.time))
        return tuple(ClockStep(*step) for step in zip(*columns, strict=True))

    def _segments(self, packets: Packets) -> Segments:
        data = Columns(packets.buffer)
        found = self._network.read(packets, data)
        return read_segments(packets, found, data, self._chosen, self._network.paths.texts)
