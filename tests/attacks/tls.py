"""Hostile input to what reads TLS: name → maker(folder, scale), which writes a capture and a key log into folder and
gives kwire's arguments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tlsmade import CLIENT, SERVER, Packet, Said, packets_of, pcap, talk

LINES = 40_000  # at scale 1


def _write(folder: Path, packets: list[Packet], log: bytes) -> list[str]:
    (folder / "keys.log").write_bytes(log)
    (folder / "attack.pcap").write_bytes(pcap(packets))
    return ["read", "--keylog", str(folder / "keys.log"), str(folder / "attack.pcap")]


def _said(scale: float, suite: str = "") -> Said:
    words = [(SERVER, os.urandom(200)) for _ in range(max(int(LINES * scale), 50))]
    return talk((CLIENT, b"x"), *words, version="1.2" if suite else "1.3", suite=suite)


def holes(folder: Path, scale: float) -> list[str]:
    """Every second record is missing: how many are lost must be found out for each."""
    packets = packets_of(_said(scale).chunks, mtu=100_000)
    return _write(folder, packets[:20] + packets[20::2], _said(0).log)


def holes_with_keys(folder: Path, scale: float) -> list[str]:
    """The same with the right keys."""
    said = _said(scale)
    packets = packets_of(said.chunks, mtu=100_000)
    return _write(folder, packets[:20] + packets[20::2], said.log)


def one_long_hole(folder: Path, scale: float) -> list[str]:
    """Most of a stream is missing, and what follows is not authentic: every number is tried, but not for ever."""
    said = _said(scale)
    packets = packets_of(said.chunks, mtu=100_000)
    last = [
        packet._replace(data=packet.data[:5] + os.urandom(len(packet.data) - 5))
        for packet in packets[-len(packets) // 10 :] if len(packet.data) > 5
    ]  # fmt: skip
    return _write(folder, packets[:40] + last, said.log)


def byte_by_byte(folder: Path, scale: float) -> list[str]:
    """A record of 16 KiB in packets of one byte."""
    said = talk((CLIENT, b"x"), (SERVER, bytes(int(64_000 * scale) + 5_000)))
    return _write(folder, packets_of(said.chunks, mtu=1), said.log)


def headers(folder: Path, scale: float) -> list[str]:
    """Behind a hole, nothing but what looks like records."""
    said = talk((CLIENT, b"x"), (SERVER, b"y"))
    packets = packets_of(said.chunks)
    at = sum(len(data) for side, data in said.chunks if side == SERVER)
    fake = [Packet(1, at + 100 + 1000 * n, b"\x17\x03\x03\x00\x13" * 200) for n in range(int(20_000 * scale) + 20)]
    return _write(folder, packets[:-2] + fake, said.log)


def keys_of_junk(folder: Path, scale: float) -> list[str]:
    """A key log of lines that are nearly some."""
    lines = [
        b"CLIENT_RANDOM " + os.urandom(32).hex().encode() + b" " + b"a" * 97 for _ in range(int(200_000 * scale) + 9)
    ]
    return _write(folder, packets_of(_said(0).chunks), b"\n".join(lines))


ATTACKS: dict[str, Callable[[Path, float], list[str]]] = {
    "holes in every second record, wrong keys": holes,
    "holes in every second record": holes_with_keys,
    "a long hole before what is not authentic": one_long_hole,
    "records byte by byte": byte_by_byte,
    "what looks like records": headers,
    "a key log of junk": keys_of_junk,
}
