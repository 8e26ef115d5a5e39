"""Makes a capture to measure with: many connections, small requests, answers of every size up to some kilobytes.

    python tests/bench/traffic.py OUT.pcap [--packets 600000] [--bulk] [--connections 200]

Frames are encoded by kwire, packets written by hand, with the acknowledgements that a real capture has. The same seed
gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random
from struct import pack
from typing import Any

import kwire
from kwire.codec.headers import request_header_version, response_header_version
from kwire.records import build
from kwire.schema.registry import builtin

BROKER, PORT, MSS = "10.1.0.2", 9092, 1448
SOFTWARE = {"ClientSoftwareName": "bench", "ClientSoftwareVersion": "1.0"}


class Wire:
    """Packets, as a pcap file."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.file.write(pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        self.packets, self.time = 0, 1_790_000_000_000_000

    def send(
        self, source: bytes, target: bytes, ports: tuple[int, int], seq: int, flags: int, data: bytes = b""
    ) -> None:
        self.time += 17
        tcp = pack(">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, 0, 0x50, flags, 4096, 0, 0)
        ip = pack(">BBHHHBBH", 0x45, 0, 40 + len(data), 0, 0x4000, 64, 6, 0) + source + target
        frame = bytes(12) + b"\x08\x00" + ip + tcp + data
        self.file.write(pack("<IIII", *divmod(self.time, 1_000_000), len(frame), len(frame)) + frame)
        self.packets += 1


class Talk:
    """A connection: exchange() sends a request and its answer, in segments, each side acknowledging."""

    def __init__(self, wire: Wire, number: int) -> None:
        self.wire, self.client_id = wire, f"bench-{number}"
        self.ends = bytes([10, 1, 1 + number // 250, number % 250]), bytes(map(int, BROKER.split(".")))
        self.ports, self.seqs, self.correlation_id = (20000 + number, PORT), [1000 * number, 77 * number], 0
        self._packet(0, 2)
        self._packet(1, 18)
        self.seqs = [seq + 1 for seq in self.seqs]

    def _packet(self, side: int, flags: int, data: bytes = b"") -> None:
        ends, ports = (self.ends, self.ports) if side == 0 else (self.ends[::-1], self.ports[::-1])
        self.wire.send(*ends, ports, self.seqs[side], flags, data)
        self.seqs[side] += len(data)

    def exchange(self, request: bytes, response: bytes, key: int, version: int) -> None:
        api = builtin().api(key)
        self.correlation_id += 1
        name = self.client_id.encode()
        header = pack(">hhih", key, version, self.correlation_id, len(name)) + name
        header += b"\0" * (request_header_version(key, version, api.messages[0]) == 2)
        answer = pack(">i", self.correlation_id)
        answer += b"\0" * (response_header_version(key, version, api.messages[1]) == 1)
        for side, frame in ((0, header + request), (1, answer + response)):
            whole = pack(">i", len(frame)) + frame
            for at in range(0, len(whole), MSS):
                self._packet(side, 24, whole[at : at + MSS])
            self._packet(1 - side, 16)


def kinds(random: Random, bulk: bool) -> list[tuple[int, bytes, bytes, int, int]]:
    """Exchanges to choose from, with how often each comes: (weight, request, response, key, version)."""
    records = [build([(b"key-%d" % n, random.randbytes(600 if bulk else 80))] * (200 if bulk else 1)) for n in range(8)]
    out: list[tuple[int, bytes, bytes, int, int]] = []

    def add(weight: int, api: str, version: int, request: dict[str, Any], response: dict[str, Any]) -> None:
        key = builtin().find(api).definition.key
        assert key is not None
        asked, answered = (
            kwire.encode(f"{api}{kind}", version, body) for kind, body in (("Request", request), ("Response", response))
        )
        out.append((weight, asked, answered, key, version))

    for n, batch in enumerate(records):
        topic = {"Name": f"topic-{n}", "PartitionData": [{"Index": n, "Records": batch}]}
        answer = {"Name": f"topic-{n}", "PartitionResponses": [{"Index": n, "BaseOffset": 1000 + n}]}
        add(40, "Produce", 9, {"Acks": -1, "TimeoutMs": 30000, "TopicData": [topic]}, {"Responses": [answer]})
        asked = {
            "Topic": f"topic-{n}",
            "Partitions": [{"Partition": n, "FetchOffset": 100, "PartitionMaxBytes": 1 << 20}],
        }
        got = {"PartitionIndex": n, "HighWatermark": 1000, "Records": batch if n % 2 else b""}
        add(
            25,
            "Fetch",
            12,
            {"MaxWaitMs": 500, "Topics": [asked]},
            {"Responses": [{"Topic": f"topic-{n}", "Partitions": [got]}]},
        )
        group = {"GroupId": f"group-{n}", "GenerationId": 3, "MemberId": f"member-{n}-0000-1111-2222"}
        add(6, "Heartbeat", 4, group, {"ErrorCode": 27 if n == 5 else 0})
    partitions = [
        {"PartitionIndex": n, "LeaderId": 1, "ReplicaNodes": [1, 2, 3], "IsrNodes": [1, 2, 3]} for n in range(6)
    ]
    topics = [{"Name": f"topic-{n}", "Partitions": partitions} for n in range(8)]
    add(
        8,
        "Metadata",
        12,
        {"Topics": None},
        {"Brokers": [{"NodeId": 1, "Host": BROKER, "Port": PORT}], "Topics": topics},
    )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--packets", type=int, default=600_000)
    parser.add_argument("--bulk", action="store_true")
    parser.add_argument("--connections", type=int, default=200)
    given = parser.parse_args()
    make(given.out, given.packets, given.bulk, given.connections)


def make(path: Path, packets: int, bulk: bool = False, connections: int = 200) -> None:
    """Writes the capture."""
    random = Random(7)
    wire = Wire(path)
    talks = [Talk(wire, number) for number in range(connections)]
    for talk in talks:
        hello = kwire.encode("ApiVersionsRequest", 3, SOFTWARE)
        talk.exchange(hello, kwire.encode("ApiVersionsResponse", 3, {}), 18, 3)
    choices = kinds(random, bulk)
    weights = [weight for weight, *_ in choices]
    while wire.packets < packets:
        some = random.sample(talks, min(50, connections))
        for talk, (_, *exchange) in zip(some, random.choices(choices, weights, k=len(some)), strict=True):
            talk.exchange(*exchange)  # type: ignore[arg-type]
    wire.file.close()


if __name__ == "__main__":
    main()
