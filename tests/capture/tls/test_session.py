"""A connection: every suite that Python's ssl makes, however it is cut; without keys, with wrong ones, with some."""

# mypy: disable-error-code="arg-type, operator, union-attr"

from __future__ import annotations

import pytest
from tlsmade import CLIENT, SERVER, Talk, contexts, talk

from kwire.capture.tls.negotiation import Resumable
from kwire.capture.tls.session import HELD, TlsSession

from .conftest import Tls

WORDS = ((CLIENT, b"hello " * 10), (SERVER, b"x" * 40_000), (CLIENT, b"a"), (SERVER, b"b" * 17_000))
SUITES = [
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-CCM",
    "ECDHE-ECDSA-AES256-CCM8", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384",
    "ECDHE-ECDSA-AES128-SHA256",
]  # fmt: skip


@pytest.mark.parametrize("step", [0, 700, 64_000])
@pytest.mark.parametrize("suite", ["", *SUITES])
def test_every_suite_gives_what_was_said(tls: Tls, suite: str, step: int) -> None:
    said = talk(*WORDS, version="1.2" if suite else "1.3", suite=suite)
    read = tls.read(said, step)
    assert read.inside == said.plain
    assert (read.session.decrypted, read.session.why) == (True, None)


def test_byte_by_byte(tls: Tls) -> None:
    said = talk((CLIENT, b"hello"), (SERVER, b"x" * 300))
    assert tls.read(said, 1).inside == said.plain


def test_positions_and_packets_are_those_of_the_encrypted_bytes(tls: Tls) -> None:
    said = talk((CLIENT, b"a" * 3000), (CLIENT, b"b" * 10))
    pieces = [piece for piece in tls.read(said, 1000).pieces[0] if piece.data]
    assert [piece.position for piece in pieces] == [0, 3000]
    first, second = pieces
    assert first.starts[0] == 0
    assert len(first.starts) == len(first.times) == len(first.numbers)
    assert first.starts == sorted(set(first.starts))
    assert [time - 1000 for time in first.times] == first.numbers
    assert len(second.numbers) == 1


def test_the_handshake_tells_what_it_can(tls: Tls) -> None:
    facts = tls.read(talk((CLIENT, b"x"), version="1.2", suite=SUITES[0], mutual=True)).session.facts
    assert (facts.version, facts.server_name, facts.suite.name) == (
        "TLS 1.2", "kafka.example", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    )  # fmt: skip
    assert "kafka.example" in facts.certificate.names
    assert facts.client_certificate is not None
    assert facts.asked_certificate
    assert facts.took > 0
    assert [alert.number for alert in facts.alerts] == [0]
    assert not facts.resumed


@pytest.mark.parametrize(("version", "suite"), [("1.3", ""), ("1.2", SUITES[0])])
def test_without_a_key_it_stays_as_it_came_and_says_which_key_is_missing(tls: Tls, version: str, suite: str) -> None:
    said = talk(*WORDS, version=version, suite=suite)
    read = tls.read(said, log=b"")
    assert read.inside[0] == b"".join(data for side, data in said.chunks if side == CLIENT)
    assert read.session.why == f"no key for client random {read.session.facts.client_random.hex()}"
    assert read.session.facts.took > 0


@pytest.mark.parametrize(("version", "suite"), [("1.3", ""), ("1.2", SUITES[0])])
def test_a_session_in_which_nothing_was_said_lacks_nothing(tls: Tls, version: str, suite: str) -> None:
    said = talk(version=version, suite=suite)
    with_key, without = tls.read(said).session, tls.read(said, log=b"").session
    assert (with_key.silent, with_key.encrypted, with_key.why) == (True, False, None)
    assert (without.silent, without.encrypted, without.why) == (False, True, without.no_key)


@pytest.mark.parametrize(("version", "suite"), [("1.3", ""), ("1.2", SUITES[0]), ("1.2", SUITES[5])])
def test_a_wrong_key_is_said(tls: Tls, version: str, suite: str) -> None:
    said = talk((CLIENT, b"hello"), (SERVER, b"you"), version=version, suite=suite)
    wrong = b"\n".join(line[:-8] + b"deadbeef" for line in said.log.splitlines())
    read = tls.read(said, log=wrong)
    assert not read.session.decrypted
    assert "does not fit" in read.session.why
    assert read.inside[0] == b"".join(data for side, data in said.chunks if side == CLIENT)


def test_only_the_traffic_secrets_are_enough(tls: Tls) -> None:
    said = talk(*WORDS)
    some = b"\n".join(line for line in said.log.splitlines() if b"TRAFFIC_SECRET_0" in line)
    assert tls.read(said, log=some).inside == said.plain


@pytest.mark.parametrize("ticket", [True, False])
def test_a_resumed_session_of_1_2_needs_the_first_ones_key_only(tls: Tls, ticket: bool) -> None:
    import ssl

    client, server = contexts("1.2", SUITES[0])
    if not ticket:
        server.options |= ssl.OP_NO_TICKET
    first = Talk(made=(client, server))
    first.say(CLIENT, b"one")
    second = Talk(made=(client, server), session=first.sides[0].session)
    second.say(CLIENT, b"two")
    assert second.sides[0].session_reused
    resumable = Resumable()
    assert tls.read(first.said, resumable=resumable).inside[0] == b"one"
    read = tls.read(second.said, log=b"", resumable=resumable)
    assert read.inside[0] == b"two"
    assert read.session.facts.resumed


def test_a_resumed_session_of_1_3_is_said_to_be(tls: Tls) -> None:
    client, server = contexts()
    first = Talk(made=(client, server))
    first.say(SERVER, b"one")
    second = Talk(made=(client, server), session=first.sides[0].session)
    second.say(CLIENT, b"two")
    read = tls.read(second.said)
    assert read.inside[0] == b"two"
    assert read.session.facts.resumed


def test_nothing_said_inside_leaves_the_records(tls: Tls) -> None:
    read = tls.read(talk())
    assert (read.session.decrypted, read.session.why) == (False, None)
    assert read.inside[0][:3] == b"\x16\x03\x01"


def test_what_waits_for_keys_is_bounded() -> None:
    said = talk((SERVER, b"x" * 3 * HELD))
    from kwire.capture.streams import Piece
    from kwire.capture.tls.keylog import KeyLog

    session, out, at = TlsSession(KeyLog(growing=True), Resumable(), 0), 0, [0, 0]
    for side, data in said.chunks:
        for low in range(0, len(data), 10_000):
            part = data[low : low + 10_000]
            new: tuple[list[Piece], list[Piece]] = [], []
            new[side].append(Piece(at[side], part, [at[side]], [1], [1]))
            at[side] += len(part)
            out += sum(len(piece.data) for pieces in session.take(new) for piece in pieces)
            assert session.held < 3 * HELD
    assert out > HELD
    assert "no key" in session.why


def test_a_record_that_is_too_long_is_read_and_said(tls: Tls) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from tlsmade import Said

    from kwire.capture.tls.schedule import keys_13

    said = talk((CLIENT, b"first"))
    secret = next(line.split()[2] for line in said.log.splitlines() if line.startswith(b"CLIENT_TRAFFIC_SECRET_0"))
    facts = tls.read(said).session.facts
    keys = keys_13(facts.suite, bytes.fromhex(secret.decode()))
    inner = b"x" * 16_385 + b"\x17"
    header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
    nonce = (int.from_bytes(keys.iv, "big") ^ 1).to_bytes(12, "big")
    chunks = list(said.chunks[:-1])
    chunks.append((CLIENT, header + AESGCM(keys.key).encrypt(nonce, inner, header)))
    read = tls.read(Said(chunks, said.log, said.plain))
    assert read.inside[0] == b"first" + b"x" * 16_385
    assert read.session.facts.oversized == 1
