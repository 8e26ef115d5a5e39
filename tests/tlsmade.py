"""TLS made in memory: what two sides of Python's ssl say to each other, with the key log, and captures of it."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from io import BytesIO
from ipaddress import IPv4Address
from pathlib import Path
from struct import pack
from typing import NamedTuple

from kwire.broker.tls import certificate
from kwire.capture.save import PcapWriter

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
CLIENT, SERVER = 0, 1
RAW = 101


class Said(NamedTuple):
    """chunks: who wrote which bytes, in order; log: the key log; plain: what travelled inside, of both sides."""

    chunks: list[tuple[int, bytes]]
    log: bytes
    plain: tuple[bytes, bytes]


@cache
def pem() -> Path:
    """A certificate and its key."""
    path = Path(tempfile.mkdtemp(), "made.pem")
    path.write_bytes(b"".join(certificate("kafka.example")))
    return path


def contexts(version: str = "1.3", suite: str = "", mutual: bool = False) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a client and a server that speak only this version, and of TLS 1.2 only this suite, as OpenSSL names it."""
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chosen = ssl.TLSVersion.TLSv1_3 if version == "1.3" else ssl.TLSVersion.TLSv1_2
    for context in (client, server):
        context.minimum_version = context.maximum_version = chosen
        if suite:
            context.set_ciphers(f"{suite}:@SECLEVEL=0")
        context.load_verify_locations(pem())
    server.load_cert_chain(pem())
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    if mutual:
        server.verify_mode = ssl.CERT_REQUIRED
        client.load_cert_chain(pem())
    return client, server


class Talk:
    """One connection of two sides that say what they are told."""

    def __init__(
        self, version: str = "1.3", suite: str = "", name: str = "kafka.example", mutual: bool = False,
        made: tuple[ssl.SSLContext, ssl.SSLContext] | None = None, session: ssl.SSLSession | None = None,
    ) -> None:  # fmt: skip
        client, server = made or contexts(version, suite, mutual)
        self._log = Path(tempfile.mkdtemp(), "keys.log")
        client.keylog_filename = str(self._log)
        self.chunks: list[tuple[int, bytes]] = []
        self._plain = [b"", b""]
        self._in = [ssl.MemoryBIO(), ssl.MemoryBIO()]
        self._out = [ssl.MemoryBIO(), ssl.MemoryBIO()]
        self.sides = [
            client.wrap_bio(self._in[0], self._out[0], server_hostname=name, session=session),
            server.wrap_bio(self._in[1], self._out[1], server_side=True),
        ]
        waiting = [True, True]
        for _ in range(10):
            for side in (CLIENT, SERVER):
                if waiting[side]:
                    try:
                        self.sides[side].do_handshake()
                        waiting[side] = False
                    except ssl.SSLWantReadError:
                        pass
                self._carry(side)

    def say(self, side: int, data: bytes) -> None:
        """Side writes data, and the other one reads it."""
        for low in range(0, len(data), 16384):
            self.sides[side].write(data[low : low + 16384])
        self._plain[side] += data
        self._carry(side)
        self.hear(1 - side)

    def hear(self, side: int) -> None:
        try:
            while self.sides[side].read(1 << 20):
                pass
        except ssl.SSLWantReadError:
            pass

    def close(self, side: int) -> None:
        """Side says close_notify."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.sides[side].unwrap()
        self._carry(side)

    def _carry(self, side: int) -> None:
        data = self._out[side].read()
        if data:
            self.chunks.append((side, data))
            self._in[1 - side].write(data)

    @property
    def said(self) -> Said:
        return Said(self.chunks, self._log.read_bytes(), (self._plain[0], self._plain[1]))


def talk(*words: tuple[int, bytes], version: str = "1.3", suite: str = "", mutual: bool = False) -> Said:
    """A whole connection in which the sides say this."""
    made = Talk(version, suite, mutual=mutual)
    for side, data in words:
        made.say(side, data)
    made.close(CLIENT)
    return made.said


class Packet(NamedTuple):
    """A TCP segment: its side, its offset in the stream, its bytes or its flags alone."""

    side: int
    offset: int
    data: bytes
    flags: int = 0x10


def packets_of(chunks: Sequence[tuple[int, bytes]], mtu: int = 1400, opening: bool = True) -> list[Packet]:
    """The segments that carry chunks, from SYN to FIN."""
    out = [Packet(0, -1, b"", 0x02), Packet(1, -1, b"", 0x12)] if opening else []
    at = [0, 0]
    for side, data in chunks:
        for low in range(0, len(data), mtu):
            part = data[low : low + mtu]
            out.append(Packet(side, at[side], part))
            at[side] += len(part)
    return [*out, Packet(0, at[0], b"", 0x11), Packet(1, at[1], b"", 0x11)] if opening else out


def frame(packet: Packet, port: int = 40000, broker: int = 9092) -> bytes:
    """An IPv4 packet."""
    ends = [("10.0.0.1", port), ("10.0.0.2", broker)]
    (source, sport), (target, dport) = ends[packet.side], ends[1 - packet.side]
    seq = (1001 + packet.offset) & 0xFFFFFFFF
    tcp = pack(">HHIIBBHHH", sport, dport, seq, 7, 0x50, packet.flags, 512, 0, 0) + packet.data
    head = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0)
    return head + IPv4Address(source).packed + IPv4Address(target).packed + tcp


def pcap(packets: Iterable[Packet], port: int = 40000, broker: int = 9092) -> bytes:
    """A capture of them, a millisecond apart."""
    file = BytesIO()
    writer = PcapWriter(file)
    for number, packet in enumerate(packets):
        data = frame(packet, port, broker)
        writer.write(START + number * 1_000_000, data, len(data), RAW)
    writer.close()
    return file.getvalue()
