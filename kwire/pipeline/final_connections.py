"""Connections that open and end within one split and are regular throughout: their rows are final.

The stitch needs their endpoints to count epochs: a few bytes each, in columns. The parts are kept beside the split's
rows and fetched only if the same endpoints occur otherwise too, in a part, in leftover segments, or with the same SYN,
or if another connection may be a second recording of it. As this is rare, those of connections at rest are kept as
plain values, of which parts are made when they are fetched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kwire.capture.ip import address_text, endpoint
from kwire.capture.tcp import Key
from kwire.pipeline.connection_parts import ConnectionPart, State, Whose, part_of_state, state_at_rest
from kwire.pipeline.leftover_segments import pair
from kwire.pipeline.packed_numbers import packed, unpacked
from kwire.session.resting import Rest

Kept = ConnectionPart | State


class FinalConnections:
    """Columns in the order in which the connections began: keys from the client to the broker, ordinals in the split,
    and the sequence numbers of the clients' and the brokers' first bytes, 0 where there are none. twins: indexes of
    second recordings. take_parts() removes the parts, so that pickling leaves them out.
    """

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.ordinals: list[int] = []
        self.firsts: tuple[list[int], list[int]] = [], []
        self.twins: set[int] = set()
        self._parts: list[Kept] = []
        self._whose: dict[tuple[Any, ...], Whose] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, part: ConnectionPart) -> None:
        """Adds the next connection."""
        if part.twin:
            self.twins.add(len(self.keys))
        self._add(part.key, part.ordinal, [flow.first for flow in part.exit.flows], part)

    def add_at_rest(self, rest: Rest, block: int, number: int, turn: int, ordinal: int) -> None:
        """Adds the next connection, which its client opened and which ended at rest. block to ordinal: as in
        ConnectionPart."""
        info = rest.info
        said = info.identity.said, tuple(info.clients.items())
        whose = self._whose.setdefault(said, (*said, info.login))
        if whose[2] != info.login:
            whose = (*said, info.login)
        state = state_at_rest(rest, block, number, turn, ordinal, whose)
        self._add(info.tcp.key, ordinal, [stream.first for stream in info.tcp.streams], state)

    def _add(self, key: Key, ordinal: int, begins: list[int | None], kept: Kept) -> None:
        self.keys.append(key)
        self.ordinals.append(ordinal)
        for firsts, first in zip(self.firsts, begins, strict=True):
            firsts.append(first or 0)
        self._parts.append(kept)

    def take_parts(self) -> list[Kept]:
        """Removes and returns all parts, for parts_between."""
        parts, self._parts = self._parts, []
        return parts

    def parts(self, pairs: set[Key]) -> list[ConnectionPart]:
        """The parts of connections between these endpoints, unless they were taken."""
        return parts_between(self._parts, pairs)

    def __getstate__(self) -> tuple[Any, ...]:
        peers: dict[tuple[int, ...], int] = {}
        which = [peers.setdefault((*key[:2], *key[3:]), len(peers)) for key in self.keys]
        columns = which, [key[2] for key in self.keys], np.diff(self.ordinals, prepend=0), *self.firsts
        return list(peers), [packed(column) for column in columns], self._parts, self.twins

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        peers, columns, self._parts, self.twins = state
        self._whose = {}
        which, ports, steps, *firsts = (unpacked(*column) for column in columns)
        self.keys = [
            (*peers[peer][:2], port, *peers[peer][2:])
            for peer, port in zip(which.tolist(), ports.tolist(), strict=True)
        ]
        self.ordinals, self.firsts = np.cumsum(steps).tolist(), (firsts[0].tolist(), firsts[1].tolist())


def parts_between(kept: Iterable[Kept], pairs: set[Key]) -> list[ConnectionPart]:
    """The parts of connections between these endpoints."""
    return [
        part if isinstance(part, ConnectionPart) else part_of_state(part)
        for part in kept
        if pair(part.key if isinstance(part, ConnectionPart) else part[0]) in pairs
    ]


class EpochNames:
    """name_of(key) numbers connections between the same endpoints by epoch, in the order of calls."""

    def __init__(self) -> None:
        self._epochs: dict[Key, int] = {}

    def name_of(self, key: Key) -> tuple[str, int]:
        """The connection's name and epoch. key: from the client to the broker."""
        both = pair(key)
        epoch = self._epochs[both] = self._epochs.get(both, 0) + 1
        client, broker = endpoint(address_text(*key[:2]), key[2]), endpoint(address_text(*key[3:5]), key[5])
        return f"{client}>{broker}#{epoch}", epoch
