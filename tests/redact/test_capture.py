"""A redacted capture reads as the whole did, and nothing that was planted is in it."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

import kwire
from kwire.capture.files import open_capture
from kwire.records import build
from kwire.redact.capture import redact
from kwire.scapy import Kafka

FIXTURES = Path(__file__).parents[2] / "fixtures" / "captures"
SAME = (
    "kind", "index", "position", "time", "last_time", "size", "api", "api_version", "header_version",
    "correlation_id", "error_code", "error", "errors", "latency_ns", "quality",
)  # fmt: skip
NAMES = [
    "classic.pcap.gz", "ipv6.pcap", "kafkajs.pcap", "mtu1500.pcap.gz", "share.pcap", "sasl.pcap.gz", "sasl-v0.pcap",
    "txn.pcap.gz", "old39.pcap.gz", "oldjava.pcap.gz", "admin.pcap.gz", "streams.pcap", "evict-stopped.pcap.gz",
]  # fmt: skip


@pytest.fixture
def command(kwire: Any) -> Any:
    """The command line, by a name that leaves the package its own."""
    return kwire


def made(source: Path, folder: Path, **how: Any) -> Path:
    target = folder / "shared.pcapng"
    with target.open("wb") as file:
        redact(str(source), file, "pcapng", b"salt", **how)
    return target


@pytest.mark.parametrize("name", NAMES)
def test_the_exchanges_are_the_same(name: str, tmp_path: Path, command: Any) -> None:
    before, after = (
        [json.loads(line) for line in command("read", "--format", "json", str(path)).text.splitlines()]
        for path in (FIXTURES / name, made(FIXTURES / name, tmp_path))
    )
    assert [[row[key] for key in SAME] for row in after] == [[row[key] for key in SAME] for row in before]
    for key in ("connection", "client_id"):
        pairs = {(one[key], other[key]) for one, other in zip(before, after, strict=True)}
        assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


@pytest.mark.parametrize("name", ["classic.pcap.gz", "evict-stopped.pcap.gz", "evict-fenced.pcap.gz"])
def test_the_verdicts_are_the_same(name: str, tmp_path: Path, command: Any) -> None:
    before, after = (
        json.loads(command("groups", "--format", "json", str(path)).text)
        for path in (FIXTURES / name, made(FIXTURES / name, tmp_path))
    )
    told = [
        [(found["severity"], found["time"]) for group in each["groups"] for found in group["findings"]]
        for each in (before, after)
    ]
    assert told[0] == told[1]
    assert told[0]


def texts(path: Path) -> set[bytes]:
    """What names somebody or something in a capture: client ids, topics and groups."""
    found: set[bytes] = set()
    for exchange in kwire.read(str(path)):
        about = exchange.about
        for text in (exchange.client_id, *about.groups, *about.transactions, *about.topics):
            if text and len(text) > 3 and not text.startswith("__"):
                found.add(text.encode())
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if name != "kafkajs.pcap"])  # whose names are its software's
def test_no_name_is_left(name: str, tmp_path: Path) -> None:
    raw = made(FIXTURES / name, tmp_path).read_bytes()
    software = (b"confluent-kafka", b"librdkafka", b"kafka-python", b"rdkafka", b"kafkajs", b"apache-kafka-java")
    known = [text for text in texts(FIXTURES / name) if not any(text in word or word in text for word in software)]
    assert known
    assert [text for text in known if text in raw] == []


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_planted_is_gone_also_when_decompressed(compression: str, tmp_path: Path) -> None:
    secret = b"PLANTED-" * 8
    batch = build([(b"PLANTED-key", secret), (b"other", secret)], compression=compression)
    asked = Kafka(
        api="Produce", version=9, correlation_id=1, client_id="PLANTED-client",
        body={"TopicData": [{"Name": "PLANTED-topic", "PartitionData": [{"Index": 0, "Records": batch}]}], "Acks": 1},
    )  # fmt: skip
    source = capture_of(tmp_path, asked)
    shared = made(source, tmp_path)
    raw = shared.read_bytes()
    assert b"PLANTED" not in raw
    (frame,) = [packet[Kafka] for packet in rdpcap(str(as_pcap(shared, tmp_path))) if Kafka in packet]
    records = frame.body["TopicData"][0]["PartitionData"][0]["Records"]
    assert len(records) == len(batch)
    told = kwire.read_records(records)
    assert [(each.crc_ok, each.last_offset) for each in told] == [(True, 1)]
    assert b"PLANTED" not in repr(told).encode()


@pytest.mark.parametrize("where", ["body", "cut", "garbage"])
def test_what_was_not_read_is_blank(where: str, tmp_path: Path) -> None:
    whole = bytes(Kafka(api="Heartbeat", version=4, correlation_id=1, client_id="c", body={"GroupId": "PLANTED-group"}))
    data = {
        "body": whole[:20] + b"\xff" * 3 + b"PLANTED" + whole[30:],
        "cut": whole[:-9] + b"PLANTED",
        "garbage": b"PLANTED and no Kafka at all, " * 9,
    }[where]
    raw = made(capture_of(tmp_path, data), tmp_path).read_bytes()
    assert b"PLANTED" not in raw


def test_passwords_are_gone(tmp_path: Path) -> None:
    login = Kafka(api="SaslAuthenticate", version=2, correlation_id=1, body={"AuthBytes": b"\0PLANTED-ann\0PLANTED-pw"})
    assert b"PLANTED" not in made(capture_of(tmp_path, login), tmp_path).read_bytes()


def test_what_is_kept_stays(tmp_path: Path) -> None:
    source = FIXTURES / "ipv6.pcap"
    assert b"v6-large" in made(source, tmp_path, keep=["topics"]).read_bytes()
    assert b"v6-producer" not in made(source, tmp_path, keep=["topics"]).read_bytes()
    assert b"v6-producer" in made(source, tmp_path, keep=["clients"]).read_bytes()


@pytest.mark.parametrize("name", ["classic.pcap.gz", "ipv6.pcap"])
def test_checksums_are_right(name: str, tmp_path: Path) -> None:
    packets = rdpcap(str(as_pcap(made(FIXTURES / name, tmp_path), tmp_path)))
    for packet in packets[:80]:
        again = packet.copy()
        del again[TCP].chksum
        if IP in again:
            del again[IP].chksum
        assert (IP in again) != (IPv6 in again)
        assert bytes(again) == bytes(packet)


def test_encrypted_connections_are_blank(tmp_path: Path) -> None:
    source = sorted((FIXTURES / "tls-openssl").glob("*.pcap*"))[0]
    target = tmp_path / "t.pcapng"
    with target.open("wb") as file:
        report = redact(str(source), file, "pcapng", b"s")
    assert (report.sealed > 0, report.frames) == (True, 0)
    for packets in open_capture(target).blocks():
        for start, size in zip(packets.start.tolist(), packets.captured.tolist(), strict=True):
            data = bytes(packets.buffer[start : start + size])
            head = 20 if data[0] >> 4 == 4 else 40
            assert set(data[head + (data[head + 12] >> 4) * 4 :]) <= {ord("*")}


def test_the_same_salt_gives_the_same_names(tmp_path: Path) -> None:
    one = made(FIXTURES / "ipv6.pcap", tmp_path).read_bytes()
    assert made(FIXTURES / "ipv6.pcap", tmp_path).read_bytes() == one
    with (tmp_path / "other").open("wb") as file:
        redact(str(FIXTURES / "ipv6.pcap"), file, "pcapng", b"another")
    assert zlib.crc32((tmp_path / "other").read_bytes()) != zlib.crc32(one)


def capture_of(folder: Path, data: Any) -> Path:
    """A request on a connection that was opened."""
    from scapy.layers.l2 import Ether
    from scapy.utils import wrpcap

    there = Ether() / IP(src="10.1.2.3", dst="10.1.2.4")
    packets = [
        there / TCP(sport=40000, dport=9092, seq=9, flags="S"),
        Ether() / IP(src="10.1.2.4", dst="10.1.2.3") / TCP(sport=9092, dport=40000, seq=90, ack=10, flags="SA"),
        there / TCP(sport=40000, dport=9092, seq=10, ack=91, flags="PA") / data,
    ]
    path = folder / "made.pcap"
    wrpcap(str(path), packets)
    return path


def as_pcap(path: Path, folder: Path) -> Path:
    """The same as pcap, which scapy reads faster."""
    from kwire.capture.save import PcapWriter

    target = folder / "as.pcap"
    with target.open("wb") as file:
        writer = PcapWriter(file)
        for packets in open_capture(path).blocks():
            for at in range(len(packets)):
                start, size = int(packets.start[at]), int(packets.captured[at])
                data = bytes(packets.buffer[start : start + size])
                writer.write(int(packets.time[at]), data, int(packets.length[at]), int(packets.link[at]))
        writer.close()
    return target


def test_a_hole_stays_a_hole(tmp_path: Path, command: Any) -> None:
    data = gzip.decompress((FIXTURES / "classic.pcap.gz").read_bytes())
    out, pos, number = bytearray(data[:24]), 24, 0
    while pos < len(data):
        size = 16 + unpack_from("<I", data, pos + 8)[0]
        if number % 29 != 7:
            out += data[pos : pos + size]
        pos, number = pos + size, number + 1
    lossy = tmp_path / "lossy.pcap"
    lossy.write_bytes(out)
    before, after = (
        [json.loads(line) for line in command("read", "--format", "json", str(path)).text.splitlines()]
        for path in (lossy, made(lossy, tmp_path))
    )
    keys = ("kind", "index", "time", "size", "api", "correlation_id", "error", "quality")
    sure = [at for at, row in enumerate(before) if row["quality"] != "inferred"]  # a guess is blank afterwards
    assert [[after[at][key] for key in keys] for at in sure] == [[before[at][key] for key in keys] for at in sure]
    assert len(sure) > len(before) // 2
