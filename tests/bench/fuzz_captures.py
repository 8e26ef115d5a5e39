"""Random captures that look for what costs too much: microseconds of CPU a byte, the worst ones printed.

    python tests/bench/fuzz_captures.py [--seconds 60] [--bytes 60000] [--seed 1] [--keep FOLDER]

Each capture mixes a few ingredients, chosen and repeated at random: openings, frames whole and cut, single bytes,
overlaps, holes, jumps, resets, fragments, tunnels; pcap or pcapng with interfaces and damage between packets. The cost
of an empty capture is left out. --keep writes the worst ones there.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from random import Random
from struct import pack

sys.path.insert(0, str(Path(__file__).parents[1]))

import packetsmade as made

import kwire
from kwire.schema.registry import builtin

WORST = 10  # that are printed
COMMANDS = ("read", "read", "groups", "stats")


def frames(random: Random) -> list[bytes]:
    """Frames of either kind, and what looks like some."""
    out = [made.BEAT, made.BEATEN, bytes(random.choice((4, 8, 40, 400))), random.randbytes(random.choice((3, 30, 300)))]
    for _ in range(6):
        key = random.choice(sorted(builtin().keys()))
        request, response = builtin().api(key).messages
        version = random.choice(list(request.versions.each()))
        ident = random.randrange(5)
        out.append(made.request(key, version, ident, random.randbytes(random.choice((0, 4, 40, 400)))))
        size = random.choice((0, 10, 100, 1000, 8000))
        body = random.choice((bytes(size), random.randbytes(size), b"\0\1a\0" * (size // 4), b"\1" * size))
        out.append(made.sized(pack(">i", ident) + random.choice((b"", pack(">ii", 0, size // 4))) + body))
        if response.versions.each() and random.random() < 0.3:
            try:
                out.append(made.sized(pack(">i", ident) + kwire.encode(response.name, version, {})))
            except Exception:  # not all messages have defaults for all fields
                continue
    return out


def segments(random: Random) -> Iterator[bytes]:
    """Packets without end."""
    some, ports = frames(random), random.choice((1, 2, 50, 5000))
    seqs: dict[tuple[int, int], int] = {}
    steps = random.choices(STEPS, k=random.randrange(1, 5))
    weights = [random.choice((1, 1, 5, 50)) for _ in steps]
    opening = random.random() < 0.7
    wrap = random.choice((None, None, None, made.vxlan))
    while True:
        port, side = 40000 + random.randrange(ports), random.randrange(2)
        if opening and (port, 0) not in seqs:
            yield from (made.tcp(0, 99, flags=made.SYN, port=port), made.tcp(1, 499, flags=18, port=port))
        seqs.setdefault((port, 0), 100)
        seqs.setdefault((port, 1), 500)
        (step,) = random.choices(steps, weights)
        for seq, data, flags in step(random, seqs[port, side], some):
            packet = made.tcp(side, seq, data, flags, port)
            yield wrap(packet) if wrap else packet
            seqs[port, side] = max(seqs[port, side], seq + len(data))


Step = Callable[[Random, int, list[bytes]], list[tuple[int, bytes, int]]]


def whole(random: Random, seq: int, some: list[bytes]) -> list[tuple[int, bytes, int]]:
    return [(seq, random.choice(some), 16)]


def single(random: Random, seq: int, some: list[bytes]) -> list[tuple[int, bytes, int]]:
    data = random.choice(some)[:30]
    return [(seq + at, data[at : at + 1], 16) for at in range(len(data))]


def over(random: Random, seq: int, some: list[bytes]) -> list[tuple[int, bytes, int]]:
    data, back = random.choice(some), random.choice((1, 10, 1000))
    return [(max(seq - back, 100), data, 16)]


def hole(random: Random, seq: int, some: list[bytes]) -> list[tuple[int, bytes, int]]:
    return [(seq + random.choice((1, 4, 1000, 1 << 20, 1 << 27)), random.choice(some)[:1400], 16)]


def backwards(random: Random, seq: int, some: list[bytes]) -> list[tuple[int, bytes, int]]:
    data = random.choice(some)
    return [(seq + at, data[at : at + 2], 16) for at in range(0, min(len(data), 60), 2)][::-1]


def control(random: Random, seq: int, _: list[bytes]) -> list[tuple[int, bytes, int]]:
    return [(seq + random.choice((0, 0, 1, 1 << 28)), b"", random.choice((1, 2, 4, 17, 18, 20)))]


STEPS: list[Step] = [whole, whole, single, over, hole, backwards, control]


def build(random: Random, size: int, folder: Path) -> Path:
    """A capture of about so many bytes."""
    packets, total = [], 0
    shape = random.randrange(4)
    for packet in segments(random):
        if shape == 3 and random.random() < 0.5:
            at = random.randrange(1, 100)
            packet = made.ip4(random.randbytes(8 * random.randrange(1, 5)), 0, random.randrange(3), at | 0x2000)
        packets.append(packet[: random.choice((None, None, None, 40, 60))] if shape == 2 else packet)
        total += len(packet) + 16
        if total > size:
            break
    if random.random() < 0.5:
        return made.pcap(folder / "fuzz.pcap", packets, step=random.choice((0, 1, 1000, 700_000)))
    noise = [
        made.interface(),
        made.section(),
        made.section(">") + made.interface(">"),
        made.block(5, bytes(12)),
        made.block(10, pack("<II", 0x544C534B, 4) + b"keys"),
        bytes(12),
        random.randbytes(16),
        b"\6\0\0\0" * 5,
    ]
    often = random.choice((0.0, 0.05, 1.0))
    blocks = [made.section(), made.interface()]
    for packet in packets:
        blocks.append(made.enhanced(packet, random.randrange(3) if random.random() < often else 0))
        if random.random() < often:
            blocks.append(random.choice(noise))
    return made.pcapng(folder / "fuzz.pcapng", blocks)


def cost(arguments: list[str]) -> float:
    """Seconds of CPU that a command takes in this process."""
    from kwire.cli.main import main

    begun, sys.argv = time.process_time(), ["kwire", *arguments]
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())), redirect_stderr(io.StringIO()) as said:
        try:
            main()
        except SystemExit as status:
            if "a bug in kwire" in said.getvalue():  # a capture that cannot be read is one line and status 2
                print(f"status {status.code}: {said.getvalue()[-300:]}", file=sys.__stderr__)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--bytes", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    worst: list[tuple[float, int, int, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder, until = Path(name), time.monotonic() + given.seconds
        empty = made.pcap(folder / "empty.pcap", islice(made.talk(), 4))
        base = min(cost(["read", str(empty)]) for _ in range(3))
        seed = given.seed
        while time.monotonic() < until:
            random = Random(seed)
            path, command = build(random, given.bytes, folder), random.choice(COMMANDS)
            size = path.stat().st_size
            each = 1e6 * (cost([command, str(path)]) - base) / size
            worst = sorted([*worst, (each, seed, size, command)], reverse=True)[:WORST]
            if given.keep and worst[0][1] == seed:
                given.keep.mkdir(exist_ok=True)
                (given.keep / f"{seed}{path.suffix}").write_bytes(path.read_bytes())
            seed += 1
    print(f"{seed - given.seed} captures\n| µs a byte | seed | bytes | command |\n|---|---|---|---|")
    for each, which, size, command in worst:
        print(f"| {each:.2f} | {which} | {size:,} | {command} |")


if __name__ == "__main__":
    main()
