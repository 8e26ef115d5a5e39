"""Captures whose answers are record batches that decompress to far more than they take, for what opens bodies.

ATTACKS: name → maker(folder, scale).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from struct import pack

from attacks.decoding import batch, zstd_zeros
from packetsmade import HELLO, asked, pcap, request, sized

import kwire

SEGMENT = 16 * 1024


def said(stream: bytes, side: int, seq: int) -> Iterator[bytes]:
    pieces = (stream[at : at + SEGMENT] for at in range(0, len(stream), SEGMENT))
    return asked(pieces, seq, side)


def fetched(folder: Path, scale: float) -> Path:
    """Six Fetches; each answer has 64 batches of 63 MB of zeros in 16 partitions."""
    one = batch(zstd_zeros(int(63e6 * scale)))
    parts = [{"PartitionIndex": at, "Records": one * 4} for at in range(16)]
    ask = kwire.encode("FetchRequest", 11, {"Topics": [{"Topic": "t", "Partitions": [{"Partition": 0}]}]})
    answer = kwire.encode("FetchResponse", 11, {"Responses": [{"Topic": "t", "Partitions": parts}]})
    packets: list[bytes] = [*HELLO]
    sent, got = 100, 500
    for ident in range(6):
        asks, answers = request(1, 11, ident, ask), sized(pack(">i", ident) + answer)
        packets += [*said(asks, 0, sent), *said(answers, 1, got)]
        sent, got = sent + len(asks), got + len(answers)
    return pcap(folder / "x.pcap", packets)


def opened(command: tuple[str, ...], folder: Path, scale: float) -> list[str]:
    verb, *options = command
    return [verb, str(fetched(folder, scale)), *(option.replace("OUT", str(folder / "out")) for option in options)]


COMMANDS = (
    ("read", "-x"),
    ("read", "-x", "--show-secrets"),
    ("read", "--body"),
    ("read", "--body", "--inner"),
    ("read", "--body", "--inner", "--format", "json"),
    ("read", "--inner", "--format", "csv", "--fields", "time,body"),
    ("decode", "--connection", "10.0.0.1"),
    ("decode", "--connection", "10.0.0.1", "--inner", "--format", "json"),
    ("decode", "--connection", "10.0.0.1", "--format", "spans"),
    ("decode", "--connection", "10.0.0.1", "--format", "html"),
    ("sql", "select sum(length(body)) from bodies"),
    ("sql", "select count(*) from batches"),
    ("table", "--bodies", "--format", "csv", "-o", "OUT"),
    ("stats", "--errors"),
    ("groups",),
    ("redact", "-o", "OUT.pcapng"),
    ("report", "-o", "OUT.html"),
    ("what-if",),
)
ATTACKS: dict[str, Callable[[Path, float], list[str]]] = {
    f"bombs for {' '.join(command)}": partial(opened, command) for command in COMMANDS
}
