"""Scenes for detectors: connections on which clients ask and brokers answer at given seconds, and what kwire doctor
says of them; also of parts of them, as a worse capture would have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from session.conftest import RAW, START, SYN, Packet, Tcp, Traffic, block, request, response

from kwire.analyze.doctor import Diagnosis, Doctor
from kwire.analyze.findings import Finding
from kwire.capture.files import open_capture
from kwire.session.reader import Reader

MILLISECOND = 1_000_000


class Line:
    """A connection; client is the client id of what it asks."""

    def __init__(self, scene: Scene, tcp: Tcp, client: str) -> None:
        self.scene, self.tcp, self.client = scene, tcp, client
        self.ident = 0

    def ask(
        self, at: float, api: str, version: int, asked: dict[str, Any] | None = None,
        answered: dict[str, Any] | None = None, took: float = 0.001, lost: bool = False,
    ) -> Line:  # fmt: skip
        """A request at so many seconds, and its answer, if there is one. lost: the capture lacks the answer."""
        self.ident += 1
        self.scene.at(at)
        self.tcp.send(request(api, version, asked, self.ident, self.client))
        if answered is not None:
            self.scene.at(at + took)
            self.tcp.answer(response(api, version, answered, self.ident), lost=lost)
        return self

    def close(self, at: float, sides: tuple[int, ...] = (0, 1)) -> None:
        self.scene.at(at)
        self.tcp.close(sides)

    def reset(self, at: float, side: int = 1) -> None:
        self.scene.at(at)
        self.tcp.reset(side)


class Scene:
    """connect() opens connections; findings() tells what the doctor says of all that was sent."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.port = 50_000

    def at(self, seconds: float) -> None:
        self.traffic.now = START + round(seconds * 1000) * MILLISECOND

    def connect(
        self, at: float, client: str = "c1", host: str = "10.0.0.7", broker: str = "10.0.0.2:9092", syn: bool = True
    ) -> Line:
        self.at(at)
        self.port += 1
        return Line(self, self.traffic.connection(f"{host}:{self.port}", broker, syn, (self.port * 1000, 5000)), client)

    def dial(self, at: float, host: str = "10.0.0.7", broker: str = "10.0.0.2:9092", refused: bool = True) -> None:
        """An attempt to connect that is refused, or gets no answer."""
        self.at(at)
        self.port += 1
        tcp = self.traffic.connection(f"{host}:{self.port}", broker, syn=False, seq=(self.port * 1000, 0))
        tcp._packet(0, b"", SYN)
        if refused:
            tcp.reset()
        else:
            self.at(at + 1)
            tcp.seq[0] -= 1
            tcp._packet(0, b"", SYN)

    @property
    def packets(self) -> list[Packet]:
        return sorted(self.traffic.packets, key=lambda packet: packet.time)

    def findings(self, *only: str, **limits: dict[str, float]) -> list[Finding]:
        return diagnosed(self.packets, only or None, limits).findings

    def said(self, *only: str, **limits: dict[str, float]) -> list[str]:
        """As "error acl-denied: what"."""
        return [f"{one.severity} {one.detector}: {one.what}" for one in self.findings(*only, **limits)]


def diagnosed(
    packets: Iterable[Packet], only: Iterable[str] | None = None, limits: dict[str, dict[str, float]] | None = None,
    size: int = 5000,
) -> Diagnosis:  # fmt: skip
    """What the doctor says of packets that are read in blocks of so many."""
    doctor = Doctor(only, {name.replace("_", "-"): given for name, given in (limits or {}).items()})
    reader = Reader("made.pcap", tracking=True, ended=doctor.close)
    packets = list(packets)
    for at in range(0, len(packets), size):
        for batch in reader.feed(block(packets[at : at + size], at + 1)):
            doctor.add(batch)
    for batch in reader.finish():
        doctor.add(batch)
    return doctor.diagnose()


def packets_of(path: Path) -> list[Packet]:
    """All packets of a capture."""
    found = []
    for packets in open_capture(path).blocks():
        for at in range(len(packets)):
            start, have = int(packets.start[at]), int(packets.captured[at])
            data = bytes(packets.buffer[start : start + have])
            found.append(Packet(int(packets.time[at]), data, int(packets.length[at]), int(packets.link[at])))
    return found


def cut(packets: list[Packet], snaplen: int) -> list[Packet]:
    """As tcpdump -s has them."""
    return [packet._replace(data=packet.data[:snaplen]) for packet in packets]


Change = Callable[[list[Packet]], list[Packet]]
__all__ = ["RAW", "START", "Change", "Line", "Packet", "Scene", "cut", "diagnosed", "packets_of"]
