"""Packets that are missing: what is lost is said, exactly where it can be, and everything else is read."""

# mypy: disable-error-code="operator"

from __future__ import annotations

import random

import pytest
from tlsmade import CLIENT, SERVER, packets_of, talk

from .conftest import Tls

SUITES = ["", "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA256"]
LINES = [b"%06d|" % number * 30 for number in range(300)]


def said_of(suite: str):  # type: ignore[no-untyped-def]
    words = [(CLIENT, line) for line in LINES]
    return talk(*words, version="1.2" if suite else "1.3", suite=suite)


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("lost", [1, 3, 40])
def test_what_comes_behind_a_hole_is_read(tls: Tls, suite: str, lost: int) -> None:
    said = said_of(suite)
    packets = packets_of(said.chunks, mtu=1_000_000)
    middle = len(packets) // 2
    read = tls.capture(packets[:middle] + packets[middle + lost :], said.log)
    inside, pieces = said.plain[0], read.pieces[0]
    position = 0
    for piece in pieces:
        assert piece.position - piece.missing <= position or piece.missing
        if (piece.data and not suite.endswith("SHA256")) or suite == SUITES[1]:
            assert inside[piece.position : piece.position + len(piece.data)] == piece.data
        position = piece.position + len(piece.data)
    assert sum(len(piece.data) for piece in pieces) == len(inside) - lost * 210
    assert sum(1 for piece in pieces if piece.missing) == 1
    assert read.session.facts.lost == lost
    if suite != SUITES[3]:  # whose padding is not known
        assert sum(piece.missing for piece in pieces) == lost * 210


@pytest.mark.parametrize("suite", SUITES)
def test_a_hole_within_a_record_costs_that_record(tls: Tls, suite: str) -> None:
    said = talk(
        (CLIENT, b"first"), (CLIENT, b"x" * 16_000), (CLIENT, b"last"), (SERVER, b"fine"),
        version="1.2" if suite else "1.3", suite=suite,
    )  # fmt: skip
    packets = packets_of(said.chunks)
    big = [at for at, packet in enumerate(packets) if packet.side == CLIENT and len(packet.data) == 1400]
    del packets[big[3] : big[5]]
    read = tls.capture(packets, said.log)
    assert [piece.data for piece in read.pieces[0] if piece.data] == [b"first", b"last"]
    assert read.inside[1] == b"fine"
    missing = sum(piece.missing for piece in read.pieces[0])
    assert missing == 16_000 if suite != SUITES[3] else 0 <= missing - 16_000 <= 16


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("seed", range(8))
def test_any_loss_gives_what_was_said_or_says_that_it_is_missing(tls: Tls, suite: str, seed: int) -> None:
    rng = random.Random(seed)
    said = said_of(suite)
    packets = packets_of(said.chunks, mtu=rng.choice([100, 333, 1400]))
    kept = [packet for packet in packets if rng.random() > 0.02 or packet.offset < 1000]
    rng.shuffle(few := kept[20:40])
    read = tls.capture([*kept[:20], *few, *kept[40:]], said.log, blocks=rng.choice([1, 7, 1000]))
    found = read.inside[0]
    lines = set(LINES)
    assert found.count(b"|") > 0.5 * said.plain[0].count(b"|")
    for low in range(0, len(found), 210):
        assert found[low : low + 210] in lines


def test_a_lost_handshake_is_said(tls: Tls) -> None:
    said = talk((CLIENT, b"hello"), (SERVER, b"you"))
    packets = [packet for packet in packets_of(said.chunks, mtu=300) if packet.side == CLIENT or packet.offset > 100]
    read = tls.capture(packets, said.log)
    assert not read.session.decrypted
    assert "handshake" in read.session.why


def test_midstream_is_said(tls: Tls) -> None:
    said = said_of("")
    packets = [packet for packet in packets_of(said.chunks, mtu=1_000_000, opening=False) if packet.offset > 4000]
    read = tls.capture(packets, said.log)
    assert "begun before the capture" in read.session.why


def test_a_snaplen_that_cuts_every_packet_is_survived(tls: Tls) -> None:
    said = said_of("")
    packets = packets_of(said.chunks, mtu=1_000_000)
    read = tls.capture([packet._replace(data=packet.data[:90]) for packet in packets], said.log)
    assert read.session.why is not None or not read.session.decrypted
