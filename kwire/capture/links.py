"""The link layer: where in each packet IP begins.

Ethernet with any number of VLAN tags (802.1Q, QinQ), BSD loopback in both byte orders, raw IP, Linux cooked captures of
both versions. Link types are those of the pcap registry (LINKTYPE_).
"""

from __future__ import annotations

import numpy as np

from kwire.capture.packets import Columns, Ints, Packets

NULL, ETHERNET, LOOP, SLL, SLL2 = 0, 1, 108, 113, 276
RAW = (12, 14, 101, 228, 229)
READ = (NULL, ETHERNET, LOOP, SLL, SLL2, *RAW)
IPV4, IPV6 = 0x0800, 0x86DD
VLAN = (0x8100, 0x88A8, 0x9100)
PPPOE = 0x8864
MAX_TAGS = 8


def network_offsets(packets: Packets, data: Columns) -> Ints:
    """The offset of each packet's IP header in the buffer; -1 where there is none."""
    out = np.full(len(packets), -1, np.int64)
    for link in np.unique(packets.link).tolist():
        mine = packets.link == link
        every = bool(mine.all())
        start = packets.start if every else packets.start[mine]
        found = _of_link(link, start, data)
        if every:
            return found
        out[mine] = found
    return out


def _of_link(link: int, start: Ints, data: Columns) -> Ints:
    if link == ETHERNET:
        return _ethernet(start, data)
    if link in (NULL, LOOP):
        return start + 4
    if link in RAW:
        return start
    if link == SLL:
        return _typed(start + 14, start + 16, data)
    if link == SLL2:
        return _typed(start, start + 20, data)
    return np.full(len(start), -1, np.int64)


def _ethernet(start: Ints, data: Columns) -> Ints:
    return _typed(start + 12, start + 14, data)


def _typed(type_at: Ints, offset: Ints, data: Columns) -> Ints:
    """Behind the EtherType at type_at the payload begins at offset, further on with VLAN tags."""
    kind = data.u16(type_at)
    for _ in range(MAX_TAGS):
        tagged = np.isin(kind, VLAN)
        if not tagged.any():
            break
        kind = np.where(tagged, data.u16(offset + 2), kind)
        offset = np.where(tagged, offset + 4, offset)
    pppoe = kind == PPPOE  # 6 bytes of PPPoE, then PPP's own two: 0x0021 is IPv4, 0x0057 IPv6
    if pppoe.any():
        inner = data.u16(offset + 6)
        kind = np.where(pppoe & (inner == 0x21), IPV4, np.where(pppoe & (inner == 0x57), IPV6, kind))
        offset = np.where(pppoe, offset + 8, offset)
    return np.where((kind == IPV4) | (kind == IPV6), offset, -1)
