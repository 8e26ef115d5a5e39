"""Attacks on what lies between packets and rows: tunnels, fragments in them, TLS, topic names, batches of exchanges,
texts that grow in an output. Scale 1.0 is about a megabyte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from struct import pack
from uuid import UUID

from packetsmade import (
    ACK,
    BEAT,
    BEATEN,
    BROKER,
    CLIENT,
    HELLO,
    SYN,
    Maker,
    asked,
    ip4,
    named,
    pcap,
    read,
    request,
    sized,
    talk,
    tcp,
    times,
    vxlan,
)

import kwire

MTU = 1400


def gre(inner: bytes, flags: int = 0, options: bytes = b"") -> bytes:
    payload = pack(">HH", flags, 0x0800) + options + inner
    return pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, 47, 0) + CLIENT + BROKER + payload


def vni(inner: bytes, number: int) -> bytes:
    packet = vxlan(inner)
    at = len(packet) - len(inner) - 14 - 4
    return packet[:at] + pack(">I", number << 8) + packet[at + 4 :]


def segments(frames: list[bytes], seq: int = 100 + len(BEAT), side: int = 0) -> Iterator[bytes]:
    """Frames in packets of a size that is usual."""
    data = b"".join(frames)
    return asked((data[at : at + MTU] for at in range(0, len(data), MTU)), seq, side)


def both(path: Path, asks: list[bytes], answers: list[bytes]) -> list[str]:
    """A connection that asks and is answered."""
    packets = chain(talk(), segments(asks), segments(answers, 500 + len(BEATEN), 1))
    return read(pcap(path / "both.pcap", packets))


# ------------------------------------------------------------ tunnels


def fragments_in_tunnels(folder: Path, scale: float) -> list[str]:
    """Of datagrams that never become whole, each in a tunnel of its own."""
    pieces = (vni(ip4(bytes(8), 0, 7, place % 8000 | 0x2000), place & 0xFFFFFF) for place in range(1, 1 << 24))
    return read(pcap(folder / "tunnels.pcap", islice(pieces, times(9_000, scale))))


def tunnels_in_fragments(folder: Path, scale: float) -> list[str]:
    """A tunnel's packets in fragments, the last one first."""
    whole = vxlan(tcp(0, 100, bytes(1000)))[20:]
    pieces = (
        pack(">BBHHHBBH", 0x45, 0, 20 + len(part), ident & 0xFFFF, at // 8 | more, 64, 17, 0) + CLIENT + BROKER + part
        for ident in range(times(800, scale))
        for at in reversed(range(0, len(whole), 64))
        for part, more in ((whole[at : at + 64], 0x2000 * (at + 64 < len(whole))),)
    )
    return read(pcap(folder / "pieces.pcap", pieces))


def a_connection_a_tunnel(folder: Path, scale: float) -> list[str]:
    packets = (vni(packet, number) for number in range(times(2_500, scale)) for packet in talk())
    return read(pcap(folder / "many.pcap", packets))


def tunnels_by_turns(folder: Path, scale: float) -> list[str]:
    """VXLAN in GRE in VXLAN, as deep as packets go."""
    packet = tcp(0, 100, BEAT)
    while len(packet) < 60_000:
        packet = vxlan(gre(packet))
    return read(pcap(folder / "turns.pcap", [packet] * times(16, scale)))


def routes_of_gre(folder: Path, scale: float) -> list[str]:
    """GRE with source routes that lead on and on (RFC 1701)."""
    packet = gre(ip4(b""), 0x4000, bytes(4) + pack(">HBB", 2, 0, 1) * 10_000)
    return read(pcap(folder / "routes.pcap", [packet] * times(25, scale)))


# ------------------------------------------------------------ TLS


def hellos_everywhere(folder: Path, scale: float) -> list[str]:
    """A ClientHello a connection."""
    body = b"\3\3" + os.urandom(32) + b"\0\0\2\x13\1\1\0\0\0"
    hello = b"\x16\3\1" + pack(">H", len(body) + 4) + b"\1" + len(body).to_bytes(3, "big") + body
    packets = []
    for port in range(times(5_000, scale)):
        packets += [tcp(0, 99, flags=SYN, port=port), tcp(1, 499, flags=SYN | ACK, port=port)]
        packets.append(tcp(0, 100, hello, port=port))
    return read(pcap(folder / "hellos.pcap", packets))


def empty_records(folder: Path, scale: float) -> list[str]:
    """Nothing but TLS records without content behind a ClientHello."""
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0\0\0"
    hello = b"\x16\3\1" + pack(">H", len(body) + 4) + b"\1" + len(body).to_bytes(3, "big") + body
    records = (b"\x17\3\3\0\0" * 280 for _ in range(times(700, scale)))
    return read(pcap(folder / "empty.pcap", chain(HELLO, asked(chain([hello], records), 100))))


def a_handshake_byte_by_byte(folder: Path, scale: float) -> list[str]:
    """A handshake message that claims 16 MB, each byte of it in a record."""
    first = b"\x16\3\1\0\4\1\xff\xff\xff"
    records = (b"\x16\3\3\0\1x" * 230 for _ in range(times(700, scale)))
    return read(pcap(folder / "handshake.pcap", chain(HELLO, asked(chain([first], records), 100))))


# ------------------------------------------------------------ exchanges


def topics_of_every_id(folder: Path, scale: float) -> list[str]:
    """Metadata that names new topics with new ids in every answer."""
    many = times(120, scale)
    ask = kwire.encode("MetadataRequest", 12, {"Topics": []})
    asks = [request(3, 12, 10 + at, b"\0" + ask) for at in range(many)]
    answers = [
        sized(pack(">i", 10 + at) + b"\0" + kwire.encode("MetadataResponse", 12, {
            "Topics": [{"Name": f"t-{at}-{n}", "TopicId": UUID(int=at << 20 | n | 1 << 64)} for n in range(200)]}))
        for at in range(many)
    ]  # fmt: skip
    return both(folder, asks, answers)


def topics_that_change_their_names(folder: Path, scale: float) -> list[str]:
    """One id, another name in every answer, and fetches by it in between."""
    many = times(4_000, scale)
    topic = {"TopicId": UUID(int=77)}
    ask = kwire.encode("MetadataRequest", 12, {"Topics": []})
    fetch = kwire.encode("FetchRequest", 13, {"Topics": [{**topic, "Partitions": [{}]}]})
    asks = [request(3, 12, at, b"\0" + ask) if at % 2 else request(1, 13, at, b"\0" + fetch) for at in range(many)]
    answers = [
        sized(pack(">i", at) + b"\0" + kwire.encode("MetadataResponse", 12, {"Topics": [{**topic, "Name": f"t-{at}"}]}))
        if at % 2 else sized(pack(">i", at) + b"\0" + kwire.encode("FetchResponse", 13, {}))
        for at in range(many)
    ]  # fmt: skip
    return both(folder, asks, answers)


def every_other_frame_is_damaged(folder: Path, scale: float) -> list[str]:
    """So that no run of regular frames is longer than one; each note is another."""
    asks = [BEAT if at % 2 else request(12, 0, at, b"\0\1g" + pack(">h", 100 + at % 9000)) for at in range(
        times(25_000, scale))]  # fmt: skip
    return both(folder, asks, [])


def one_correlation_id(folder: Path, scale: float) -> list[str]:
    """For all requests, and the answers come when all is asked."""
    many = times(14_000, scale)
    return both(folder, [BEAT] * many, [BEATEN] * many)


def client_ids_without_end(folder: Path, scale: float) -> list[str]:
    """Another one in each request."""
    many = times(16_000, scale)
    body = kwire.encode("HeartbeatRequest", 0, {"GroupId": "g"})
    asks = [request(12, 0, at, body, b"client-%d" % at) for at in range(many)]
    return both(folder, asks, [sized(pack(">i", at) + bytes(2)) for at in range(many)])


def every_version_of_every_api(folder: Path, scale: float) -> list[str]:
    """And of APIs that there are not."""
    asks = [request(at % 113, at // 113 % 32000, at, bytes(8)) for at in range(times(30_000, scale))]
    return both(folder, asks, [])


def handshakes_without_end(folder: Path, scale: float) -> list[str]:
    """A login that begins anew with each request, tokens in between."""
    hand = request(17, 0, 1, kwire.encode("SaslHandshakeRequest", 0, {"Mechanism": "PLAIN"}))
    asks = [hand if at % 2 else sized(b"\0alice\0" + b"%08d" % at) for at in range(times(30_000, scale))]
    return both(folder, asks, [])


def refused_versions(folder: Path, scale: float) -> list[str]:
    """ApiVersions of versions that nobody knows, each refused."""
    many = times(20_000, scale)
    refusal = kwire.encode("ApiVersionsResponse", 0, {"ErrorCode": 35})
    asks = [request(18, 100 + at % 30_000, at, bytes(4)) for at in range(many)]
    return both(folder, asks, [sized(pack(">i", at) + refusal) for at in range(many)])


# ------------------------------------------------------------ outputs


def texts_that_grow(folder: Path, scale: float) -> list[str]:
    """Control characters take six times their bytes as JSON."""
    body = kwire.encode("LeaveGroupRequest", 0, {"GroupId": "\x01" * 30_000, "MemberId": "\u202e" * 9_000})
    asks = [request(13, 0, at, body) for at in range(times(18, scale))]
    return [*both(folder, asks, []), "--body", "--format", "json"]


def groups_of_many_members(folder: Path, scale: float) -> list[str]:
    """A member a request, all of one group."""
    many = times(12_000, scale)
    asks = [
        request(12, 3, at, kwire.encode("HeartbeatRequest", 3, {"GroupId": "g", "MemberId": f"m-{at}"}))
        for at in range(many)
    ]
    _, path = both(folder, asks, [sized(pack(">i", at) + bytes(6)) for at in range(many)])
    return ["groups", path]


def statistics_of_many_topics(folder: Path, scale: float) -> list[str]:
    """A topic a partition, all of them different."""
    asks = [
        request(2, 1, at, kwire.encode("ListOffsetsRequest", 1, {
            "Topics": [{"Name": f"t-{at}-{n}", "Partitions": [{}]} for n in range(1_000)]}))
        for at in range(times(40, scale))
    ]  # fmt: skip
    _, path = both(folder, asks, [])
    return ["stats", "--all", path]


def a_query_of_parentheses(folder: Path, scale: float) -> list[str]:
    """As deep as a query goes, on a capture."""
    path = pcap(folder / "x.pcap", talk())
    return ["sql", str(path), "select " + "(" * times(60_000, scale) + "1"]


ATTACKS: dict[str, Maker] = named(
    fragments_in_tunnels, tunnels_in_fragments, a_connection_a_tunnel, tunnels_by_turns, routes_of_gre,
    hellos_everywhere, empty_records, a_handshake_byte_by_byte, topics_of_every_id, topics_that_change_their_names,
    every_other_frame_is_damaged, one_correlation_id, client_ids_without_end, every_version_of_every_api,
    handshakes_without_end, refused_versions, texts_that_grow, groups_of_many_members, statistics_of_many_topics,
    a_query_of_parentheses,
)  # fmt: skip
