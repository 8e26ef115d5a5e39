"""Captures that cost more than their bytes are worth: file formats, links, IP, TCP, frames and groups.

ATTACKS: name → maker(folder, scale). Scale 1.0 is about the size at which each was first seen to hurt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from random import Random
from struct import pack

import kwire

Maker = Callable[[Path, float], list[str]]
ATTACKS: dict[str, Maker] = {}
CLIENT, BROKER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
SECOND, ACK, SYN, FIN = 1_790_000_000, 16, 2, 1
RAW_LINK = 101


def attack(maker: Maker) -> Maker:
    """Enters a maker under its name."""
    ATTACKS[maker.__name__.replace("_", " ")] = maker
    return maker


def times(base: int, scale: float) -> int:
    return max(int(base * scale), 2)


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


# ------------------------------------------------------------ pcapng


@attack
def interfaces(folder: Path, scale: float) -> list[str]:
    """Interfaces, each followed by a packet."""
    blocks = (interface() + enhanced(b"", number) for number in range(times(20_000, scale)))
    return read(pcapng(folder / "interfaces.pcapng", chain([section()], blocks)))


@attack
def sections(folder: Path, scale: float) -> list[str]:
    """Sections, each in another byte order than the last, with an interface and a packet."""
    blocks = (section(order) + interface(order) + enhanced(tcp(0, 5, b"x"), 0, order)
              for _ in range(times(3_500, scale)) for order in "<>")  # fmt: skip
    return read(pcapng(folder / "sections.pcapng", blocks))


@attack
def statistics(folder: Path, scale: float) -> list[str]:
    """Statistics of a new interface each, and name resolution, between packets."""
    option = pack("<HHQ", 5, 8, 1)
    blocks = (block(5, pack("<III", number, 0, 0) + option) + block(4, bytes(4)) + enhanced(b"")
              for number in range(times(10_000, scale)))  # fmt: skip
    return read(pcapng(folder / "statistics.pcapng", chain([section(), interface()], blocks)))


@attack
def options(folder: Path, scale: float) -> list[str]:
    """Interfaces of nothing but empty options."""
    empty = pack("<HH", 1, 0) * 16_000
    blocks = (interface(options=empty) for _ in range(times(15, scale)))
    return read(pcapng(folder / "options.pcapng", chain([section()], blocks, [enhanced(b"")])))


@attack
def bad_blocks(folder: Path, scale: float) -> list[str]:
    """Damage between packets, a note each; compressed."""
    blocks = (pack("<III", 7, 7, 7) + enhanced(b"") for _ in range(times(600_000, scale)))
    return read(packed(pcapng(folder / "bad.pcapng", chain([section(), interface()], blocks))))


@attack
def short_blocks(folder: Path, scale: float) -> list[str]:
    """Statistics too short to be any, a note each; compressed."""
    blocks = (block(5, b"") * 1000 for _ in range(times(4_000, scale)))
    return read(packed(pcapng(folder / "short.pcapng", chain([section(), interface(), enhanced(b"")], blocks))))


@attack
def near_blocks(folder: Path, scale: float) -> list[str]:
    """What looks like a packet block at every fourth byte, with damage in between."""
    blocks = (pack("<I", 6) * 20 + enhanced(b"") for _ in range(times(9_000, scale)))
    return read(pcapng(folder / "near.pcapng", chain([section(), interface()], blocks)))


@attack
def key_logs(folder: Path, scale: float) -> list[str]:
    """TLS key logs that nobody reads; compressed."""
    log = (b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n") * 5_000
    blocks = (block(10, pack("<II", 0x544C534B, len(log)) + log) for _ in range(times(3_200, scale)))
    return read(packed(pcapng(folder / "keys.pcapng", chain([section(), interface()], blocks, [enhanced(b"")]))))


# ------------------------------------------------------------ pcap


@attack
def bad_records(folder: Path, scale: float) -> list[str]:
    """Packets between which a record makes no sense."""
    bad = pack("<IIII", SECOND, 0, 0xFFFFFFFF, 0xFFFFFFFF)
    path = pcap(folder / "bad.pcap", [])
    good = pack("<IIII", SECOND, 0, 20, 20) + ip4(b"")
    path.write_bytes(path.read_bytes() + (bad + good * 5) * times(5_000, scale))
    return read(path)


@attack
def near_records(folder: Path, scale: float) -> list[str]:
    """Plausible record headers everywhere, none of which leads to a chain."""
    path = pcap(folder / "near.pcap", [])
    near = pack("<IIII", SECOND, 20, 20, 20) + pack("<IIII", 0, 0, 0xFFFFFFFF, 0)
    path.write_bytes(path.read_bytes() + pack("<IIII", 0, 0, 0xFFFFFFFF, 0) + near * times(30_000, scale))
    return read(path)


@attack
def empty_packets(folder: Path, scale: float) -> list[str]:
    return read(pcap(folder / "empty.pcap", (b"" for _ in range(times(60_000, scale)))))


# ------------------------------------------------------------ IP


def four_pieces(ident: int, last: int = 8192) -> Iterator[bytes]:
    return (ip4(bytes(8), 0, ident, place | 0x2000) for place in range(1, last))


@attack
def fragments(folder: Path, scale: float) -> list[str]:
    """Of one datagram, of which the first is missing, from the last to the second."""
    pieces = [ip4(bytes(8), 0, 7, 8190), *reversed(list(four_pieces(7, 8190)))]
    return read(pcap(folder / "fragments.pcap", (pieces[at % len(pieces)] for at in range(times(24_000, scale)))))


@attack
def fragments_over_each_other(folder: Path, scale: float) -> list[str]:
    """Long fragments at every place of many datagrams; compressed."""
    body = bytes(8000)
    pieces = (ip4(body, 0, ident % 1024, place | 0x2000)
              for place in range(1, 7000) for ident in range(1024))  # fmt: skip
    some = (next(pieces) for _ in range(times(200_000, scale)))
    return read(packed(pcap(folder / "over.pcap", some)))


@attack
def fragments_of_six(folder: Path, scale: float) -> list[str]:
    """IPv6 fragments of datagrams that never become whole."""
    pieces = (ip6(pack(">BBHI", 6, 0, place * 8 | 1, 9) + bytes(8), 44) for place in range(1, 8000))
    return read(
        pcap(folder / "six.pcap", (piece for _, piece in zip(range(times(13_000, scale)), pieces, strict=False)))
    )


@attack
def extension_headers(folder: Path, scale: float) -> list[str]:
    """IPv6 packets of nothing but extension headers."""
    packet = ip6((bytes([0]) + bytes(7)) * 7_000, 0)
    return read(pcap(folder / "extensions.pcap", (packet for _ in range(times(18, scale)))))


@attack
def one_datagram_a_fragment(folder: Path, scale: float) -> list[str]:
    """Datagrams in two fragments of which the second is empty."""
    parts = ((ip4(tcp(0, 5)[20:44], 0, at & 0xFFFF, 0x2000), ip4(b"", 0, at & 0xFFFF, 3)) for at in count())
    some = (packet for _, pair in zip(range(times(9_000, scale)), parts, strict=False) for packet in pair)
    return read(pcap(folder / "two.pcap", some))


@attack
def nested_tunnels(folder: Path, scale: float) -> list[str]:
    """VXLAN in VXLAN as deep as packets go."""
    packet = ip4(b"")
    while len(packet) < 60_000:
        packet = vxlan(packet)
    return read(pcap(folder / "nested.pcap", (packet for _ in range(times(16, scale)))))


# ------------------------------------------------------------ TCP


@attack
def overlaps_in_midstream(folder: Path, scale: float) -> list[str]:
    """Segments of two bytes, each over the one before, of a connection without a beginning to a known broker."""
    segments = (tcp(0, 100 + at, b"ab", port=40001) for at in range(times(100_000, scale)))
    return read(pcap(folder / "overlaps.pcap", chain(talk(), segments)))


@attack
def single_bytes_in_midstream(folder: Path, scale: float) -> list[str]:
    """Of both sides in turn; some may be a frame's beginning."""
    data = (pack(">ihhi", 300, 3, 1, 5) + b"\0\3abc") * 10_000
    segments = (tcp(side, 100 + 2 * at, data[at : at + 1], port=40001)
                for at in range(times(8_500, scale)) for side in (0, 1))  # fmt: skip
    return read(pcap(folder / "bytes.pcap", chain(talk(), segments)))


@attack
def backwards(folder: Path, scale: float) -> list[str]:
    """Segments from the last to the first behind a hole."""
    last = times(17_000, scale)
    return read(pcap(folder / "backwards.pcap", chain(talk(), (tcp(0, 200 + at, b"x") for at in range(last, 0, -1)))))


@attack
def every_second_byte(folder: Path, scale: float) -> list[str]:
    """Every second byte is missing."""
    segments = (tcp(0, 200 + 2 * at, b"x") for at in range(times(17_000, scale)))
    return read(pcap(folder / "second.pcap", chain(talk(), segments)))


@attack
def holes_given_up(folder: Path, scale: float) -> list[str]:
    """Every second byte is missing, half a second from packet to packet."""
    segments = (tcp(0, 200 + 2 * at, b"x") for at in range(times(17_000, scale)))
    return read(pcap(folder / "holes.pcap", chain(talk(), segments), step=500_000))


@attack
def strays(folder: Path, scale: float) -> list[str]:
    """The same packet far ahead again and again."""
    return read(pcap(folder / "strays.pcap", chain(talk(), [tcp(0, 1 << 28, b"far")] * times(17_000, scale))))


@attack
def strays_everywhere(folder: Path, scale: float) -> list[str]:
    """Packets at random sequence numbers."""
    random = Random(1)
    segments = (tcp(0, random.randrange(1 << 32), b"far") for _ in range(times(17_000, scale)))
    return read(pcap(folder / "everywhere.pcap", chain(talk(), segments), step=300_000))


@attack
def keep_alives(folder: Path, scale: float) -> list[str]:
    end = 100 + len(BEAT)
    return read(
        pcap(folder / "alive.pcap", chain(talk(), (tcp(0, end - 1, b"\0") for _ in range(times(17_000, scale)))))
    )


@attack
def syns_again(folder: Path, scale: float) -> list[str]:
    """The same SYN again and again between bytes."""
    segments = (HELLO[0] if at % 2 else tcp(0, 100 + at, b"xy") for at in range(times(17_000, scale)))
    return read(pcap(folder / "syns.pcap", segments))


@attack
def epochs(folder: Path, scale: float) -> list[str]:
    """The same endpoints begin anew with every packet."""
    return read(pcap(folder / "epochs.pcap", (tcp(0, 1000 * at, b"", SYN) for at in range(times(18_000, scale)))))


@attack
def connections(folder: Path, scale: float) -> list[str]:
    """A connection a packet, with a byte in it."""
    segments = (tcp(0, 7, b"x", port=at & 0xFFFF) for at in range(times(17_000, scale)))
    return read(pcap(folder / "connections.pcap", segments))


@attack
def fins_again(folder: Path, scale: float) -> list[str]:
    segments = (tcp(0, 100 + len(BEAT), flags=FIN | ACK) for _ in range(times(18_000, scale)))
    return read(pcap(folder / "fins.pcap", chain(talk(), segments)))


@attack
def cut_behind_a_hole(folder: Path, scale: float) -> list[str]:
    """Segments of which the snaplen kept nothing, behind a hole; compressed."""
    segments = (tcp(0, 5000 + at, b"x" * 4) for at in range(0, 4 * times(2_000_000, scale), 4))
    path = pcap(folder / "cut.pcap", chain(talk(), segments), snaplen=40, step=0)
    return ["read", "--hold", "4MB", "--memory", "256MB", str(packed(path))]


@attack
def single_bytes_of_a_frame(folder: Path, scale: float) -> list[str]:
    """A frame of 100 MiB, a byte a segment; compressed."""
    claim = [pack(">ihhih", 100 << 20, 0, 9, 1, 1) + b"c"]
    segments = asked(chain(claim, (b"x" for _ in range(times(2_000_000, scale)))))
    path = pcap(folder / "single.pcap", chain(talk(), segments))
    return ["read", "--memory", "64MB", str(packed(path))]


# ------------------------------------------------------------ frames


@attack
def orphans(folder: Path, scale: float) -> list[str]:
    """Answers of 16 KB to nothing asked."""
    random = Random(1)
    bodies = [
        pack(">ii", 0, 1400) + b"\0\1a\0\1b\0\0\0\0\0" * 1400, pack(">i", 16_000) + bytes(16_000),
        pack(">i", 0) + pack(">i", 2000) + bytes(16_000), bytes(16_000),
        b"\0" + b"\xfd\x7c" + b"\2a\0" * 5_400, b"\0\0\0\0\0" + b"\x81\x40" + b"\1" * 16_000,
    ]  # fmt: skip
    frames = (sized(pack(">i", 7_000 + at) + random.choice(bodies)) for at in range(times(12, scale)))
    segments = asked(frames, 500 + len(BEATEN), 1)
    return read(pcap(folder / "orphans.pcap", chain(talk(), segments)))


@attack
def orphans_everywhere(folder: Path, scale: float) -> list[str]:
    """Answers of 700 bytes to nothing asked, each on a connection of its own."""
    body = pack(">i", 0) + pack(">i", 130) + b"\0\1a\0\0" * 130
    packets = (packet for at in range(times(900, scale)) for packet in (
        tcp(0, 99, flags=SYN, port=at), tcp(1, 499, flags=SYN | ACK, port=at), tcp(0, 100, BEAT, port=at),
        tcp(1, 500, BEATEN + sized(pack(">i", 7_000) + body), port=at)))  # fmt: skip
    return read(pcap(folder / "everywhere.pcap", packets))


@attack
def tiny_frames(folder: Path, scale: float) -> list[str]:
    """Answers of nothing but a correlation id."""
    frames = (b"".join(sized(pack(">i", at * 180 + more)) for more in range(180)) for at in range(times(600, scale)))
    return read(pcap(folder / "tiny.pcap", chain(talk(), asked(frames, 500 + len(BEATEN), 1))))


@attack
def early_answers(folder: Path, scale: float) -> list[str]:
    """Many answers, then requests for them from the last to the first."""
    many = times(4_000, scale)
    answers = asked((sized(pack(">i", at + 10)) for at in range(many)), 500 + len(BEATEN), 1)
    questions = asked(request(12, 0, at + 10, b"\0\1g\0\0\0\0\0\0") for at in range(many, 0, -1))
    return read(pcap(folder / "early.pcap", chain(talk(), answers, questions)))


@attack
def impossible_sizes(folder: Path, scale: float) -> list[str]:
    """A frame, then a size that cannot be, again and again."""
    wrong = (BEAT + b"\xff\xff\xff\xff") * 40
    return read(pcap(folder / "sizes.pcap", chain(talk(), asked(wrong for _ in range(times(600, scale))))))


@attack
def half_frames_in_midstream(folder: Path, scale: float) -> list[str]:
    """Places where a request may begin, none of which leads on."""
    near = pack(">ihhih", 60, 3, 1, 5, 3) + b"abc"
    return read(pcap(folder / "half.pcap", (
        tcp(0, 100 + 1400 * at, (near * 83)[:1400]) for at in range(times(650, scale)))))  # fmt: skip


@attack
def damaged_joins(folder: Path, scale: float) -> list[str]:
    """JoinGroup requests cut short, of a group each."""
    frames = []
    for at in range(times(40_000, scale)):
        group = b"group-%d" % at
        body = kwire.encode("JoinGroupRequest", 5, {
            "GroupId": group.decode(), "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 10_000, "MemberId": "m",
            "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": bytes(40)}]})  # fmt: skip
        frames.append(request(11, 5, 100 + at, body if at % 2 else body[:-30]))
    data = b"".join(frames)
    parts = (data[at : at + 1400] for at in range(0, len(data), 1400))
    return ["groups", str(pcap(folder / "joins.pcap", chain(talk(), asked(parts))))]
