"""Captures that cost more than their bytes are worth: TCP, frames and groups."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from random import Random
from struct import pack

from packetsmade import (
    ACK,
    BEAT,
    BEATEN,
    FIN,
    HELLO,
    SYN,
    Maker,
    asked,
    named,
    packed,
    pcap,
    read,
    request,
    sized,
    talk,
    tcp,
    times,
)  # fmt: skip

import kwire

# ------------------------------------------------------------ TCP


def overlaps_in_midstream(folder: Path, scale: float) -> list[str]:
    """Segments of two bytes, each over the one before, of a connection without a beginning to a known broker."""
    segments = (tcp(0, 100 + at, b"ab", port=40001) for at in range(times(100_000, scale)))
    return read(pcap(folder / "overlaps.pcap", chain(talk(), segments)))


def single_bytes_in_midstream(folder: Path, scale: float) -> list[str]:
    """Of both sides in turn; some may be a frame's beginning."""
    data = (pack(">ihhi", 300, 3, 1, 5) + b"\0\3abc") * 10_000
    segments = (tcp(side, 100 + 2 * at, data[at : at + 1], port=40001)
                for at in range(times(8_500, scale)) for side in (0, 1))  # fmt: skip
    return read(pcap(folder / "bytes.pcap", chain(talk(), segments)))


def backwards(folder: Path, scale: float) -> list[str]:
    """Segments from the last to the first behind a hole."""
    last = times(17_000, scale)
    return read(pcap(folder / "backwards.pcap", chain(talk(), (tcp(0, 200 + at, b"x") for at in range(last, 0, -1)))))


def every_second_byte(folder: Path, scale: float) -> list[str]:
    """Every second byte is missing."""
    segments = (tcp(0, 200 + 2 * at, b"x") for at in range(times(17_000, scale)))
    return read(pcap(folder / "second.pcap", chain(talk(), segments)))


def holes_given_up(folder: Path, scale: float) -> list[str]:
    """Every second byte is missing, half a second from packet to packet."""
    segments = (tcp(0, 200 + 2 * at, b"x") for at in range(times(17_000, scale)))
    return read(pcap(folder / "holes.pcap", chain(talk(), segments), step=500_000))


def strays(folder: Path, scale: float) -> list[str]:
    """The same packet far ahead again and again."""
    return read(pcap(folder / "strays.pcap", chain(talk(), [tcp(0, 1 << 28, b"far")] * times(17_000, scale))))


def strays_everywhere(folder: Path, scale: float) -> list[str]:
    """Packets at random sequence numbers."""
    random = Random(1)
    segments = (tcp(0, random.randrange(1 << 32), b"far") for _ in range(times(17_000, scale)))
    return read(pcap(folder / "everywhere.pcap", chain(talk(), segments), step=300_000))


def keep_alives(folder: Path, scale: float) -> list[str]:
    end = 100 + len(BEAT)
    return read(
        pcap(folder / "alive.pcap", chain(talk(), (tcp(0, end - 1, b"\0") for _ in range(times(17_000, scale)))))
    )


def syns_again(folder: Path, scale: float) -> list[str]:
    """The same SYN again and again between bytes."""
    segments = (HELLO[0] if at % 2 else tcp(0, 100 + at, b"xy") for at in range(times(17_000, scale)))
    return read(pcap(folder / "syns.pcap", segments))


def epochs(folder: Path, scale: float) -> list[str]:
    """The same endpoints begin anew with every packet."""
    return read(pcap(folder / "epochs.pcap", (tcp(0, 1000 * at, b"", SYN) for at in range(times(18_000, scale)))))


def connections(folder: Path, scale: float) -> list[str]:
    """A connection a packet, with a byte in it."""
    segments = (tcp(0, 7, b"x", port=at & 0xFFFF) for at in range(times(17_000, scale)))
    return read(pcap(folder / "connections.pcap", segments))


def fins_again(folder: Path, scale: float) -> list[str]:
    segments = (tcp(0, 100 + len(BEAT), flags=FIN | ACK) for _ in range(times(18_000, scale)))
    return read(pcap(folder / "fins.pcap", chain(talk(), segments)))


def cut_behind_a_hole(folder: Path, scale: float) -> list[str]:
    """Segments of which the snaplen kept nothing, behind a hole; compressed."""
    segments = (tcp(0, 5000 + at, b"x" * 4) for at in range(0, 4 * times(2_000_000, scale), 4))
    path = pcap(folder / "cut.pcap", chain(talk(), segments), snaplen=40, step=0)
    return ["read", "--hold", "4MB", "--memory", "256MB", str(packed(path))]


def single_bytes_of_a_frame(folder: Path, scale: float) -> list[str]:
    """A frame of 100 MiB, a byte a segment; compressed."""
    claim = [pack(">ihhih", 100 << 20, 0, 9, 1, 1) + b"c"]
    segments = asked(chain(claim, (b"x" for _ in range(times(2_000_000, scale)))))
    path = pcap(folder / "single.pcap", chain(talk(), segments))
    return ["read", "--memory", "64MB", str(packed(path))]


# ------------------------------------------------------------ frames


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


def orphans_everywhere(folder: Path, scale: float) -> list[str]:
    """Answers of 700 bytes to nothing asked, each on a connection of its own."""
    body = pack(">i", 0) + pack(">i", 130) + b"\0\1a\0\0" * 130
    packets = (packet for at in range(times(900, scale)) for packet in (
        tcp(0, 99, flags=SYN, port=at), tcp(1, 499, flags=SYN | ACK, port=at), tcp(0, 100, BEAT, port=at),
        tcp(1, 500, BEATEN + sized(pack(">i", 7_000) + body), port=at)))  # fmt: skip
    return read(pcap(folder / "everywhere.pcap", packets))


def tiny_frames(folder: Path, scale: float) -> list[str]:
    """Answers of nothing but a correlation id."""
    frames = (b"".join(sized(pack(">i", at * 180 + more)) for more in range(180)) for at in range(times(600, scale)))
    return read(pcap(folder / "tiny.pcap", chain(talk(), asked(frames, 500 + len(BEATEN), 1))))


def early_answers(folder: Path, scale: float) -> list[str]:
    """Many answers, then requests for them from the last to the first."""
    many = times(4_000, scale)
    answers = asked((sized(pack(">i", at + 10)) for at in range(many)), 500 + len(BEATEN), 1)
    questions = asked(request(12, 0, at + 10, b"\0\1g\0\0\0\0\0\0") for at in range(many, 0, -1))
    return read(pcap(folder / "early.pcap", chain(talk(), answers, questions)))


def impossible_sizes(folder: Path, scale: float) -> list[str]:
    """A frame, then a size that cannot be, again and again."""
    wrong = (BEAT + b"\xff\xff\xff\xff") * 40
    return read(pcap(folder / "sizes.pcap", chain(talk(), asked(wrong for _ in range(times(600, scale))))))


def half_frames_in_midstream(folder: Path, scale: float) -> list[str]:
    """Places where a request may begin, none of which leads on."""
    near = pack(">ihhih", 60, 3, 1, 5, 3) + b"abc"
    return read(pcap(folder / "half.pcap", (
        tcp(0, 100 + 1400 * at, (near * 83)[:1400]) for at in range(times(650, scale)))))  # fmt: skip


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


ATTACKS: dict[str, Maker] = named(
    overlaps_in_midstream, single_bytes_in_midstream, backwards, every_second_byte, holes_given_up, strays,
    strays_everywhere, keep_alives, syns_again, epochs, connections, fins_again, cut_behind_a_hole,
    single_bytes_of_a_frame, orphans, orphans_everywhere, tiny_frames, early_answers, impossible_sizes,
    half_frames_in_midstream, damaged_joins,
)  # fmt: skip
