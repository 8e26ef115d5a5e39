"""Connections that open and end within one split, regular throughout: final there, rows and all.

The stitch needs to know who they are, to count epochs: a few bytes each, in columns. What else it would need lies
beside the split's rows, and is fetched only of those whose endpoints meet again in another way: in a part, in segments
that were left, or with the same SYN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kwire.capture.ip import address_text, endpoint
from kwire.capture.tcp import Key
from kwire.pipeline.connection_parts import ConnectionPart
from kwire.pipeline.leftover_segments import pair


class FinalConnections:
    """In the order in which they began: keys from the client to the broker, ordinals of the split, and 16 bits of the
    numbers of their SYNs. take_parts() gives the parts to whoever keeps them; pickled, only the rest travels then."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.ordinals: list[int] = []
        self.syns: list[int] = []
        self._parts: list[ConnectionPart] = []

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, part: ConnectionPart) -> None:
        """The next one."""
        syn = part.exit.flows[0].syn or 0
        self.keys.append(part.key)
        self.ordinals.append(part.ordinal)
        self.syns.append((syn ^ syn >> 16) & 0xFFFF)
        self._parts.append(part)

    def take_parts(self) -> list[ConnectionPart]:
        """All parts."""
        parts, self._parts = self._parts, []
        return parts

    def parts(self, pairs: set[Key]) -> list[ConnectionPart]:
        """Of the connections between these endpoints, as long as they are here."""
        return [part for part in self._parts if pair(part.key) in pairs]

    def __getstate__(self) -> tuple[Any, ...]:
        peers: dict[tuple[int, ...], int] = {}
        which = [peers.setdefault((*key[:2], *key[3:]), len(peers)) for key in self.keys]
        columns = which, [key[2] for key in self.keys], np.diff(self.ordinals, prepend=0), self.syns
        return list(peers), [_packed(column) for column in columns], self._parts

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        peers, columns, self._parts = state
        which, ports, steps, syns = (_unpacked(*column) for column in columns)
        self.keys = [
            (*peers[peer][:2], port, *peers[peer][2:])
            for peer, port in zip(which.tolist(), ports.tolist(), strict=True)
        ]
        self.ordinals, self.syns = np.cumsum(steps).tolist(), syns.tolist()


class EpochNames:
    """name_of(key) gives the names of connections that follow each other, each with its epoch."""

    def __init__(self) -> None:
        self._epochs: dict[Key, int] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def name_of(self, key: Key) -> tuple[str, int]:
        """key: from the client to the broker."""
        both = pair(key)
        epoch = self._epochs[both] = self._epochs.get(both, 0) + 1
        client, broker = endpoint(self._text(*key[:2]), key[2]), endpoint(self._text(*key[3:5]), key[5])
        return f"{client}>{broker}#{epoch}", epoch

    def _text(self, high: int, low: int) -> str:
        known = self._texts.get((high, low))
        if known is None:
            known = self._texts[high, low] = address_text(high, low)
        return known


def _packed(values: Sequence[int] | np.ndarray[Any, Any]) -> tuple[int, bytes]:
    """Numbers from 0, the bytes of the same weight together: those pack well."""
    numbers = np.asarray(values, np.int64)
    width = next(size for size in (1, 2, 4, 8) if not len(numbers) or int(numbers.max()) < 1 << (8 * size - 1))
    return width, np.ascontiguousarray(numbers.astype(f"<i{width}").view(np.uint8).reshape(-1, width).T).tobytes()


def _unpacked(width: int, data: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(data, np.uint8).reshape(width, -1).T.copy().view(f"<i{width}").reshape(-1).astype(np.int64)
