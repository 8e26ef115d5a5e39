"""Packets and captures for attacks: TCP in IPv4, tunnels, pcap and pcapng block by block, frames of a talk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from struct import pack

import kwire

Maker = Callable[[Path, float], list[str]]
CLIENT, BROKER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
SECOND, ACK, SYN, FIN = 1_790_000_000, 16, 2, 1
RAW_LINK = 101


def times(base: int, scale: float) -> int:
    return max(int(base * scale), 2)


def named(*makers: Maker) -> dict[str, Maker]:
    """Makers by their names, in words."""
    return {maker.__name__.replace("_", " "): maker for maker in makers}


# ------------------------------------------------------------ packets


def tcp(side: int, seq: int, data: bytes = b"", flags: int = ACK, port: int = 40000) -> bytes:
    """Of the client (side 0) or the broker, with IPv4 before it."""
    ports = (port, 9092) if side == 0 else (9092, port)
    head = pack(">HHIIBBHHH", *ports, seq % (1 << 32), 7, 0x50, flags, 512, 0, 0)
    return ip4(head + data, side)


def ip4(payload: bytes, side: int = 0, ident: int = 0, fragment: int = 0) -> bytes:
    ends = CLIENT + BROKER if side == 0 else BROKER + CLIENT
    return pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), ident, fragment, 64, 6, 0) + ends + payload


def ip6(payload: bytes, kind: int = 6) -> bytes:
    return pack(">IHBB", 6 << 28, len(payload), kind, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + payload


def vxlan(inner: bytes) -> bytes:
    """Ethernet in VXLAN in UDP in IPv4; inner is an IPv4 packet."""
    frame = pack(">II", 8 << 24, 42 << 8) + bytes(12) + b"\x08\x00" + inner
    udp = pack(">HHHH", 50000, 4789, 8 + len(frame), 0) + frame
    return pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + CLIENT + BROKER + udp


def pcap(path: Path, packets: Iterable[bytes], snaplen: int = 1 << 18, link: int = RAW_LINK, step: int = 1) -> Path:
    """step: microseconds from packet to packet."""
    with path.open("wb") as file:
        file.write(pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, link))
        for number, packet in enumerate(packets):
            moment, kept = SECOND * 1_000_000 + number * step, packet[:snaplen]
            file.write(pack("<IIII", *divmod(moment, 1_000_000), len(kept), len(packet)) + kept)
    return path


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    size = 12 + len(body) + (-len(body) % 4)
    return pack(order + "II", kind, size) + body + bytes(-len(body) % 4) + pack(order + "I", size)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: str = "<", options: bytes = b"") -> bytes:
    return block(1, pack(order + "HHI", RAW_LINK, 0, 1 << 18) + options, order)


def enhanced(packet: bytes, number: int = 0, order: str = "<") -> bytes:
    moment = SECOND * 1_000_000
    return block(6, pack(order + "IIIII", number, moment >> 32, moment & 0xFFFFFFFF, len(packet), len(packet)) + packet,
                 order)  # fmt: skip


def pcapng(path: Path, blocks: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(blocks)
    return path


def packed(path: Path) -> Path:
    """The same, compressed."""
    from backports import zstd

    out = path.with_suffix(path.suffix + ".zst")
    with path.open("rb") as plain, zstd.open(out, "wb") as file:
        while piece := plain.read(1 << 20):
            file.write(piece)
    path.unlink()
    return out


def read(path: Path) -> list[str]:
    return ["read", str(path)]


def sized(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def request(key: int, version: int, ident: int, body: bytes, client: bytes = b"c") -> bytes:
    return sized(pack(">hhih", key, version, ident, len(client)) + client + body)


HELLO = tcp(0, 99, flags=SYN), tcp(1, 499, flags=SYN | ACK)
BEAT = request(12, 0, 1, kwire.encode("HeartbeatRequest", 0, {"GroupId": "g"}))
BEATEN = sized(pack(">i", 1) + kwire.encode("HeartbeatResponse", 0, {}))


def talk() -> list[bytes]:
    """An opening, a heartbeat and its answer: the connection speaks Kafka."""
    return [*HELLO, tcp(0, 100, BEAT), tcp(1, 500, BEATEN)]


def asked(data: Iterable[bytes], seq: int = 100 + len(BEAT), side: int = 0) -> Iterator[bytes]:
    """Segments that follow each other."""
    for part in data:
        yield tcp(side, seq, part)
        seq += len(part)
