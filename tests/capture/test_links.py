"""Where IP begins behind each link layer, and that there is none behind what is not read."""

from __future__ import annotations

from struct import pack
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.layers.ppp import PPP, PPPoE

from kwire.capture.links import ETHERNET, LOOP, MAX_TAGS, NULL, RAW, SLL, SLL2, network_offsets
from kwire.capture.packets import Columns, Packets

MACS = bytes(12)


def offset(make: Any, packet: bytes, link: int) -> int:
    """Of IP in the packet; -1 for none."""
    block = make.block([packet], link)
    (found,) = network_offsets(block, Columns(block.buffer))[0].tolist()
    return -1 if found < 0 else found - int(block.start[0])


def tagged(count: int) -> bytes:
    return MACS + pack(">HH", 0x8100, 7) * count + pack(">H", 0x0800)


@pytest.mark.parametrize(
    ("link", "head", "expected"),
    [
        (ETHERNET, MACS + b"\x08\x00", 14),
        (ETHERNET, MACS + b"\x86\xdd", 14),
        (ETHERNET, MACS + b"\x08\x06", -1),  # ARP
        (ETHERNET, MACS + b"\x81\x00\x00\x05\x08\x00", 18),
        (ETHERNET, MACS + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x86\xdd", 22),
        (ETHERNET, MACS + b"\x91\x00\x00\x05\x81\x00\x00\x06\x08\x00", 22),
        (ETHERNET, MACS + b"\x81\x00\x00\x05\x08\x06", -1),
        (ETHERNET, tagged(MAX_TAGS), 14 + 4 * MAX_TAGS),
        (ETHERNET, tagged(MAX_TAGS + 1), -1),
        (ETHERNET, MACS + b"\x88\x64\x11\x00\x00\x01\x00\x16\x00\x21", 22),
        (ETHERNET, MACS + b"\x88\x64\x11\x00\x00\x01\x00\x16\x00\x57", 22),
        (ETHERNET, MACS + b"\x88\x64\x11\x00\x00\x01\x00\x16\xc0\x21", -1),  # PPP's link control
        (ETHERNET, MACS + b"\x81\x00\x00\x05\x88\x64\x11\x00\x00\x01\x00\x16\x00\x21", 26),
        (NULL, pack("<I", 2), 4),
        (NULL, pack(">I", 2), 4),
        (NULL, pack("<I", 30), 4),
        (LOOP, pack(">I", 2), 4),
        (SLL, bytes(14) + b"\x08\x00", 16),
        (SLL, bytes(14) + b"\x86\xdd", 16),
        (SLL, bytes(14) + b"\x08\x06", -1),
        (SLL, bytes(14) + b"\x81\x00\x00\x05\x08\x00", 20),
        (SLL2, b"\x08\x00" + bytes(18), 20),
        (SLL2, b"\x86\xdd" + bytes(18), 20),
        (SLL2, b"\x08\x06" + bytes(18), -1),
        *((raw, b"", 0) for raw in RAW),
        (105, b"", -1),  # IEEE 802.11
        (0xFFFF, b"", -1),
    ],
)
def test_ip_begins_behind_the_link_layer(make: Any, link: int, head: bytes, expected: int) -> None:
    assert offset(make, head + make.ip4(b""), link) == expected


@pytest.mark.parametrize(
    ("link", "packet"),
    [
        (ETHERNET, Ether() / IP()),
        (ETHERNET, Ether() / Dot1Q(vlan=3) / IPv6()),
        (ETHERNET, Ether() / Dot1AD(vlan=9) / Dot1Q(vlan=3) / IP()),
        (ETHERNET, Ether() / PPPoE() / PPP() / IP()),
        (NULL, Loopback() / IP()),
        (SLL, CookedLinux() / IP()),
        (SLL2, CookedLinuxV2() / IPv6()),
    ],
)
def test_scapy_puts_ip_where_it_is_found(make: Any, link: int, packet: Any) -> None:
    inner = bytes(packet.getlayer(IP) or packet.getlayer(IPv6))
    assert offset(make, bytes(packet) + b"behind", link) == len(bytes(packet)) - len(inner)


def test_packets_of_several_links_stand_side_by_side(make: Any) -> None:
    heads = {ETHERNET: MACS + b"\x08\x00", 101: b"", 105: b"", NULL: pack("<I", 2), SLL2: b"\x08\x00" + bytes(18)}
    block = make.block([head + make.ip4(b"") for head in heads.values()])
    mixed = Packets(
        block.buffer, block.number, block.time, block.start, block.captured, block.length, np.array(list(heads))
    )
    found = network_offsets(mixed, Columns(mixed.buffer))[0].tolist()
    starts = mixed.start.tolist()
    assert found == [starts[0] + 14, starts[1], -1, starts[3] + 4, starts[4] + 20]
