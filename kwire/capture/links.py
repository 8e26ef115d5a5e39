"""The link layer: where in each packet IP begins.

Ethernet with any number of VLAN tags (802.1Q, QinQ), PPPoE and MPLS, BSD loopback in both byte orders, raw IP, Linux
cooked captures of both versions. Link types are those of the pcap registry (LINKTYPE_).
"""

from __future__ import annotations

import numpy as np

from kwire.capture.packets import Columns, Ints, Packets

NULL, ETHERNET, LOOP, SLL, SLL2 = 0, 1, 108, 113, 276
RAW = (12, 14, 101, 228, 229)
READ = (NULL, ETHERNET, LOOP, SLL, SLL2, *RAW)
IPV4, IPV6 = 0x0800, 0x86DD
VLAN = (0x8100, 0x88A8, 0x9100)
MPLS = (0x8847, 0x8848)
PPPOE = 0x8864
MAX_TAGS = 8
MAX_LABELS = 8  # of MPLS
VIA = ("", "PPPoE", "MPLS")  # what may stand between the link and IP
VIA_PPPOE, VIA_MPLS = 1, 2  # their places


def network_offsets(packets: Packets, data: Columns) -> tuple[Ints, Ints | None]:
    """The offset of each packet's IP header in the buffer, -1 where there is none; and what stood between the link and
    IP, as indexes into VIA (None: nothing in any packet)."""
    out, via = np.full(len(packets), -1, np.int64), np.zeros(len(packets), np.int64)
    for link in np.unique(packets.link).tolist():
        mine = packets.link == link
        every = bool(mine.all())
        start = packets.start if every else packets.start[mine]
        found, through = _of_link(link, start, data)
        if every:
            return found, through
        out[mine] = found
        if through is not None:
            via[mine] = through
    return out, via if via.any() else None


def _of_link(link: int, start: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    if link == ETHERNET:
        return ethernet(start, data)
    if link in (NULL, LOOP):
        return start + 4, None
    if link in RAW:
        return start, None
    if link == SLL:
        return typed(data.u16(start + 14), start + 16, data)
    if link == SLL2:
        return typed(data.u16(start), start + 20, data)
    return np.full(len(start), -1, np.int64), None


def ethernet(start: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    """As network_offsets, of Ethernet frames that begin at start."""
    return typed(data.u16(start + 12), start + 14, data)


def typed(kind: Ints, offset: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    """As network_offsets: behind an EtherType the payload begins at offset, or further on (VLAN tags, PPPoE, MPLS)."""
    if ((kind == IPV4) | (kind == IPV6)).all():
        return offset, None
    for _ in range(MAX_TAGS):
        tagged = np.isin(kind, VLAN)
        if not tagged.any():
            break
        kind = np.where(tagged, data.u16(offset + 2), kind)
        offset = np.where(tagged, offset + 4, offset)
    via = None
    pppoe = kind == PPPOE  # 6 bytes of PPPoE, then PPP's own two
    if pppoe.any():
        kind = np.where(pppoe, of_ppp(data.u16(offset + 6)), kind)
        offset = np.where(pppoe, offset + 8, offset)
        via = np.where(pppoe, VIA_PPPOE, 0)
    found = np.where((kind == IPV4) | (kind == IPV6), offset, -1)
    labelled = np.flatnonzero(np.isin(kind, MPLS))
    if len(labelled):
        found[labelled] = behind_labels(offset[labelled], data)
        via = np.zeros(len(kind), np.int64) if via is None else via
        via[labelled] = VIA_MPLS
    return found, via


def of_ppp(kind: Ints) -> Ints:
    """The EtherType of a PPP protocol number; 0 for anything but IP."""
    return np.where(kind == 0x21, IPV4, np.where(kind == 0x57, IPV6, 0))


def behind_labels(at: Ints, data: Columns) -> Ints:
    """Where IP begins behind MPLS labels (RFC 3032): at once, or in Ethernet with or without a control word (RFC 4448);
    -1 where there is no IP."""
    open_ = np.ones(len(at), bool)
    for _ in range(MAX_LABELS):
        bottom = data.u8(at + 2) & 1 == 1
        at = np.where(open_, at + 4, at)
        open_ &= ~bottom
        if not open_.any():
            break
    version = data.u8(at) >> 4
    plain = (version == 4) | (version == 6)
    if not plain.all():
        word = (version == 0) & np.isin(data.u16(at + 16), (IPV4, IPV6, *VLAN))
        frame = np.where(word, at + 4, at)
        kind, offset = data.u16(frame + 12), frame + 14
        tagged = np.isin(kind, VLAN)
        kind, offset = np.where(tagged, data.u16(offset + 2), kind), np.where(tagged, offset + 4, offset)
        at = np.where(plain, at, np.where((kind == IPV4) | (kind == IPV6), offset, -1))
    return np.where(open_, -1, at)
