"""Captures that mean harm: time and peak memory of kwire read on a million packets of each kind.

    python tests/bench/hostile.py [--packets 1000000]

Random packets (addresses, ports, flags, bytes); a capture with a hundredth of its bytes flipped; SYNs from everywhere;
zeros on a Kafka connection; frames that claim 100 MiB and never come; requests that nobody answers. A crash ends it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from struct import pack

import numpy as np
from captures import run
from traffic import Talk, Wire, make

import kwire

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=1_000_000)
    given = parser.parse_args()
    print("| capture | MB | seconds, lines | peak memory | seconds, JSON | peak memory |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hostile.pcap"
        for name, kind in KINDS.items():
            kind(path, given.packets)
            cells = [name, f"{path.stat().st_size / 1e6:.0f}"]
            for form in ("text", "json"):
                seconds, memory = run([sys.executable, "-m", "kwire", "read", "--format", form, str(path)])
                cells += [f"{seconds:.1f}", f"{memory:.0f} MB"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
