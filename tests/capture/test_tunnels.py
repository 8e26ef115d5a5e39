"""Tunnels of every kind, alone and in each other: the TCP inside, its addresses, and what is said of them."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from struct import pack
from typing import Any

import pytest
from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III, ERSPAN_PlatformSpecific
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN

from kwire.capture.connections import Connections
from kwire.capture.ip import Network, address_text
from kwire.capture.packets import Columns, Packets
from kwire.capture.segmenter import Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.capture.tunnels import DEEPEST, MOST_PATHS, NAMES, Paths

BODY = bytes(range(100))
SEGMENT = TCP(sport=40000, dport=9092, seq=7, flags="A") / BODY
FOUR = IP(src="10.0.0.1", dst="10.0.0.2") / SEGMENT
SIX = IPv6(src="fd00::1", dst="fd00::2") / SEGMENT
OUT, OUT6 = IP(src="192.0.2.1", dst="192.0.2.2"), IPv6(src="2001:db8::1", dst="2001:db8::2")
ENDS = {FOUR.version: ["10.0.0.1", "10.0.0.2"], SIX.version: ["fd00::1", "fd00::2"]}
FLOW, GPE, TO_GENEVE = UDP(sport=50000), UDP(sport=50000, dport=4790), UDP(sport=50000, dport=6081)
MAC = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def framed(inner: Any, *between: Any) -> Any:
    """In Ethernet."""
    packet = MAC
    for layer in between:
        packet = packet / layer
    return packet / inner


def erspan_i(inner: Any) -> Any:
    return OUT / GRE(proto=0x88BE) / bytes(framed(inner))


def raw_gre(inner: Any, flags: int, extra: int, kind: int) -> Any:
    """With so many bytes of optional fields."""
    return IP(src="192.0.2.1", dst="192.0.2.2", proto=47) / (pack(">HH", flags, kind) + bytes(extra) + bytes(inner))


WAYS: dict[str, list[Callable[[Any], Any]]] = {
    "IPIP/6in4": [lambda inner: OUT / inner],
    "4in6/IP6IP6": [lambda inner: OUT6 / inner],
    "GRE": [
        lambda inner: OUT / GRE() / inner,
        lambda inner: OUT6 / GRE() / inner,
        lambda inner: OUT / GRE(chksum_present=1, seqnum_present=1) / inner,
        lambda inner: OUT / GRE(key_present=1, key=5) / inner,
        lambda inner: OUT / GRE(chksum_present=1, key_present=1, seqnum_present=1) / inner,
        lambda inner: OUT / GRE() / framed(inner),
        lambda inner: raw_gre(PPP() / inner, 0x3001, 8, 0x880B),
        lambda inner: raw_gre(b"\xff\x03" + bytes(PPP() / inner), 0x3081, 12, 0x880B),
    ],
    "NVGRE": [lambda inner: OUT / GRE(key_present=1, key=0x500001) / framed(inner)],
    "ERSPAN": [
        erspan_i,
        lambda inner: OUT / GRE(seqnum_present=1, proto=0x88BE) / ERSPAN_II(session_id=9) / framed(inner),
        lambda inner: OUT / GRE(seqnum_present=1, proto=0x22EB) / ERSPAN_III(o=0) / framed(inner),
        lambda inner: OUT / GRE(seqnum_present=1, proto=0x22EB) / ERSPAN_III(o=1) / ERSPAN_PlatformSpecific()
        / framed(inner),
        lambda inner: OUT / GRE(seqnum_present=1, proto=0x22EB) / ERSPAN_III(ft=2, o=0) / bytes(inner),
        lambda inner: OUT / GRE(seqnum_present=1, proto=0x88BE) / ERSPAN_II() / framed(inner, Dot1Q(vlan=5)),
    ],
    "VXLAN": [
        lambda inner: OUT / FLOW / VXLAN(vni=42) / framed(inner),
        lambda inner: OUT / UDP(sport=50000, dport=8472) / VXLAN(vni=42, flags="Instance") / framed(inner),
        lambda inner: OUT6 / FLOW / VXLAN(vni=42) / framed(inner, Dot1Q(vlan=5)),
        lambda inner: OUT / FLOW / VXLAN(vni=42, gpid=7) / framed(inner),
    ],
    "VXLAN-GPE": [
        lambda inner: OUT / GPE / pack(">BHBI", 0x0C, 0, 3, 42 << 8) / framed(inner),
        lambda inner: OUT / GPE / pack(">BHBI", 0x0C, 0, 1 if inner.version == 4 else 2, 42 << 8) / inner,
    ],
    "Geneve": [
        lambda inner: OUT / FLOW / GENEVE(vni=42) / framed(inner),
        lambda inner: OUT / TO_GENEVE / pack(">BBHI", 2, 0, 0x6558, 42 << 8) / bytes(8) / framed(inner),
        lambda inner: OUT6 / TO_GENEVE / pack(">BBHI", 0, 0, 0x0800 if inner.version == 4 else 0x86DD, 42 << 8) / inner,
    ],
    "MPLS in IP": [lambda inner: IP(proto=137) / bytes(MPLS(s=0) / MPLS(s=1) / inner)],
    "MPLS in UDP": [lambda inner: OUT / UDP(sport=50000, dport=6635) / bytes(MPLS(s=1) / inner)],
}  # fmt: skip
LINKS: dict[str, list[Callable[[Any], Any]]] = {
    "": [framed, lambda inner: framed(inner, Dot1Q(vlan=5))],
    "MPLS": [
        lambda inner: framed(inner, MPLS(label=5, s=1)),
        lambda inner: framed(inner, MPLS(label=5, s=0), MPLS(label=6, s=0), MPLS(label=7, s=1)),
        lambda inner: framed(inner, Dot1Q(vlan=5), MPLS(label=5, s=1)),
        lambda inner: MAC / MPLS(s=1) / (bytes(4) + bytes(framed(inner))),  # with a control word
        lambda inner: MAC / MPLS(s=1) / framed(inner),
    ],
    "PPPoE": [lambda inner: framed(inner, PPPoE(sessionid=1), PPP())],
}
SEVERAL = {
    "GRE in VXLAN": lambda inner: OUT / FLOW / VXLAN() / framed(OUT6 / GRE() / inner),
    "VXLAN in VXLAN": lambda inner: OUT / FLOW / VXLAN() / framed(OUT / FLOW / VXLAN() / framed(inner)),
    "MPLS in VXLAN": lambda inner: OUT / FLOW / VXLAN() / framed(inner, MPLS(s=1)),
    "MPLS in GRE": lambda inner: OUT / GRE(proto=0x8847) / MPLS(label=5, s=1) / inner,
    "VXLAN in ERSPAN": lambda inner: erspan_i(OUT / FLOW / VXLAN() / framed(inner)),
}


def name_of(way: str, six: bool) -> str:
    return way.split("/")[six] if "/" in way else way


CASES = [
    (name_of(way, inner is SIX), make_packet(inner))
    for way, makers in WAYS.items() for make_packet, inner in product(makers, (FOUR, SIX))
] + [(way, make_packet(inner)) for way, make_packet in SEVERAL.items() for inner in (FOUR, SIX)]  # fmt: skip


def texts(network: Network, block: Packets) -> list[tuple[list[str], bytes, str]]:
    """Of each TCP segment the ends, the captured bytes behind its header, and what it came through."""
    found = network.read(block, Columns(block.buffer))
    out = []
    for row in range(len(found.index)):
        ends = [
            address_text(int(high[row]), int(low[row]))
            for high, low in ((found.source_high, found.source), (found.target_high, found.target))
        ]
        data = bytes(block.buffer[int(found.start[row]) + 20 : int(found.have[row])])
        out.append((ends, data, network.paths.texts[int(found.tunnel[row])]))
    return out


@pytest.mark.parametrize(("name", "packet"), CASES)
def test_a_tunnel_is_looked_into(make: Any, name: str, packet: Any) -> None:
    network = Network()
    inner = ENDS[4] if "10.0.0.1" in repr(packet) or bytes([10, 0, 0, 1]) in bytes(packet) else ENDS[6]
    assert texts(network, make.block([bytes(packet)] * 2)) == [(inner, BODY, name)] * 2
    assert network.counts == {f"came through {name}": 2}


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize(("name", "number"), [(name, at) for name, made in LINKS.items() for at in range(len(made))])
def test_what_stands_between_ethernet_and_ip(make: Any, name: str, number: int, six: bool) -> None:
    network, inner = Network(), SIX if six else FOUR
    block = make.block([bytes(LINKS[name][number](inner))], link=1)
    assert texts(network, block) == [(ENDS[inner.version], BODY, name)]
    assert network.counts == ({f"came through {name}": 1} if name else {})


def test_packets_in_tunnels_and_others_keep_the_order_of_the_capture(make: Any) -> None:
    packets = [packet for _, packet in CASES[::3]]
    mixed = [bytes(one) for packet in packets for one in (packet, FOUR, SIX, OUT / UDP(dport=53) / b"dns")]
    found = texts(Network(), make.block(mixed))
    names = [name for pair in zip([name for name, _ in CASES[::3]], strict=True) for name in (*pair, "", "")]
    assert [name for _, _, name in found] == names


@pytest.mark.slow
@pytest.mark.parametrize(("name", "packet"), CASES[::2])
def test_a_packet_in_a_tunnel_may_be_cut_anywhere(make: Any, name: str, packet: Any) -> None:
    raw = bytes(packet)
    for snaplen in range(len(raw)):
        found = Network().read(block := make.block([raw] * 2, snaplen=snaplen), Columns(block.buffer))
        sizes = (found.end - found.start).tolist()
        assert sizes in ([], [120, 120])
        if len(raw) - len(BODY) <= snaplen:
            kept = [data for _, data, _ in texts(Network(), block)]
            assert kept == [BODY[: len(BODY) - len(raw) + snaplen]] * 2, (name, snaplen)


def test_a_mirror_that_cuts_packets_leaves_them_cut(make: Any) -> None:
    inner = bytes(framed(FOUR))[:80]
    block = make.block([bytes(OUT / GRE(proto=0x88BE) / inner), b"\xee" * 200])
    found = Network().read(block, Columns(block.buffer))
    assert ((found.end - found.start).tolist(), (found.have - found.start).tolist()) == ([120], [80 - 34])


def test_padding_behind_the_inner_packet_is_none_of_it(make: Any) -> None:
    packet = OUT / FLOW / VXLAN() / (bytes(framed(IP(src="10.0.0.1", dst="10.0.0.2") / TCP() / b"x")) + bytes(17))
    ((_, data, _),) = texts(Network(), make.block([bytes(packet)]))
    assert data == b"x"


@pytest.mark.parametrize("way", ["VXLAN", "GRE", "IPIP"])
def test_fragments_around_a_tunnel_and_inside(make: Any, way: str) -> None:
    wrap = {"VXLAN": WAYS["VXLAN"][0], "GRE": WAYS["GRE"][0], "IPIP": WAYS["IPIP/6in4"][0]}[way]
    network = Network()
    around = [bytes(one) for one in fragment(IP(bytes(wrap(FOUR))), fragsize=64)]
    assert texts(network, make.block(around[::-1])) == []
    whole = network.take_whole()
    assert whole is not None
    assert texts(network, whole) == [(ENDS[4], BODY, way)]
    within = [bytes(wrap(one)) for one in fragment(FOUR, fragsize=48)]
    assert texts(network, make.block(within)) == []
    whole = network.take_whole()
    assert whole is not None
    assert [(ends, data) for ends, data, _ in texts(network, whole)] == [(ENDS[4], BODY)]


@pytest.mark.parametrize(
    "packet",
    [
        OUT / FLOW / VXLAN(flags=0) / framed(FOUR),
        OUT / UDP(dport=4791) / VXLAN(vni=1) / framed(FOUR),
        OUT / FLOW / VXLAN(vni=1) / framed(b"\0" * 40),
        OUT / UDP(sport=50000, dport=6081) / pack(">BBHI", 0x40, 0, 0x6558, 0) / framed(FOUR),
        raw_gre(FOUR, 0x4000, 4, 0x0800),
        raw_gre(FOUR, 0x0002, 0, 0x0800),
        raw_gre(FOUR, 0, 0, 0x1234),
        IP(proto=4) / b"\x45",
        IP(proto=47) / b"\0",
        OUT / UDP(dport=4789),
        IP(proto=137) / (pack(">I", 1 << 12) * 30),
        IP(proto=4) / (b"\x55" * 60),
    ],
)
def test_what_is_no_tunnel_has_no_tcp_inside(make: Any, packet: Any) -> None:
    network = Network()
    assert texts(network, make.block([bytes(packet)])) == []
    assert network.counts == {}


def test_only_so_many_tunnels_lie_in_each_other(make: Any) -> None:
    deep = FOUR
    for depth in range(1, DEEPEST + 2):
        deep = OUT / deep
        found = texts(Network(), make.block([bytes(deep)]))
        assert [name for _, _, name in found] == [" in ".join(["IPIP"] * depth)] * (depth <= DEEPEST)


def test_ways_through_tunnels_are_counted_up_to_a_bound() -> None:
    import numpy as np

    paths, path = Paths(), np.zeros(1, np.int64)
    for number in range(MOST_PATHS + 50):
        path = paths.further(path, np.array([1 + number % (len(NAMES) - 1)]))
    assert len(paths.texts) == MOST_PATHS
    assert paths.texts[int(path[0])] == "many tunnels"


def test_sealed_tunnels_are_named(make: Any) -> None:
    guard = [OUT / UDP(sport=4000, dport=51820) / (bytes([kind, 0, 0, 0]) + bytes(60)) for kind in (1, 2, 3, 4, 5, 0)]
    esp = IP(proto=50) / bytes(60)
    other = [OUT / UDP(dport=51821) / (b"\4\0\0\0" + bytes(60)), OUT / UDP(dport=51820) / b"\4\0"]
    network = Network()
    assert texts(network, make.block([bytes(one) for one in [*guard, esp, *other]])) == []
    assert network.counts == {
        "of WireGuard, which is encrypted": 4, "of IPsec ESP, which is encrypted": 1,
    }  # fmt: skip


def test_a_connection_knows_what_it_came_through(make: Any) -> None:
    packets = [bytes(WAYS["VXLAN"][0](IP(make.segment(0, 7, BODY)))), make.ip4(make.tcp(BODY, sport=5))]
    segmenter, connections = Segmenter(ConnectionFilter()), Connections()
    (segments,) = segmenter.read(make.block(packets)).segments
    assert list(segments.tunnels.values()) == ["VXLAN"]
    found = sorted(connections.feed(segments), key=lambda one: one.tunnel)
    assert [one.tunnel for one in found] == ["", "VXLAN"]
    assert segmenter.notes == ["1 packet came through VXLAN"]
    (again,) = connections.feed(segmenter.read(make.block([make.segment(0, 107, BODY)], first=9)).segments[0])
    assert (again.tunnel, make.data(again.streams[0])) == ("VXLAN", BODY * 2)
