"""Tunnels: where IP begins again behind an IP header, and what each packet came through.

IP in IP in all four combinations, GRE (RFC 2784, 2890; Ethernet in it as NVGRE, RFC 7637), ERSPAN types I to III, VXLAN
(RFC 7348) and its GPE form, Geneve (RFC 8926), MPLS directly in IP and in UDP. All packets of a layer are looked at as
columns. WireGuard and ESP are encrypted, so they are only named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kwire.capture import links
from kwire.capture.links import IPV4, IPV6, behind_labels, ethernet, of_ppp, typed
from kwire.capture.packets import Columns, Ints

DEEPEST = 8  # nested tunnels
MOST_PATHS = 500  # different sequences of tunnels that are kept apart
IPIP, UDP, SIX, GRE, ESP, MPLS_IN_IP = 4, 17, 41, 47, 50, 137  # IP protocol numbers
CARRIERS = np.isin(np.arange(256), (IPIP, UDP, SIX, GRE, ESP, MPLS_IN_IP))
VXLAN_PORTS = (4789, 8472)  # the registered port, and Linux's older one
VXLAN_GPE_PORT, GENEVE_PORT, MPLS_PORT, WIREGUARD_PORT = 4790, 6081, 6635, 51820
ETHERNET_TYPE, PPP_TYPE, ERSPAN_TYPE, ERSPAN_III_TYPE = 0x6558, 0x880B, 0x88BE, 0x22EB
WIREGUARD_TYPES = [kind << 24 for kind in (1, 2, 3, 4)]
GPE_TYPES = {1: IPV4, 2: IPV6, 3: ETHERNET_TYPE}  # draft-ietf-nvo3-vxlan-gpe
NAMES = (
    *links.VIA, "IPIP", "6in4", "4in6", "IP6IP6", "GRE", "NVGRE", "ERSPAN", "VXLAN", "VXLAN-GPE", "Geneve",
    "MPLS in IP", "MPLS in UDP",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """What IP headers carry besides TCP. index: which packet of the block; protocol: IP's number; start, end, have: as
    in ip.Datagrams; six: whether the header was IPv6; tunnel: what the header itself came through, a number of Paths.
    """

    index: NDArray[np.intp]
    protocol: Ints
    start: Ints
    end: Ints
    have: Ints
    six: bool
    tunnel: Ints

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Inner:
    """Where IP begins in what was carried, -1 for nowhere; via: the tunnel, and what else stood between, indexes into
    NAMES."""

    offset: Ints
    via: tuple[Ints, Ints]


class Paths:
    """Numbers for sequences of tunnels, outermost first; 0 is none."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self.texts = ["", "many tunnels"]

    def further(self, path: Ints, via: Ints) -> Ints:
        """The numbers of these sequences with one more tunnel each, an index into NAMES; 0 is none."""
        if not via.any():
            return path
        pairs, place = np.unique(path * len(NAMES) + via, return_inverse=True)
        return np.array([self._number(*divmod(pair, len(NAMES))) for pair in pairs.tolist()], np.int64)[place]

    def _number(self, path: int, via: int) -> int:
        if not via or path == 1:
            return path
        known = self._numbers.get((path, via))
        if known is None:
            if len(self.texts) >= MOST_PATHS:
                return 1
            self.texts.append(f"{NAMES[via]} in {self.texts[path]}" if path else NAMES[via])
            known = self._numbers[path, via] = len(self.texts) - 1
        return known


def inside(carried: Carried, data: Columns) -> Inner:
    """Looks into tunnels."""
    offset = np.full(len(carried), -1, np.int64)
    via, below = np.zeros(len(carried), np.int64), np.zeros(len(carried), np.int64)
    for number, look in LOOKS.items():
        rows = np.flatnonzero(carried.protocol == number)
        if len(rows):
            found, names, links_ = look(carried.start[rows], carried.six, data)
            offset[rows], via[rows] = found, names
            if links_ is not None:
                below[rows] = links_
    fine = (offset >= 0) & (offset < carried.have)
    return Inner(np.where(fine, offset, -1), (via, below))


def count_sealed(carried: Carried, data: Columns) -> dict[str, int]:
    """Counts packets of encrypted tunnels. WireGuard begins with a type and three zeros."""
    start = carried.start
    port = (data.u16(start) == WIREGUARD_PORT) | (data.u16(start + 2) == WIREGUARD_PORT)
    begins = (start + 12 <= carried.have) & np.isin(data.u32(start + 8), WIREGUARD_TYPES)
    wireguard = (carried.protocol == UDP) & port & begins
    found = {"WireGuard": int(wireguard.sum()), "IPsec ESP": int((carried.protocol == ESP).sum())}
    return {name: count for name, count in found.items() if count}


Found = tuple[Ints, Ints, Ints | None]  # offsets of IP, tunnels, and what else stood between, places in NAMES


def _named(name: str, offset: Ints, below: Ints | None = None) -> Found:
    return offset, np.full(len(offset), NAMES.index(name), np.int64), below


def _ipip(start: Ints, six: bool, _: Columns) -> Found:
    return _named("4in6" if six else "IPIP", start)


def _six(start: Ints, six: bool, _: Columns) -> Found:
    return _named("IP6IP6" if six else "6in4", start)


def _mpls_in_ip(start: Ints, _: bool, data: Columns) -> Found:
    return _named("MPLS in IP", behind_labels(start, data))


def _gre(start: Ints, _: bool, data: Columns) -> Found:
    flags, kind = data.u16(start), data.u16(start + 2)
    sequenced = flags & 0x1000 != 0
    size = 4 + 4 * ((flags & 0x8000 != 0).astype(np.int64) + (flags & 0x2000 != 0) + sequenced)
    pptp = (flags & 7 == 1) & (kind == PPP_TYPE)  # RFC 2637
    size += 4 * (pptp & (flags & 0x80 != 0))
    payload = start + size
    name = np.full(len(start), NAMES.index("GRE"), np.int64)
    framed = kind == ETHERNET_TYPE
    name[framed & (flags & 0x2000 != 0)] = NAMES.index("NVGRE")
    if pptp.any():
        payload = np.where(pptp & (data.u16(payload) == 0xFF03), payload + 2, payload)  # PPP's address and control
        kind = np.where(pptp, of_ppp(data.u16(payload)), kind)
        payload = np.where(pptp, payload + 2, payload)
    two, three = kind == ERSPAN_TYPE, kind == ERSPAN_III_TYPE
    if (
        two.any() or three.any()
    ):  # type I has no header of its own; type II has one where GRE counts (draft-foschiano-erspan)
        name[two | three] = NAMES.index("ERSPAN")
        last = data.u16(payload + 10)
        more = three & (last & 1 == 1)
        ip = three & (last >> 10 & 31 == 2)
        payload = payload + np.where(two & sequenced, 8, 0) + np.where(three, 12, 0) + np.where(more, 8, 0)
        kind = np.where(ip, _of_version(payload, data), np.where(two | three, ETHERNET_TYPE, kind))
    offset, below = _typed(kind, payload, data)
    return np.where((flags & 0x4000 != 0) | ((flags & 7 != 0) & ~pptp), -1, offset), name, below  # source routes: none


def _udp(start: Ints, _: bool, data: Columns) -> Found:
    port = data.u16(start + 2)
    offset, name = np.full(len(start), -1, np.int64), np.zeros(len(start), np.int64)
    below = np.zeros(len(start), np.int64)
    for which, ports, look in UDP_LOOKS:
        rows = np.flatnonzero(np.isin(port, ports))
        if len(rows):
            offset[rows], links_ = look(start[rows] + 8, data)
            name[rows] = NAMES.index(which)
            if links_ is not None:
                below[rows] = links_
    return offset, name, below


def _vxlan(at: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    offset, below = ethernet(at + 8, data)
    return np.where(data.u8(at) & 8 != 0, offset, -1), below  # the flag that there is a network identifier


def _vxlan_gpe(at: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    numbers, kind = data.u8(at + 3), np.zeros(len(at), np.int64)
    for number, meant in GPE_TYPES.items():
        kind[numbers == number] = meant
    return _typed(kind, at + 8, data)


def _geneve(at: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    first = data.u8(at)
    offset, below = _typed(data.u16(at + 2), at + 8 + 4 * (first & 63), data)
    return np.where(first >> 6 == 0, offset, -1), below


def _mpls_in_udp(at: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    return behind_labels(at, data), None


def _of_version(at: Ints, data: Columns) -> Ints:
    """The EtherType of the IP packet there."""
    return np.where(data.u8(at) >> 4 == 6, IPV6, IPV4)


def _typed(kind: Ints, at: Ints, data: Columns) -> tuple[Ints, Ints | None]:
    """As links.typed, and what is Ethernet itself."""
    framed = kind == ETHERNET_TYPE
    if framed.all():
        return ethernet(at, data)
    if framed.any():
        kind, at = np.where(framed, data.u16(at + 12), kind), np.where(framed, at + 14, at)
    return typed(kind, at, data)


LOOKS: dict[int, Callable[[Ints, bool, Columns], Found]] = {
    IPIP: _ipip, SIX: _six, GRE: _gre, UDP: _udp, MPLS_IN_IP: _mpls_in_ip,
}  # fmt: skip
UDP_LOOKS = (
    ("VXLAN", VXLAN_PORTS, _vxlan), ("VXLAN-GPE", (VXLAN_GPE_PORT,), _vxlan_gpe), ("Geneve", (GENEVE_PORT,), _geneve),
    ("MPLS in UDP", (MPLS_PORT,), _mpls_in_udp),
)  # fmt: skip
