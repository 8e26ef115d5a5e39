"""Verdicts on bytes that are not Kafka, the numbers that a broker logs for them, and silence about bytes that are."""

from __future__ import annotations

import random

import pytest
from vectors import damaged, jsonl

from kwire.codec.verdict import MAX_REQUEST, Verdict, judge


def client_hello(name: bytes | None, *before: tuple[int, bytes]) -> bytes:
    """A ClientHello with these extensions, then the server name (RFC 8446 section 4.1.2, RFC 6066 section 3)."""
    extensions = b"".join(kind.to_bytes(2, "big") + len(raw).to_bytes(2, "big") + raw for kind, raw in before)
    if name is not None:
        entry = b"\0" + len(name).to_bytes(2, "big") + name
        listed = len(entry).to_bytes(2, "big") + entry
        extensions += b"\0\0" + len(listed).to_bytes(2, "big") + listed
    session, suites = bytes([4]) + b"sess", b"\x00\x04\x13\x01\x13\x02"
    body = b"\x03\x03" + bytes(32) + session + suites + b"\x01\x00" + len(extensions).to_bytes(2, "big") + extensions
    handshake = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(handshake).to_bytes(2, "big") + handshake


HELLO = client_hello(b"broker-1.example.com", (0x2B, b"\x02\x03\x04"))
PROXY2 = bytes.fromhex("0d0a0d0a000d0a515549540a 2111000c 0a000007 0a000002 c8f4 2384")
HTTP_ADVICE = "An HTTP client or health check talks to this port."
TLS_ADVICE = "The other side speaks TLS: this listener may be plaintext, or the capture needs its keys to be read."
ALERT_ADVICE = "The TLS peer gave up; the alert says why."
PROXY_ADVICE = "A load balancer announces the client; Kafka does not read that."
SEALED = "Encrypted: the capture needs the session's keys to be read."
ZOOKEEPER = "A probe meant for ZooKeeper reaches this port."

KNOWN = [
    (b"GET /metrics HTTP/1.1\r\nHost: kafka\r\n\r\n", "HTTP request", "GET /metrics", HTTP_ADVICE),
    (b"POST /topics/orders HTTP/1.1\r\n", "HTTP request", "POST /topics/orders", HTTP_ADVICE),
    (b"HEAD / HTTP/1.0\r\n", "HTTP request", "HEAD /", HTTP_ADVICE),
    (b"CONNECT kafka:9092 HTTP/1.1\r\n", "HTTP request", "CONNECT kafka:9092", HTTP_ADVICE),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP request", "PRI *", HTTP_ADVICE),
    (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n", "HTTP response", "HTTP/1.1 400 Bad Request",
     "An HTTP server or proxy answers on this port, not a broker."),
    (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH", "SSH-2.0-OpenSSH_9.6", "This is an SSH server or client."),
    (b"PROXY TCP4 10.0.0.7 10.0.0.2 51522 9092\r\nrest", "PROXY protocol v1",
     "PROXY TCP4 10.0.0.7 10.0.0.2 51522 9092", PROXY_ADVICE),
    (b"PROXY UNKNOWN\r\n", "PROXY protocol v1", "PROXY UNKNOWN", PROXY_ADVICE),
    (PROXY2, "PROXY protocol v2", "", PROXY_ADVICE),
    (HELLO, "TLS ClientHello", "server name broker-1.example.com", TLS_ADVICE),
    (HELLO[:60], "TLS ClientHello", "", TLS_ADVICE),
    (client_hello(None), "TLS ClientHello", "", TLS_ADVICE),
    (client_hello(b"k"), "TLS ClientHello", "server name k", TLS_ADVICE),
    (client_hello(b"\xff\xfe"), "TLS ClientHello", "", TLS_ADVICE),
    (bytes.fromhex("160303004a 02000046"), "TLS ServerHello", "", TLS_ADVICE),
    (bytes.fromhex("1603030100 0b0000fc"), "TLS Certificate", "", TLS_ADVICE),
    (bytes.fromhex("1603030100 0e0000fc"), "TLS handshake 14", "", TLS_ADVICE),
    (bytes.fromhex("1503030002 0230"), "TLS alert", "fatal unknown_ca", ALERT_ADVICE),
    (bytes.fromhex("1503030002 0100"), "TLS alert", "warning close_notify", ALERT_ADVICE),
    (bytes.fromhex("1503030002 09c8"), "TLS alert", "9 200", ALERT_ADVICE),
    (bytes.fromhex("150303001a" + "ab" * 26), "TLS alert", "26 bytes", SEALED),
    (bytes.fromhex("1403030001 01"), "TLS change cipher spec", "1 bytes", SEALED),
    (bytes.fromhex("1703034000 ab"), "TLS application data", "16,384 bytes", SEALED),
    (b"ruok", "ZooKeeper command", "ruok", ZOOKEEPER),
    (b"stat\n", "ZooKeeper command", "stat", ZOOKEEPER),
    (b"mntr\r\n", "ZooKeeper command", "mntr", ZOOKEEPER),
    (b"imok", "ZooKeeper command", "imok", ZOOKEEPER),
]  # fmt: skip


@pytest.mark.parametrize(("data", "what", "detail", "advice"), KNOWN, ids=[f"{case[1]} {case[2]}" for case in KNOWN])
def test_what_is_not_kafka_is_named(data: bytes, what: str, detail: str, advice: str) -> None:
    verdict = judge(data)
    assert verdict is not None
    assert (verdict.what, verdict.detail, verdict.advice) == (what, detail, advice)
    assert verdict.size == int.from_bytes(data[:4], "big", signed=True)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"GET / HTTP/1.1\r\n", 1195725856),
        (b"POST / HTTP/1.1\r\n", 1347375956),
        (b"HTTP/1.1 200 OK\r\n", 1213486160),
        (b"SSH-2.0-x\r\n", 1397966893),
        (b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4", 369295616),
        (b"\x15\x03\x03\x00\x02\x02\x46", 352518912),
        (b"PROXY TCP4", 1347571544),
        (b"ruok", 1920298859),
        (PROXY2, 218762506),
    ],
)
def test_a_broker_logs_the_first_four_bytes_as_a_size(data: bytes, number: int) -> None:
    verdict = judge(data)
    assert verdict is not None
    assert verdict.size == number
    assert verdict.logged == f"Invalid receive (size = {number} larger than 104857600)"


@pytest.mark.parametrize(
    ("size", "logged"),
    [
        (None, None),
        (0, None),
        (MAX_REQUEST, None),
        (MAX_REQUEST + 1, "Invalid receive (size = 104857601 larger than 104857600)"),
        (-1, "Invalid receive (size = -1)"),
    ],
)
def test_what_a_broker_logs_follows_from_the_size(size: int | None, logged: str | None) -> None:
    assert Verdict("x", "", size, "").logged == logged


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET",
        b"GET ",
        b"GETS / HTTP/1.1",
        b"get / HTTP/1.1",
        b"SSH",
        b"ruo",
        b"ruok is a word of four letters",
        b"PROXY TCP5 ",
        b"\x16\x03\x01\x00",  # too short to be told
        b"\x16\x02\x01\x00\xc8\x01",  # no TLS version
        b"\x16\x03\x05\x00\xc8\x01",
        b"\x18\x03\x03\x00\x10\x01",  # no kind of record
        b"\x16\x03\x03\x00\x00\x01",  # empty
        b"\x16\x03\x03\x48\x01\x01",  # longer than a record may be
        bytes(16),
        b"\xff" * 16,
    ],
)
def test_other_bytes_are_not_judged(data: bytes) -> None:
    assert judge(data) is None


def test_long_lines_are_cut() -> None:
    verdict = judge(b"SSH-2.0-" + b"x" * 500)
    assert verdict is not None
    assert len(verdict.detail) == 80
    assert judge(b"GET /" + b"x" * 500 + b" HTTP/1.1") is not None


def test_a_verdict_needs_no_more_than_the_first_bytes() -> None:
    for data, what, *_ in KNOWN:
        for length in range(len(data) + 1):
            verdict = judge(data[:length])
            assert verdict is None or verdict.what.split()[0] == what.split()[0]


def test_damaged_signatures_raise_nothing() -> None:
    rng, judged = random.Random(9), 0
    for data, *_ in KNOWN:
        for _ in range(200):
            verdict = judge(damaged(data, rng)[: rng.randrange(len(data) + 1)])
            assert verdict is None or (verdict.what and verdict.advice)
            judged += verdict is not None
    assert judged > 500


def test_kafka_frames_are_not_judged() -> None:
    frames = [bytes.fromhex(row["hex"]) for row in jsonl("vectors/frames")]
    frames += [bytes.fromhex(row["hex"])[4:] for row in jsonl("frames/real")]
    for raw in frames:
        assert judge(raw) is None
        assert judge(len(raw).to_bytes(4, "big") + raw) is None
