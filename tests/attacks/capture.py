"""Captures that cost more than their bytes are worth: file formats, IP and tunnels. Scale 1.0 is about the size at
which each was first seen to hurt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from struct import pack

from packetsmade import (
    SECOND,
    Maker,
    block,
    enhanced,
    interface,
    ip4,
    ip6,
    named,
    packed,
    pcap,
    pcapng,
    read,
    section,
    tcp,
    times,
    vxlan,
)  # fmt: skip

# ------------------------------------------------------------ pcapng


def interfaces(folder: Path, scale: float) -> list[str]:
    """Interfaces, each followed by a packet."""
    blocks = (interface() + enhanced(b"", number) for number in range(times(20_000, scale)))
    return read(pcapng(folder / "interfaces.pcapng", chain([section()], blocks)))


def sections(folder: Path, scale: float) -> list[str]:
    """Sections, each in another byte order than the last, with an interface and a packet."""
    blocks = (section(order) + interface(order) + enhanced(tcp(0, 5, b"x"), 0, order)
              for _ in range(times(3_500, scale)) for order in "<>")  # fmt: skip
    return read(pcapng(folder / "sections.pcapng", blocks))


def statistics(folder: Path, scale: float) -> list[str]:
    """Statistics of a new interface each, and name resolution, between packets."""
    option = pack("<HHQ", 5, 8, 1)
    blocks = (block(5, pack("<III", number, 0, 0) + option) + block(4, bytes(4)) + enhanced(b"")
              for number in range(times(10_000, scale)))  # fmt: skip
    return read(pcapng(folder / "statistics.pcapng", chain([section(), interface()], blocks)))


def options(folder: Path, scale: float) -> list[str]:
    """Interfaces of nothing but empty options."""
    empty = pack("<HH", 1, 0) * 16_000
    blocks = (interface(options=empty) for _ in range(times(15, scale)))
    return read(pcapng(folder / "options.pcapng", chain([section()], blocks, [enhanced(b"")])))


def bad_blocks(folder: Path, scale: float) -> list[str]:
    """Damage between packets, a note each; compressed."""
    blocks = (pack("<III", 7, 7, 7) + enhanced(b"") for _ in range(times(600_000, scale)))
    return read(packed(pcapng(folder / "bad.pcapng", chain([section(), interface()], blocks))))


def short_blocks(folder: Path, scale: float) -> list[str]:
    """Statistics too short to be any, a note each; compressed."""
    blocks = (block(5, b"") * 1000 for _ in range(times(4_000, scale)))
    return read(packed(pcapng(folder / "short.pcapng", chain([section(), interface(), enhanced(b"")], blocks))))


def near_blocks(folder: Path, scale: float) -> list[str]:
    """What looks like a packet block at every fourth byte, with damage in between."""
    blocks = (pack("<I", 6) * 20 + enhanced(b"") for _ in range(times(9_000, scale)))
    return read(pcapng(folder / "near.pcapng", chain([section(), interface()], blocks)))


def key_logs(folder: Path, scale: float) -> list[str]:
    """TLS key logs that nobody reads; compressed."""
    log = (b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n") * 5_000
    blocks = (block(10, pack("<II", 0x544C534B, len(log)) + log) for _ in range(times(3_200, scale)))
    return read(packed(pcapng(folder / "keys.pcapng", chain([section(), interface()], blocks, [enhanced(b"")]))))


# ------------------------------------------------------------ pcap


def bad_records(folder: Path, scale: float) -> list[str]:
    """Packets between which a record makes no sense."""
    bad = pack("<IIII", SECOND, 0, 0xFFFFFFFF, 0xFFFFFFFF)
    path = pcap(folder / "bad.pcap", [])
    good = pack("<IIII", SECOND, 0, 20, 20) + ip4(b"")
    path.write_bytes(path.read_bytes() + (bad + good * 5) * times(5_000, scale))
    return read(path)


def near_records(folder: Path, scale: float) -> list[str]:
    """Plausible record headers everywhere, none of which leads to a chain."""
    path = pcap(folder / "near.pcap", [])
    near = pack("<IIII", SECOND, 20, 20, 20) + pack("<IIII", 0, 0, 0xFFFFFFFF, 0)
    path.write_bytes(path.read_bytes() + pack("<IIII", 0, 0, 0xFFFFFFFF, 0) + near * times(30_000, scale))
    return read(path)


def empty_packets(folder: Path, scale: float) -> list[str]:
    return read(pcap(folder / "empty.pcap", (b"" for _ in range(times(60_000, scale)))))


# ------------------------------------------------------------ IP


def four_pieces(ident: int, last: int = 8192) -> Iterator[bytes]:
    return (ip4(bytes(8), 0, ident, place | 0x2000) for place in range(1, last))


def fragments(folder: Path, scale: float) -> list[str]:
    """Of one datagram, of which the first is missing, from the last to the second."""
    pieces = [ip4(bytes(8), 0, 7, 8190), *reversed(list(four_pieces(7, 8190)))]
    return read(pcap(folder / "fragments.pcap", (pieces[at % len(pieces)] for at in range(times(24_000, scale)))))


def fragments_over_each_other(folder: Path, scale: float) -> list[str]:
    """Long fragments at every place of many datagrams; compressed."""
    body = bytes(8000)
    pieces = (ip4(body, 0, ident % 1024, place | 0x2000)
              for place in range(1, 7000) for ident in range(1024))  # fmt: skip
    some = (next(pieces) for _ in range(times(200_000, scale)))
    return read(packed(pcap(folder / "over.pcap", some)))


def fragments_of_six(folder: Path, scale: float) -> list[str]:
    """IPv6 fragments of datagrams that never become whole."""
    pieces = (ip6(pack(">BBHI", 6, 0, place * 8 | 1, 9) + bytes(8), 44) for place in range(1, 8000))
    return read(
        pcap(folder / "six.pcap", (piece for _, piece in zip(range(times(13_000, scale)), pieces, strict=False)))
    )


def extension_headers(folder: Path, scale: float) -> list[str]:
    """IPv6 packets of nothing but extension headers."""
    packet = ip6((bytes([0]) + bytes(7)) * 7_000, 0)
    return read(pcap(folder / "extensions.pcap", (packet for _ in range(times(18, scale)))))


def one_datagram_a_fragment(folder: Path, scale: float) -> list[str]:
    """Datagrams in two fragments of which the second is empty."""
    parts = ((ip4(tcp(0, 5)[20:44], 0, at & 0xFFFF, 0x2000), ip4(b"", 0, at & 0xFFFF, 3)) for at in count())
    some = (packet for _, pair in zip(range(times(9_000, scale)), parts, strict=False) for packet in pair)
    return read(pcap(folder / "two.pcap", some))


def nested_tunnels(folder: Path, scale: float) -> list[str]:
    """VXLAN in VXLAN as deep as packets go."""
    packet = ip4(b"")
    while len(packet) < 60_000:
        packet = vxlan(packet)
    return read(pcap(folder / "nested.pcap", (packet for _ in range(times(16, scale)))))


ATTACKS: dict[str, Maker] = named(
    interfaces, sections, statistics, options, bad_blocks, short_blocks, near_blocks, key_logs, bad_records,
    near_records, empty_packets, fragments, fragments_over_each_other, fragments_of_six, extension_headers,
    one_datagram_a_fragment, nested_tunnels,
)  # fmt: skip
