"""Up to how many of a kind are read one after the other, which is faster for few, and not together as columns. What is
read is the same either way."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Thresholds:
    """bodies: messages that become columns; scans: messages that are walked over for errors; streams: connections whose
    frames are followed; chains: partitions whose record batches are followed; round: bytes, up to which what lies
    behind an irregular frame is not worth columns; records: of a batch, which pay for the import of numpy too.

    Of messages that become columns, chunk: bytes of those that are read together, which stay in the processor's cache
    with what is made of them; least: how many these are at least; values: bytes of the irregular ones whose values are
    in memory at once."""

    bodies: int = 24
    scans: int = 47
    streams: int = 12
    chains: int = 24
    round: int = 1 << 16
    records: int = 256
    chunk: int = 6 << 20
    least: int = 256
    values: int = 1 << 20


ONE_BY_ONE = Thresholds(NEVER, NEVER, NEVER, NEVER, NEVER, NEVER)
TOGETHER = Thresholds(0, 0, 0, 0, 0, 0)
DEFAULT = Thresholds()
