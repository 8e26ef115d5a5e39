"""Segments as columns: flags, sequence numbers, what was captured of them; flows, ports and hosts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, TCP

from kwire.capture import tcp
from kwire.capture.ip import MAPPED, Network
from kwire.capture.packets import Columns
from kwire.capture.tcp import ConnectionFilter, Segments, read_segments

DATA = b"0123456789"


def texts(segments: Segments) -> list[bytes]:
    places = zip(segments.start.tolist(), segments.have.tolist(), strict=True)
    return [bytes(segments.buffer[start : start + have]) for start, have in places]


def host(text: str) -> tuple[int, int]:
    return 0, MAPPED | int.from_bytes(bytes(map(int, text.split("."))), "big")


@pytest.mark.parametrize(
    ("flags", "data", "kept"),
    [
        ("A", b"", False),
        ("PA", b"", False),
        ("A", DATA, True),
        ("S", b"", True),
        ("SA", b"", True),
        ("FA", b"", True),
        ("R", b"", True),
        ("RA", DATA, True),
    ],
)
def test_segments_that_only_acknowledge_are_left_out(make: Any, flags: str, data: bytes, kept: bool) -> None:
    segments = make.segments(make.block([make.segment(0, 77, data, flags)]))
    assert len(segments) == int(kept)
    assert texts(segments) == [data] * kept


def test_scapy_writes_what_is_read(make: Any) -> None:
    packet = (
        IP(src="10.9.8.7", dst="10.0.0.2")
        / TCP(
            sport=1234, dport=9092, seq=(1 << 32) - 5, flags="FPA", options=[("Timestamp", (1, 2)), ("NOP", None)] * 2
        )
        / DATA
    )
    segments = make.segments(make.block([bytes(packet)], first=6, time=99))
    assert (segments.seq.tolist(), segments.flags.tolist()) == ([(1 << 32) - 5], [1 | 8 | 16])
    assert (segments.number.tolist(), segments.time.tolist()) == ([6], [99])
    assert (texts(segments), segments.length.tolist()) == ([DATA], [10])
    assert segments.keys == [(*host("10.9.8.7"), 1234, *host("10.0.0.2"), 9092)]


def test_options_and_padding_are_no_data(make: Any) -> None:
    short = make.ether(make.ip4(make.tcp(DATA, options=b"\x01" * 40)) + b"padding")
    empty = make.ether(make.ip4(make.tcp(b"", flags="A")) + bytes(6))
    segments = make.segments(make.block([short, empty], link=1))
    assert (texts(segments), segments.length.tolist()) == ([DATA], [10])


@pytest.mark.parametrize("words", [0, 4, 15])
def test_a_data_offset_that_lies_gives_no_bytes(make: Any, words: int) -> None:
    raw = bytearray(make.tcp(DATA, flags="FA"))
    raw[12] = words << 4
    segments = make.segments(make.block([make.ip4(bytes(raw))]))
    assert texts(segments) == ([b""] if words == 15 else [])


def test_a_packet_cut_anywhere_says_how_long_it_was(make: Any) -> None:
    packet = make.ether(make.ip4(make.tcp(DATA, 5)))
    for snaplen in range(len(packet) + 1):
        segments = make.segments(make.block([packet] * 3, 1, snaplen))
        assert len(segments) == (3 if snaplen >= 14 + 20 + 14 else 0)
        assert texts(segments) == [DATA[: max(snaplen - 54, 0)]] * len(segments)
        assert set(segments.length.tolist()) <= {10}


@pytest.mark.parametrize(
    ("chosen", "numbers"),
    [
        (ConnectionFilter(), [1, 2, 3, 4]),
        (ConnectionFilter(frozenset({9092})), [1, 2]),
        (ConnectionFilter(frozenset({9092, 80})), [1, 2, 3]),
        (ConnectionFilter(hosts=frozenset({host("10.0.0.2")})), [1, 2, 4]),
        (ConnectionFilter(hosts=frozenset({host("10.0.0.9"), host("10.0.0.1")})), [1, 2, 3]),
        (ConnectionFilter(frozenset({80}), frozenset({host("10.0.0.2")})), []),
        (ConnectionFilter(hosts=frozenset({(0xFD << 56, 2)})), [4]),
        (ConnectionFilter(frozenset({1})), []),
    ],
)
def test_ports_and_hosts_choose(make: Any, chosen: ConnectionFilter, numbers: list[int]) -> None:
    packets = [
        make.segment(0, 1, DATA),
        make.segment(1, 1, DATA),
        make.ip4(make.tcp(DATA, sport=80, dport=5), "10.0.0.9", "10.0.0.8"),
        make.ip6(make.tcp(DATA, sport=7, dport=8)),
    ]
    hosts = frozenset({host("10.0.0.2"), (0xFD << 56, 2)}) if numbers == [1, 2, 4] else chosen.hosts
    assert make.segments(make.block(packets), ConnectionFilter(chosen.ports, hosts)).number.tolist() == numbers


def test_flows_are_numbered_apart_whatever_differs(make: Any) -> None:
    packets = [
        make.segment(0, 1, DATA),
        make.segment(1, 1, DATA),
        make.ip4(make.tcp(DATA, sport=40001)),
        make.ip4(make.tcp(DATA, dport=9093)),
        make.ip4(make.tcp(DATA), source="10.0.0.3"),
        make.ip4(make.tcp(DATA), target="10.0.0.3"),
        make.ip6(make.tcp(DATA)),
        make.ip6(make.tcp(DATA), source="fd00:1::1"),
        make.ip6(make.tcp(DATA), target="fd00:1::2"),
        make.segment(0, 2, DATA),
    ]
    segments = make.segments(make.block(packets))
    assert segments.flow.tolist() == [*range(9), 0]  # as they are first seen
    assert segments.keys[2] == (*host("10.0.0.1"), 40001, *host("10.0.0.2"), 9092)
    assert segments.keys[7] == (0xFD000001 << 32, 1, 40000, 0xFD << 56, 2, 9092)


def test_flows_whose_hashes_collide_are_told_apart(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    packets = []
    for _ in range(200):
        raw = make.tcp(DATA, sport=rng.randrange(1, 5), dport=rng.randrange(1, 5))
        six, ends = rng.random() < 0.5, (rng.randrange(1, 4), rng.randrange(1, 4))
        wrap, base = (make.ip6, "fd00::") if six else (make.ip4, "10.0.0.")
        packets.append(wrap(raw, f"{base}{ends[0]}", f"{base}{ends[1]}"))
    block = make.block(packets)
    plain = make.segments(block)
    monkeypatch.setattr(tcp, "SEED", np.zeros(5, np.uint64))
    collided = make.segments(block)
    assert len(plain.keys) > 100
    assert plain.keys == collided.keys
    assert plain.flow.tolist() == collided.flow.tolist()


def test_a_block_without_segments_has_no_flows(make: Any) -> None:
    for block in (make.block([]), make.block([b""]), make.block([make.segment(0, 1)])):
        data = Columns(block.buffer)
        segments = read_segments(block, Network().read(block, data), data, ConnectionFilter())
        assert (len(segments), segments.keys) == (0, [])
