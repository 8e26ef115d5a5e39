"""The layer for scapy: frames of real clients dissected, paired and built again; made ones; hostile ones."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Padding, Raw
from scapy.sendrecv import sniff
from scapy.utils import rdpcap, wrpcap

import kwire
from kwire.scapy import Kafka, KafkaSession

FIXTURES = Path(__file__).parents[1] / "fixtures" / "captures"


@pytest.fixture(params=["classic.pcap.gz", "ipv6.pcap", "kafkajs.pcap", "mtu1500.pcap.gz", "share.pcap"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    data = (FIXTURES / request.param).read_bytes()
    path = tmp_path / "c.pcap"
    path.write_bytes(gzip.decompress(data) if request.param.endswith(".gz") else data)
    return path


def frames(path: Path) -> list[Any]:
    """The Kafka layers that a session finds, those behind each other in a packet too."""
    found = []
    for packet in sniff(offline=str(path), session=KafkaSession):
        layer = packet.getlayer(Kafka)
        if layer is not None:
            found.append(layer)
    return found


def test_a_session_finds_what_kwire_reads(capture: Path) -> None:
    seen = {(each.kind, each.api, each.version, each.correlation_id) for each in frames(capture)}
    told = set()
    for exchange in kwire.read(str(capture)):
        for message, kind in ((exchange.request, "request"), (exchange.response, "response")):
            if message is not None and message.quality == "ok":
                told.add((kind, exchange.api, exchange.api_version, exchange.correlation_id))
    assert told <= seen
    assert len(seen - told) <= len(told) // 20


def test_frames_are_built_as_they_were(capture: Path) -> None:
    some = [each for each in frames(capture) if each.note is None][:60]
    assert some
    for each in some:
        assert each.self_build() == each.frame
        each.correlation_id += 1
        again = each.self_build()
        assert again[:4] == each.frame[:4]
        assert again != each.frame


def test_a_packet_of_ours_is_read_back(tmp_path: Path) -> None:
    body = {"GroupId": "g", "MemberId": "m", "GenerationId": 3}
    asked = Kafka(api="Heartbeat", version=4, correlation_id=7, client_id="me", body=body)
    answer = Kafka(kind="response", api="Heartbeat", version=4, correlation_id=7, body={"ErrorCode": 27})
    there = Ether() / IP(src="10.0.0.1", dst="10.0.0.2")
    packets = [
        there / TCP(sport=40000, dport=9092, seq=1, flags="PA") / asked,
        Ether() / IP(src="10.0.0.2", dst="10.0.0.1") / TCP(sport=9092, dport=40000, seq=1, flags="PA") / answer,
    ]
    wrpcap(str(tmp_path / "made.pcap"), packets)
    first, second = frames(tmp_path / "made.pcap")
    assert (first.api, first.client_id, first.body["MemberId"]) == ("Heartbeat", "me", "m")
    assert (second.kind, second.api, second.body["ErrorCode"]) == ("response", "Heartbeat", 27)
    assert second.answers(first)
    assert first.hashret() == second.hashret()
    (exchange,) = kwire.read(str(tmp_path / "made.pcap"))
    assert (exchange.api, exchange.response is not None) == ("Heartbeat", True)


def test_a_changed_body_is_built_anew() -> None:
    layer = Kafka(bytes(Kafka(api="Heartbeat", version=4, body={"GroupId": "g"})))
    layer.body["GroupId"] = "other"
    assert Kafka(bytes(layer)).body["GroupId"] == "other"


def test_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    layer = Kafka(bytes(Kafka(api="Heartbeat", version=4, client_id="me\x1b[31m", body={"GroupId": "g\x1b]0;x\x07"})))
    layer.show()
    text = capsys.readouterr().out
    assert "GroupId = g" in text
    assert "\x1b]0" not in text
    assert layer.summary().startswith("Heartbeat v4 request 0 me")
    assert layer.sprintf("%Kafka.api% v%Kafka.version%") == "Heartbeat v4"


def test_passwords_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    login = Kafka(api="SaslAuthenticate", version=2, body={"AuthBytes": b"\0ann\0hunter2secret"})
    layer = Kafka(bytes(login))
    layer.show()
    assert "hunter2secret" not in capsys.readouterr().out
    assert layer.body["AuthBytes"] == b"\0ann\0hunter2secret"


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff" * 4, b"\0\0\0\4\0\0\0\1", b"\0\0\0\x0a" + b"\xff" * 10],
)
def test_bytes_that_are_no_kafka_are_left_as_they_are(data: bytes) -> None:
    packet = IP(bytes(IP() / TCP(dport=9092) / Raw(data)))
    assert bytes(packet[TCP].payload) == data
    packet.summary()


def test_two_frames_in_a_segment() -> None:
    one = bytes(Kafka(api="Heartbeat", version=4, correlation_id=1, body={}))
    two = bytes(Kafka(api="ApiVersions", version=3, correlation_id=2, body={}))
    packet = IP(bytes(IP() / TCP(dport=9092) / Raw(one + two)))
    assert [packet[Kafka].api, packet[Kafka].payload.api] == ["Heartbeat", "ApiVersions"]
    assert not packet.haslayer(Padding)
    assert bytes(packet[TCP].payload) == one + two


def test_rdpcap_dissects_too() -> None:
    assert sum(Kafka in packet for packet in rdpcap(str(FIXTURES / "ipv6.pcap"))) > 20


LIVE = """
import socket, threading
from scapy.layers.inet import TCP
from scapy.packet import bind_layers
from scapy.sendrecv import AsyncSniffer
from kwire.scapy import Kafka, KafkaSession
from kwire.testing import Broker

with Broker() as broker:
    port = int(broker.address.rsplit(":", 1)[1])
    bind_layers(TCP, Kafka, dport=port)
    bind_layers(TCP, Kafka, sport=port)
    begun = threading.Event()
    sniffer = AsyncSniffer(
        iface="lo", session=KafkaSession, filter=f"tcp port {port}", started_callback=begun.set,
        stop_filter=lambda packet: Kafka in packet and packet[Kafka].kind == "response",
    )
    sniffer.start()
    assert begun.wait(60), sniffer.exception
    with socket.create_connection(("127.0.0.1", port), 60) as peer:
        peer.sendall(bytes(Kafka(api="ApiVersions", version=3, correlation_id=5, client_id="x", body={})))
        answer = peer.recv(1 << 16)
    sniffer.join(60)
    found = [packet[Kafka] for packet in sniffer.results or [] if Kafka in packet]
kinds = {(each.kind, each.api, each.correlation_id) for each in found}  # lo may show a packet twice: out and in
assert kinds == {("request", "ApiVersions", 5), ("response", "ApiVersions", 5)}, kinds
assert found[-1].frame == answer
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may listen to lo")
def test_live_on_loopback() -> None:
    """In a process of its own: scapy waits with select, which fails beside more than 1,024 open files."""
    ran = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True, timeout=180, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
