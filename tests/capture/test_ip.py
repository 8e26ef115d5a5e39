"""IPv4 with options, IPv6 with extension headers, fragments of both, lengths that lie, packets cut anywhere."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from itertools import pairwise, permutations
from struct import pack
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, fragment
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    fragment6,
)
from scapy.layers.ipsec import AH

from kwire.capture.fragments import MAX_PENDING
from kwire.capture.ip import Network, address_text
from kwire.capture.packets import Columns, Packets

BODY = bytes(range(200))
MORE = 0x2000


def payloads(block: Packets, network: Network) -> list[bytes]:
    """What IP carried: the captured bytes."""
    found = network.read(block, Columns(block.buffer))
    pairs = zip(found.start.tolist(), found.have.tolist(), strict=True)
    return [bytes(block.buffer[start:have]) for start, have in pairs]


def whole(network: Network) -> list[tuple[int, bytes]]:
    """Datagrams that fragments made: the number of the last packet, and the payload."""
    block = network.take_whole()
    return [] if block is None else list(zip(block.number.tolist(), payloads(block, Network()), strict=True))


def pieces(make: Any, *cuts: int, ident: int = 5, body: bytes = BODY) -> list[bytes]:
    """body in IPv4 fragments."""
    ends = [0, *cuts, len(body)]
    return [
        make.ip4(body[low:high], ident=ident, fragment=low // 8 | (MORE if high < len(body) else 0))
        for low, high in pairwise(ends)
    ]


def piece_of_six(make: Any, low: int, high: int, more: bool, kind: int = 6, ident: int = 9) -> bytes:
    head = pack(">BBHI", kind, 0, low | more, ident)
    packet: bytes = make.ip6(head + BODY[low:high], kind=44)
    return packet


@pytest.mark.parametrize(
    ("high", "low", "text"),
    [
        (0, 0xFFFF0A000007, "10.0.0.7"),
        (0, 1, "::1"),
        (0, 0, "::"),
        (0x20010DB8 << 32, 0x42, "2001:db8::42"),
        (0, 0xFFFE0A000007, "::fffe:a00:7"),
        (1, 0xFFFF0A000007, "::1:0:ffff:a00:7"),
    ],
)
def test_addresses_as_people_write_them(high: int, low: int, text: str) -> None:
    assert address_text(high, low) == text


def test_ipv4_gives_addresses_and_the_segment(make: Any) -> None:
    block = make.block([make.ip4(BODY, "10.1.2.3", "192.168.0.9"), make.ip4(b"udp", protocol=17)])
    found = Network().read(block, Columns(block.buffer))
    assert found.index.tolist() == [0]
    ends = (int(found.source_high[0]), int(found.source[0])), (int(found.target_high[0]), int(found.target[0]))
    assert [address_text(*end) for end in ends] == ["10.1.2.3", "192.168.0.9"]
    assert (found.end - found.start).tolist() == [200]


def test_ipv4_and_ipv6_keep_the_order_of_the_capture(make: Any) -> None:
    packets = [make.ip6(b"a"), make.ip4(b"b"), b"\x50", make.ip6(b"c"), make.ip4(b"d"), make.ip6(b"u", kind=17)]
    block = make.block(packets)
    found = Network().read(block, Columns(block.buffer))
    assert found.index.tolist() == [0, 1, 3, 4]
    assert [address_text(*map(int, end)) for end in zip(found.source_high, found.source, strict=True)] == [
        "fd00::1", "10.0.0.1", "fd00::1", "10.0.0.1",
    ]  # fmt: skip
    assert payloads(block, Network()) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("words", range(11))
def test_ipv4_options_are_gone_over(make: Any, words: int) -> None:
    assert payloads(make.block([make.ip4(BODY, options=b"\x01" * 4 * words)]), Network()) == [BODY]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"total": 0}, BODY),  # the card was to fill it in
        ({"total": 120}, BODY[:100]),  # padding behind a short packet
        ({"total": 20}, b""),
        ({"total": 19}, None),
        ({"total": 5000}, BODY),
    ],
)
def test_the_length_of_ipv4_bounds_the_segment(make: Any, change: dict[str, int], expected: bytes | None) -> None:
    found = payloads(make.block([make.ip4(BODY, **change)]), Network())
    assert found == ([] if expected is None else [expected])


@pytest.mark.parametrize(("size", "expected"), [(0, BODY), (100, BODY[:100]), (5000, BODY)])
def test_the_length_of_ipv6_bounds_the_segment(make: Any, size: int, expected: bytes) -> None:
    assert payloads(make.block([make.ip6(BODY, size=size)]), Network()) == [expected]


def test_an_ipv4_header_shorter_than_five_words_is_no_header(make: Any) -> None:
    assert payloads(make.block([b"\x44" + make.ip4(BODY)[1:]]), Network()) == []


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize("link", [1, 101])
def test_a_packet_cut_anywhere_gives_what_it_has(make: Any, six: bool, link: int) -> None:
    packet = make.ip6(BODY) if six else make.ip4(BODY, options=bytes(8))
    if link == 1:
        packet = make.ether(packet, 0x86DD if six else 0x0800)
    head = len(packet) - len(BODY)
    for snaplen in range(len(packet) + 1):
        block = make.block([packet] * 2, link, snaplen)
        found = Network().read(block, Columns(block.buffer))
        assert payloads(block, Network()) == ([] if snaplen < head else [BODY[: snaplen - head]] * 2)
        assert all(size == len(BODY) for size in (found.end - found.start).tolist())


HOP, DESTINATION, ROUTING = IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(addresses=["::5", "::6"])


@pytest.mark.parametrize(
    "packet",
    [
        IPv6() / HOP,
        IPv6() / HOP / DESTINATION,
        IPv6() / ROUTING,
        IPv6() / AH(nh=6, payloadlen=4, icv=bytes(12)),
        IPv6() / HOP / ROUTING / DESTINATION / AH(nh=6, payloadlen=6, icv=bytes(20)),
        IPv6() / IPv6ExtHdrFragment(),
        IPv6() / HOP / IPv6ExtHdrFragment(id=7) / DESTINATION,
    ],
)
def test_ipv6_extension_headers_of_scapy_are_gone_over(make: Any, packet: Any) -> None:
    segment = bytes(TCP(sport=40000, dport=9092)) + BODY
    raw = bytes(packet / TCP(sport=40000, dport=9092) / BODY)
    network = Network()
    (found,) = payloads(make.block([raw]), network)
    assert found[:16] + found[18:] == segment[:16] + segment[18:]  # all but the checksum
    assert network.pending == 0
    head = len(raw) - len(found)
    for snaplen in range(len(raw)):
        cut = payloads(make.block([raw], snaplen=snaplen), Network())
        assert cut == ([found[: snaplen - head]] if snaplen >= head + 8 else [])


@pytest.mark.parametrize("kind", [17, 59, 58])
def test_extension_headers_before_something_else_lead_to_no_segment(make: Any, kind: int) -> None:
    assert payloads(make.block([make.ip6(bytes([kind, 0]) + bytes(6) + BODY, kind=0)]), Network()) == []


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_ipv4_fragments_come_in_any_order(make: Any, order: tuple[int, ...]) -> None:
    parts, network = pieces(make, 48, 96, 160), Network()
    assert payloads(make.block([parts[index] for index in order]), network) == []
    assert whole(network) == [(4, BODY)]
    assert (network.pending, network.take_whole()) == (0, None)


def test_ipv6_fragments_come_in_any_order_and_over_blocks(make: Any) -> None:
    network, spans = Network(), [(104, 200, False), (0, 56, True), (56, 104, True)]
    for number, (low, high, more) in enumerate(spans, 1):
        assert whole(network) == []
        assert payloads(make.block([piece_of_six(make, low, high, more)], first=number), network) == []
    assert whole(network) == [(3, BODY)]


def test_fragments_of_scapy_come_together(make: Any) -> None:
    four = fragment(IP(src="10.0.0.1", dst="10.0.0.2", id=3) / TCP() / (BODY * 5), fragsize=240)
    six = fragment6(IPv6() / IPv6ExtHdrFragment(id=4) / TCP() / (BODY * 5), 400)
    assert min(len(four), len(six)) > 2
    network = Network()
    payloads(make.block([bytes(packet) for packet in [*four[::-1], *six[::-1]]]), network)
    assert [data[20:] for _, data in whole(network)] == [BODY * 5] * 2


def test_fragments_of_several_datagrams_are_told_apart(make: Any) -> None:
    other = bytes(reversed(BODY))
    first, second = pieces(make, 96), pieces(make, 96, ident=6, body=other)
    udp = make.ip4(BODY[:96], ident=5, fragment=MORE, protocol=17)
    network = Network()
    payloads(make.block([udp, first[0], second[1], second[0], first[1]]), network)
    assert whole(network) == [(4, other), (5, BODY)]


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 96), (0, 96), (96, 200)],
        [(0, 96), (48, 200)],
        [(48, 200), (0, 96)],
        [(0, 160), (48, 96), (96, 200)],
        [(0, 48), (0, 96), (96, 200)],
        [(96, 200), (0, 48), (0, 96)],
    ],
)
def test_fragments_may_overlap(make: Any, spans: list[tuple[int, int]]) -> None:
    parts = [make.ip4(BODY[low:high], fragment=low // 8 | (MORE if high < 200 else 0)) for low, high in spans]
    network = Network()
    payloads(make.block(parts), network)
    assert [data for _, data in whole(network)] == [BODY]


@pytest.mark.parametrize("lost", range(3))
def test_an_incomplete_datagram_is_never_given(make: Any, lost: int) -> None:
    parts, network = pieces(make, 48, 96), Network()
    del parts[lost]
    payloads(make.block(parts), network)
    assert (network.take_whole(), network.pending) == (None, 1)


@pytest.mark.parametrize("kept", [0, 1, 95, 96, 103])
def test_a_fragment_cut_by_the_snaplen_makes_no_datagram(make: Any, kept: int) -> None:
    network = Network()
    payloads(make.block(pieces(make, 96), snaplen=20 + kept), network)
    six = [piece_of_six(make, 0, 96, True), piece_of_six(make, 96, 200, False)]
    payloads(make.block(six, snaplen=48 + kept), network)
    assert network.take_whole() is None


def test_fragments_of_a_datagram_long_ago_are_not_mixed_in(make: Any) -> None:
    old, new, network = pieces(make, 96, body=bytes(200)), pieces(make, 96), Network()
    payloads(make.block(old[:1]), network)
    payloads(make.block(new[1:], first=2, time=60 * make.second), network)
    assert network.take_whole() is None
    payloads(make.block(new[:1], first=3, time=60 * make.second), network)
    assert whole(network) == [(3, BODY)]


@pytest.mark.parametrize("place", [0x1FFF, 0x1FFE, 0x1FF0])
def test_fragments_beyond_the_largest_datagram_are_left_out(make: Any, place: int) -> None:
    size, network = (1 << 16) - place * 8, Network()
    last = make.ip4(bytes(size), fragment=place)
    rest = [make.ip4(bytes(min(8000, place * 8 - low)), fragment=low // 8 | MORE) for low in range(0, place * 8, 8000)]
    payloads(make.block([last, *rest]), network)
    assert network.take_whole() is None


def test_only_so_many_datagrams_wait_for_fragments(make: Any) -> None:
    network = Network()
    block = make.block([make.ip4(BODY[:96], ident=ident, fragment=MORE) for ident in range(MAX_PENDING + 50)])
    payloads(block, network)
    assert network.pending == MAX_PENDING
    ends = [make.ip4(BODY[96:], ident=ident, fragment=12) for ident in (MAX_PENDING + 49, 3)]
    payloads(make.block(ends), network)
    assert [data for _, data in whole(network)] == [BODY]


def test_packets_of_unknown_links_are_counted(make: Any) -> None:
    network = Network()
    for link in (105, 105, 1, 0xFFFF):
        block = make.block([b"\x45" * 60] * 2, link)
        assert len(network.read(block, Columns(block.buffer)).index) == 0
    assert network.unread == {105: 4, 0xFFFF: 2}
