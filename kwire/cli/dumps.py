"""Dumps of other tools to bytes: xxd, hexdump, od, Wireshark's and tcpdump's.

A row is an offset, bytes in groups, and often the same bytes as text. The offsets decide what it is: rows must follow
one another, counted in hex, decimal or octal, and what a row holds beyond the next one's offset was its text. A star
stands for rows like the one before. Rows that begin at 0 again are a further packet; of IP packets the TCP payload is
what is meant.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kwire.errors import KwireError

ROW = re.compile(r"\s*(0x)?([0-9a-fA-F]{3,16})(:?)(\s+)(\S.*)")
END = re.compile(r"\s*([0-9a-fA-F]{6,16})\s*")
MAX_FILL = 64 * 1024 * 1024  # bytes that stars may stand for
LINKS = (0, 4, 14, 16, 18, 20)  # bytes before IP: none, null, Ethernet, Linux cooked, Ethernet with VLAN, cooked v2


class DumpRow(NamedTuple):
    """A line's offset and bytes; without bytes it closes a dump; offset None is a star. certain: no hex digits that
    somebody grouped by hand look so."""

    offset: str | None
    data: bytes
    certain: bool = True


def dump(text: str) -> bytes | None:
    """The bytes of a dump; None for text that is none. Other lines may stand between, as tcpdump's summaries do."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [row for row in map(_row, lines) if row]
    full = [row for row in rows if row.data]
    if not full or 2 * len(rows) < len(lines):
        return None
    if len(full) == 1 and not full[0].certain and full[0].offset and full[0].offset.strip("0"):
        return None
    for base in (16, 10, 8):
        packets = _follow(rows, base)
        if packets is not None:
            return b"".join(map(_payload, packets))
    return None


def _row(line: str) -> DumpRow | None:
    if line.strip() == "*":
        return DumpRow(None, b"")
    end = END.fullmatch(line)
    if end:
        return DumpRow(end.group(1), b"")
    match = ROW.fullmatch(line)
    if not match:
        return None
    prefix, offset, colon, gap, rest = match.groups()
    words = [] if prefix or colon else _alike(rest)
    if words and len(words[0]) > 2:
        # hexdump and od -x: words in the order of the machine, which is little-endian nearly everywhere
        fits = len(offset) in (6, 7) and len(words[0]) in (4, 8)
        return (
            DumpRow(offset, b"".join(bytes.fromhex(word)[::-1] for word in words), len(offset) == 7) if fits else None
        )
    groups = _groups(re.split(r"\s[|>]", rest)[0])
    certain = bool(prefix or colon) or len(offset) % 2 == 1 or (len(offset) == 4 and len(gap) > 1)
    return DumpRow(offset, bytes.fromhex("".join(groups)), certain) if groups else None


def _groups(text: str) -> list[str]:
    """Groups of digits up to the text column; hexdump -C leaves a wider gap amid sixteen."""
    parts = re.split(r"(\s{2,})", text.strip())
    groups = _alike(parts[0])
    if len(groups) == 8 and len(groups[0]) == 2 and len(parts) > 2 and len(parts[1]) == 2:
        groups += [group for group in _alike(parts[2]) if len(group) == 2]
    return groups


def _alike(text: str) -> list[str]:
    """The groups that text consists of, all of one size but the last, which may be shorter; else none."""
    groups = text.split()
    size = len(groups[0])
    fine = all(re.fullmatch(r"(?:[0-9a-fA-F]{2})+", group) for group in groups)
    return groups if fine and all(len(group) == size for group in groups[:-1]) and len(groups[-1]) <= size else []


def _follow(rows: list[DumpRow], base: int) -> list[bytes] | None:
    """The packets that the rows make if their offsets count in base; None if they do not follow one another."""
    packets: list[bytearray] = []
    start = before = 0  # of the packet, and of the row before
    room = MAX_FILL
    star = False
    for row in rows:
        if row.offset is None:
            star = True
            continue
        try:
            at = int(row.offset, base)
        except ValueError:
            return None
        if not packets or (at == 0 and row.data):
            packets.append(bytearray(row.data))
            start = before = at
            continue
        packet = packets[-1]
        have = start + len(packet)
        if at > have and star:
            room -= at - have
            if room < 0:
                raise KwireError(f"offset {row.offset}: the stars before it stand for more than {MAX_FILL:,} bytes")
            last = bytes(packet[before - start :])
            packet += (last * ((at - have) // max(len(last), 1) + 1))[: at - have]
        elif at > have or at <= before:
            return None
        del packet[at - start :]
        packet += row.data
        before, star = at, False
    return [bytes(packet) for packet in packets]


def _payload(packet: bytes) -> bytes:
    """What TCP carries, when the packet is one of IP whose lengths agree; else the packet."""
    for link in LINKS:
        ip = packet[link:]
        found = _ip(ip)
        # short Ethernet frames are padded to 60 bytes
        if found and (found[1] == len(ip) or (len(packet) == 60 and found[1] < len(ip))):
            tcp, end = found
            return ip[tcp + 4 * (ip[tcp + 12] >> 4) : end]
    return packet


def _ip(ip: bytes) -> tuple[int, int] | None:
    """Where the TCP header begins, and where the packet ends by its own account (RFC 791, RFC 8200)."""
    if len(ip) < 40:
        return None
    if ip[0] >> 4 == 4 and ip[9] == 6 and ip[0] & 15 >= 5:
        start, end = 4 * (ip[0] & 15), int.from_bytes(ip[2:4], "big")
    elif ip[0] >> 4 == 6 and ip[6] == 6:
        start, end = 40, 40 + int.from_bytes(ip[4:6], "big")
    else:
        return None
    return (start, end) if start + 20 <= end <= len(ip) else None
