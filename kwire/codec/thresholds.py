"""Up to how many of a kind are read one after the other, which is faster for few, and not together as columns. What is
read is the same either way."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Thresholds:
    """bodies: messages that become columns; scans: messages that are walked over for errors; streams: connections whose
    frames are followed; chains: partitions whose record batches are followed; round: bytes, up to which what lies
    behind an irregular frame is not worth columns."""

    bodies: int = 24
    scans: int = 47
    streams: int = 12
    chains: int = 24
    round: int = 1 << 16


ONE_BY_ONE = Thresholds(NEVER, NEVER, NEVER, NEVER, NEVER)
TOGETHER = Thresholds(0, 0, 0, 0, 0)
DEFAULT = Thresholds()
