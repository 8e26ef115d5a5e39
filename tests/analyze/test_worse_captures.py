"""Worse captures of the same traffic: one direction, cut packets, loss, a part, everything twice, also under other
addresses, packets out of order, a clock that is set back. Nothing is found in them that the whole capture does not
show, but for what they lack."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from provoked import GRAVE, LABELS, capture_of, found_in
from scenes import Packet, cut, diagnosed, packets_of

Packets = list[Packet]
BROKERS = range(19000, 19100)
PARTS = 10
WEAKER = {"broker-gone": "advertised-unreachable"}  # of an address of which the capture does not show who told it


def of_client(packet: Packet) -> bool:
    """Whether a client sent it. Ethernet on loopback, or raw IPv4."""
    data = packet.data[0 if packet.link == 101 else 14 :]
    at = (data[0] & 15) * 4
    return struct.unpack_from(">H", data, at + 2)[0] in BROKERS


def lossy(packets: Packets) -> Packets:
    dice = random.Random(3)
    return [packet for packet in packets if dice.random() > 0.03]


def after(part: int) -> Callable[[Packets], Packets]:
    return lambda packets: packets[len(packets) * part // PARTS :]


def until(part: int) -> Callable[[Packets], Packets]:
    return lambda packets: packets[: len(packets) * part // PARTS]


def reordered(packets: Packets) -> Packets:
    dice, out = random.Random(5), list(packets)
    for at in range(0, len(out) - 1, 2):
        if dice.random() < 0.2:
            out[at], out[at + 1] = out[at + 1], out[at]
    return out


def set_back(packets: Packets) -> Packets:
    """The clock goes back 30 s in the midst."""
    middle = len(packets) // 2
    return packets[:middle] + [packet._replace(time=packet.time - 30_000_000_000) for packet in packets[middle:]]


def translated(packets: Packets) -> Packets:
    """Each packet, and a moment later the same with another client's address and port."""
    out = []
    for packet in packets:
        data = bytearray(packet.data)
        ip = 0 if packet.link == 101 else 14
        tcp = ip + (data[ip] & 15) * 4
        port, address = (tcp, ip + 12) if of_client(packet) else (tcp + 2, ip + 16)
        number = (int.from_bytes(data[port : port + 2], "big") + 7) % 65536
        data[port : port + 2], data[address : address + 4] = number.to_bytes(2, "big"), bytes([192, 168, 7, 7])
        out += [packet, packet._replace(data=bytes(data), time=packet.time + 3000)]
    return out


CHANGES: dict[str, Callable[[Packets], Packets]] = {
    "brokers only": lambda packets: [packet for packet in packets if not of_client(packet)],
    "clients only": lambda packets: [packet for packet in packets if of_client(packet)],
    "snaplen 96": lambda packets: cut(packets, 96),
    "loss": lossy,
    "translated": translated,
    "reordered": reordered,
    "set back": set_back,
    "twice": lambda packets: [one for packet in packets for one in (packet, packet)],
    **{f"from {part} of {PARTS}": after(part) for part in (1, 3, 5, 7, 9)},
    **{f"to {part} of {PARTS}": until(part) for part in (3, 6, 8)},
}
SMALL = [label for label in LABELS if capture_of(label).stat().st_size < 25_000]


@pytest.mark.parametrize("label", SMALL)
def test_nothing_is_found_that_the_whole_does_not_show(label: str) -> None:
    packets = packets_of(capture_of(label))
    there = {one.detector for one in found_in(label) if one.severity in GRAVE} | {"capture-quality"}
    there |= {weaker for weaker, one in WEAKER.items() if one in there}
    wrong = [
        f"{name}: {one.detector}: {one.what}"
        for name, change in CHANGES.items()
        for one in diagnosed(change(packets)).findings
        if one.severity in GRAVE and one.detector not in there
    ]
    assert wrong == []
