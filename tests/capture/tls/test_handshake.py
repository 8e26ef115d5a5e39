"""Handshake messages as OpenSSL writes them, and damaged ones."""

from __future__ import annotations

import random

import pytest
from tlsmade import talk

from kwire.capture.tls.handshake import (
    TLS_1_3,
    Malformed,
    certificate,
    client_hello,
    encrypted_extensions,
    messages,
    new_ticket,
    server_hello,
)


def hellos(version: str = "1.3") -> tuple[bytes, bytes]:
    chunks = talk(version=version, suite="" if version == "1.3" else "ECDHE-ECDSA-AES128-GCM-SHA256").chunks
    found = [next(messages(bytearray(data[5:])))[1] for _, data in chunks[:2]]
    return found[0], found[1]


def test_hellos() -> None:
    first, second = hellos()
    client, server = client_hello(first), server_hello(second)
    assert client.server_name == "kafka.example"
    assert TLS_1_3 in client.versions
    assert server.suite in client.suites
    assert (server.version, server.retry) == (TLS_1_3, False)
    assert server.session == client.session
    old = server_hello(hellos("1.2")[1])
    assert old.version == 0x0303
    assert old.extended_master


def test_messages_come_whole_and_in_pieces() -> None:
    buffer = bytearray()
    whole = b"\x14\0\0\x02ab\x0e\0\0\0"
    found = []
    for byte in whole:
        buffer.append(byte)
        found += list(messages(buffer))
    assert found == [(20, whole[:6]), (14, whole[6:])]
    with pytest.raises(Malformed):
        list(messages(bytearray(b"\x14\xff\xff\xff")))


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_malformed_or_read(seed: int) -> None:
    rng = random.Random(seed)
    for message in hellos("1.3" if seed % 2 else "1.2"):
        made = bytearray(message)
        for _ in range(rng.randrange(1, 5)):
            made[rng.randrange(len(made))] = rng.randrange(256)
        data = bytes(made[: rng.randrange(4, len(made))]) if rng.random() < 0.5 else bytes(made)
        for read in (client_hello, server_hello, encrypted_extensions, new_ticket):
            try:
                read(data)
            except Malformed:
                continue
        for modern in (True, False):
            try:
                certificate(data, modern)
            except Malformed:
                continue
