"""From packets to segments: what a session needs of a block of packets."""

from __future__ import annotations

from typing import NamedTuple

from kwire.capture.files import packet_notes
from kwire.capture.ip import Network
from kwire.capture.packets import Columns, Packets
from kwire.capture.tcp import Chosen, Segments, read_segments


class Block(NamedTuple):
    """packets: how many there were; first_time and last_time: of them, ns since the epoch, 0 where there are none;
    segments: those of the packets, then those of datagrams that fragments made whole; secrets: key logs of TLS that
    stood among the packets."""

    packets: int
    first_time: int
    last_time: int
    segments: list[Segments]
    secrets: tuple[bytes, ...] = ()


class Segmenter:
    """read(packets) gives a block after the other. Keeps the fragments of datagrams that are not whole."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen, self._network = chosen, Network()

    @property
    def notes(self) -> list[str]:
        """What could not be read, and what came through tunnels."""
        return packet_notes(self._network.counts)

    def read(self, packets: Packets) -> Block:
        """The segments of the chosen connections."""
        first, last = (int(packets.time.min()), int(packets.time.max())) if len(packets) else (0, 0)
        segments = [self._segments(packets)]
        whole = self._network.take_whole()
        if whole is not None:
            segments.append(self._segments(whole))
        return Block(len(packets), first, last, segments, packets.secrets)

    def _segments(self, packets: Packets) -> Segments:
        data = Columns(packets.buffer)
        found = self._network.read(packets, data)
        return read_segments(packets, found, data, self._chosen, self._network.paths.texts)
