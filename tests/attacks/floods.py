"""Captures that mean harm, of a million packets each: random packets, bytes flipped, SYNs from everywhere, zeros on a
Kafka connection, frames that claim 100 MiB and never come, requests that nobody answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from struct import pack

import numpy as np
from traffic import Talk, Wire, make

import kwire

PACKETS = 1_000_000
BROKER = bytes([10, 0, 0, 1])
CLAIM = pack(">ihhih", 100 << 20, 0, 9, 1, 1) + b"x" + bytes(20)


def random_packets(path: Path, packets: int) -> None:
    random, wire = Random(1), Wire(path)
    for _ in range(packets):
        ports = random.randrange(1 << 16), random.randrange(1 << 16)
        data = random.randbytes(random.randrange(120))
        wire.send(
            random.randbytes(4), random.randbytes(4), ports, random.randrange(1 << 32), random.randrange(256), data
        )
    wire.file.close()


def mutated(path: Path, packets: int) -> None:
    make(path, packets)
    data = np.fromfile(path, np.uint8)
    random = np.random.default_rng(1)
    places = random.integers(24, len(data), len(data) // 100)
    data[places] ^= random.integers(1, 256, len(places), np.uint8)
    data.tofile(path)


def syns(path: Path, packets: int) -> None:
    random, wire = Random(1), Wire(path)
    for _ in range(packets):
        wire.send(random.randbytes(4), BROKER, (random.randrange(1024, 1 << 16), 9092), random.randrange(1 << 32), 2)
    wire.file.close()


def zeros(path: Path, packets: int) -> None:
    wire = Wire(path)
    talk = Talk(wire, 1)
    talk.exchange(kwire.encode("ApiVersionsRequest", 0, {}), kwire.encode("ApiVersionsResponse", 0, {}), 18, 0)
    for _ in range(packets):
        talk._packet(0, 24, bytes(1000))
    wire.file.close()


def claims(path: Path, packets: int) -> None:
    wire = Wire(path)
    talks = [Talk(wire, number) for number in range(5000)]
    for talk in talks:
        talk._packet(0, 24, CLAIM)
    for number in range(packets - 15_000):
        talks[number % len(talks)]._packet(0, 24, b"z" * 1000)
    wire.file.close()


def unanswered(path: Path, packets: int) -> None:
    wire = Wire(path)
    talk, body = Talk(wire, 1), kwire.encode("HeartbeatRequest", 0, {"GroupId": "g"})
    for number in range(packets):
        frame = pack(">hhih", 12, 0, number, 1) + b"c" + body
        talk._packet(0, 24, pack(">i", len(frame)) + frame)
    wire.file.close()


KINDS: dict[str, Callable[[Path, int], None]] = {
    "random packets": random_packets,
    "a hundredth of all bytes flipped": mutated,
    "SYNs from everywhere": syns,
    "zeros on a connection": zeros,
    "5,000 frames of 100 MiB that never come": claims,
    "requests that nobody answers": unanswered,
}


def _read(make: Callable[[Path, int], None], form: str, folder: Path, scale: float) -> list[str]:
    path = folder / "flood.pcap"
    make(path, int(PACKETS * scale))
    return ["read", "--format", form, str(path)]


ATTACKS: dict[str, Callable[[Path, float], list[str]]] = {
    f"{name}, {form}": partial(_read, make, form) for name, make in KINDS.items() for form in ("text", "json")
}
