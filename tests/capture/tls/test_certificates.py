"""Certificates: what the package cryptography reads, and damaged ones."""

from __future__ import annotations

import random
import ssl
from datetime import UTC, datetime

import pytest
from tlsmade import pem

from kwire.capture.tls.certificates import Certificate, read_certificate

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def der() -> bytes:
    text = pem().read_text()
    return ssl.PEM_cert_to_DER_cert(text[: text.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n")


def test_it_is_read_as_cryptography_reads_it(der: bytes) -> None:
    from cryptography import x509

    theirs = x509.load_der_x509_certificate(der)
    ours = read_certificate(der)
    assert ours is not None
    assert ours.subject == theirs.subject.rfc4514_string() == "CN=kwire broker"
    assert ours.issuer == theirs.issuer.rfc4514_string()
    assert ours.not_after == int(theirs.not_valid_after_utc.timestamp()) * SECOND
    assert ours.not_before == int(theirs.not_valid_before_utc.timestamp()) * SECOND
    assert ours.names == ("localhost", "127.0.0.1", "::1", "kafka.example")
    assert ours.self_signed


def test_expiry_and_names() -> None:
    end = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()) * SECOND
    made = Certificate("O=Example,CN=kafka", "CN=CA", ("*.kafka.example", "10.0.0.2"), 0, end)
    assert made.expired(end + 1)
    assert not made.expired(end)
    assert [made.holds(name) for name in ("b1.kafka.example", "B1.Kafka.Example.", "10.0.0.2")] == [True] * 3
    assert [made.holds(name) for name in ("kafka.example", "a.b.kafka.example", "10.0.0.3", "kafka")] == [False] * 4
    assert made._replace(names=()).holds("kafka")


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x03\x02\x01\x01", b"\x30\x84\xff\xff\xff\xff", b"\x30\x80\0\0"])
def test_what_is_no_certificate(data: bytes) -> None:
    assert read_certificate(data) is None


@pytest.mark.parametrize("seed", range(20))
def test_damage_never_fails(der: bytes, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        made = bytearray(der)
        for _ in range(rng.randrange(1, 6)):
            made[rng.randrange(len(made))] = rng.randrange(256)
        read_certificate(bytes(made[: rng.randrange(len(made))]) if rng.random() < 0.3 else bytes(made))
