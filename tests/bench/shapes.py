"""Captures of every shape that traffic takes, beside tshark on the same capture in the same run.

    python tests/bench/shapes.py [--shapes short,long,...] [--packets 1000000] [--rounds 3] [--commands json,table,...]

short: connections of about fifty packets, with the frames of real clients of five libraries (fixtures/captures); long:
few connections; loss: 2 % of packets lost and 2 % late; segments: loopback segments of 64 KiB; fetches: answers of a
megabyte in segments of 1,400 bytes; all: these one after the other. Prints for each command how many times as fast it
is as tshark with four header fields, and its peak memory.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from pathlib import Path
from random import Random
from statistics import median
from struct import pack, pack_into

import traffic
from captures import FIELDS, TSHARK, count, run

import kwire
from kwire.records import build

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
LIBRARIES = ("classic.pcap.gz", "pyclients.pcap", "franz.pcap.gz", "kafkajs.pcap", "consumer848.pcap")
EXCHANGES = 11  # of a real connection that are repeated: with acknowledgements fifty packets
BEGIN = 1_790_000_000_000_000  # µs since the epoch
KWIRE = [sys.executable, "-m", "kwire"]

Record = tuple[int, bytes]  # µs, the packet


def templates() -> list[list[tuple[int, bytes]]]:
    """What real clients begin with: frames with their side (0 the client's), of connections that have enough."""
    found: list[list[tuple[int, bytes]]] = []
    for name in LIBRARIES:
        talks: dict[str, list[tuple[int, bytes]]] = {}
        for exchange in kwire.read(CAPTURES / name):
            if exchange.request is not None and exchange.response is not None:
                frames = talks.setdefault(exchange.connection.name, [])
                frames += [(0, exchange.request.data), (1, exchange.response.data)]
        whole = [frames[: 2 * EXCHANGES] for frames in talks.values() if len(frames) >= 2 * EXCHANGES]
        found += [frames for frames in whole if all(len(data) < 60_000 for _, data in frames)][:3]
    return found


def connection(number: int, frames: list[tuple[int, bytes]], start: int, mss: int = 1448) -> Iterator[Record]:
    """The packets of a connection, each acknowledged, a packet every 1 to 200 µs."""
    ends = pack(">I", 0x0A010000 + number // 50), b"\x0a\x02\x00\x01"
    ports, seqs, time = (1024 + number % 50 * 1000 + number // 50 % 1000, 9092), [number * 977, number * 131], start
    step = Random(number)

    def packet(side: int, flags: int, data: bytes = b"") -> Record:
        nonlocal time
        time += step.randint(1, 200)
        source, target = (ends, ports) if side == 0 else (ends[::-1], ports[::-1])
        tcp = pack(">HHIIBBHHH", *target, seqs[side] & 0xFFFFFFFF, seqs[1 - side] & 0xFFFFFFFF, 0x50, flags, 4096, 0, 0)
        header = pack(">BBHHHBBH", 0x45, 0, 40 + len(data), 0, 0x4000, 64, 6, 0) + source[0] + source[1]
        seqs[side] += len(data) + (flags & 3 > 0)
        return time, b"".join((bytes(12), b"\x08\x00", header, tcp, data))

    yield packet(0, 2)
    yield packet(1, 18)
    yield packet(0, 16)
    for side, data in frames:
        for at in range(0, len(data), mss):
            yield packet(side, 24, data[at : at + mss])
        yield packet(1 - side, 16)
    yield packet(0, 17)
    yield packet(1, 17)
    yield packet(0, 16)


def write(path: Path, records: Iterable[Record], limit: int) -> None:
    with path.open("wb") as file:
        file.write(pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for written, (time, data) in enumerate(records):
            file.write(pack("<IIII", *divmod(time, 1_000_000), len(data), len(data)) + data)
            if written >= limit:
                return


def short(path: Path, packets: int) -> None:
    made = templates()

    def waves() -> Iterator[Record]:
        number = 0
        while True:  # two hundred at a time, so that they overlap
            wave = range(number, number + 200)
            yield from merge(*(connection(n, made[n % len(made)], BEGIN + n * 300) for n in wave))
            number += 200

    write(path, waves(), packets)


def long(path: Path, packets: int) -> None:
    traffic.make(path, packets, connections=3)


def loss(path: Path, packets: int) -> None:
    traffic.make(path, packets)
    data, random = path.read_bytes(), Random(11)
    records, at = [], 24
    while at < len(data):
        size = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        records.append(data[at : at + size])
        at += size
    kept = [record for record in records if random.random() > 0.02]
    for place in range(len(kept) - 4):
        if random.random() < 0.02:
            kept[place], kept[place + 3] = kept[place + 3], kept[place]
    path.write_bytes(data[:24] + b"".join(kept))


def _bulk(size: int) -> list[tuple[int, bytes]]:
    """A producer's and a consumer's exchanges with so many bytes of records each."""
    records = build([(b"key-%d" % n, os.urandom(900)) for n in range(size // 1000)])
    out: list[tuple[int, bytes]] = []
    topic = {"Name": "orders", "PartitionData": [{"Index": 1, "Records": records}]}
    stored = {"Name": "orders", "PartitionResponses": [{"Index": 1, "BaseOffset": 12}]}
    asked = {"Topic": "orders", "Partitions": [{"Partition": 1, "FetchOffset": 100, "PartitionMaxBytes": 1 << 20}]}
    got = {"Topic": "orders", "Partitions": [{"PartitionIndex": 1, "HighWatermark": 1000, "Records": records}]}
    bodies = [
        (0, 9, "Produce", {"Acks": -1, "TimeoutMs": 30000, "TopicData": [topic]}, {"Responses": [stored]}),
        (1, 12, "Fetch", {"MaxWaitMs": 500, "Topics": [asked]}, {"Responses": [got]}),
    ]
    for turn in range(200):
        key, version, api, request, response = bodies[turn % 2] if size < 500_000 else bodies[1]
        header = pack(">hhih", key, version, turn, 5) + b"cart1" + b"\0"
        answer = pack(">i", turn) + b"\0" + kwire.encode(f"{api}Response", version, response)
        for side, body in ((0, header + kwire.encode(f"{api}Request", version, request)), (1, answer)):
            out.append((side, pack(">i", len(body)) + body))
    return out


def segments(path: Path, packets: int) -> None:
    frames = _bulk(200_000)
    write(
        path,
        (record for n in range(1 << 20) for record in connection(n, frames, BEGIN + n * 1000, 65483)),
        packets // 30,
    )


def fetches(path: Path, packets: int) -> None:
    frames = _bulk(1_000_000)
    write(
        path, (record for n in range(1 << 20) for record in connection(n, frames, BEGIN + n * 1000, 1400)), packets // 2
    )


def everything(path: Path, packets: int) -> None:
    """The others one after the other in time, as one capture."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, path.open("wb") as file:
        later = 0
        for number, make in enumerate((short, long, loss, segments, fetches)):
            part = Path(folder) / "part"
            make(part, packets // 5)
            data = bytearray(part.read_bytes())
            file.write(data[:24] if not number else b"")
            at, seconds = 24, 0
            while at < len(data):
                seconds = int.from_bytes(data[at : at + 4], "little")
                pack_into("<I", data, at, seconds + later)
                at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
            later += seconds - BEGIN // 1_000_000 + 60
            file.write(data[24:])


SHAPES: dict[str, Callable[[Path, int], None]] = {
    "short": short, "long": long, "loss": loss, "segments": segments, "fetches": fetches, "all": everything,
}  # fmt: skip


def commands(path: Path, folder: Path) -> dict[str, list[str]]:
    """What is measured, and beside what."""
    tables = [*KWIRE, "table", str(path), "--tables", "messages,exchanges", "-o", str(folder / "tables")]
    return {
        "json": [*KWIRE, "read", "--format", "json", str(path)],
        "table": [*tables, "--jobs", "1"],
        "table2": [*tables, "--jobs", "2"],
        "every": [*KWIRE, "table", str(path), "-o", str(folder / "tables"), "--jobs", "1"],
        "text": [*KWIRE, "read", str(path)],
        "filter": [*KWIRE, "read", "--format", "json", "--api", "Produce", str(path)],
        "stats": [*KWIRE, "stats", str(path)],
        "clients": [*KWIRE, "clients", str(path)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--commands", default="json,table,table2,every,text,filter,stats,clients")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder in which the captures stay, and are found again")
    given = parser.parse_args()
    wanted = given.commands.split(",")
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        print("| shape | packets | MB | tshark, s | " + " | ".join(wanted) + " |")
        print("|---" * (4 + len(wanted)) + "|")
        for shape in given.shapes.split(","):
            path = folder / f"{shape}.pcap"
            if not path.exists():
                SHAPES[shape](path, given.packets)
            listing = [*TSHARK, "-r", str(path), "-T", "fields", *(part for field in FIELDS for part in ("-e", field))]
            ways = {"tshark": listing} | {name: commands(path, folder)[name] for name in wanted}
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
            for _ in range(given.rounds):
                for way, command in ways.items():
                    times[way].append(run(command))
            theirs = median(seconds for seconds, _ in times["tshark"])
            cells = []
            for way in wanted:
                seconds, peak = median(time for time, _ in times[way]), max(peak for _, peak in times[way])
                cells.append(f"{theirs / seconds:.1f} × ({peak:.0f} MB)")
            size = path.stat().st_size / 1e6
            print(f"| {shape} | {count(path):,} | {size:,.0f} | {theirs:.1f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
