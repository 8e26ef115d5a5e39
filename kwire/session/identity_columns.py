"""Reads client ids, software and logins from a batch into the ConnectionInfos."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kwire.schema.keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwire.session.batch import ExchangeBatch
from kwire.session.sasl import IDENTIFYING
from kwire.wire.columns import Ints, repeat

Software = dict[tuple[int, bytes], tuple[str | None, str | None]]  # by ApiVersions version and body: name, version


def learn(batch: ExchangeBatch, software: Software) -> None:
    """Fills in each connection's first client id, software and login, and batch.guarded. software: a cache across
    batches."""
    named = np.flatnonzero(batch.client_length >= 0)
    numbers, first = np.unique(batch.connection[named], return_index=True)
    starts, lengths = batch.client_start[named[first]], batch.client_length[named[first]]
    for number, low, high in _lists(numbers, starts, starts + lengths):
        clients = batch.connections[number].clients
        if not clients:
            name = batch.buffer[low:high]
            clients[name] = name.decode("utf-8", "surrogateescape")
    keys = np.array([-1 if kind is None else kind.key for kind in batch.kinds], np.int64)[batch.kind]
    rows = np.flatnonzero(np.isin(keys, IDENTIFYING))
    places = _lists(rows, batch.connection[rows], batch.kind[rows], batch.request.body[rows], batch.request.end[rows])
    for row, number, kind, low, high in places:
        _identify(batch, row, number, kind, batch.buffer[low:high], software)
    _guard(batch, keys)


def _guard(batch: ExchangeBatch, keys: Ints) -> None:
    """Follows the logins, as Login.reads does for whole requests. On most connections there is none: their first
    request that is not part of a login decides."""
    logins = np.isin(keys, (SASL_HANDSHAKE, SASL_AUTHENTICATE))
    numbers, first = np.unique(batch.connection, return_index=True)
    ends = np.append(first[1:], len(batch))[: len(first)]
    others = np.flatnonzero(~np.isin(keys, IDENTIFYING))
    passing = np.minimum(np.append(others, len(batch))[np.searchsorted(others, first)], ends)
    begun = np.add.reduceat(logins, first) if len(first) else first
    start, size = batch.request.start[ends - 1] + 12, np.maximum(batch.client_length[ends - 1], 0)
    guarded: list[bool] = []  # of each connection: before that request, and from there on
    followed: list[tuple[int, list[bool]]] = []
    columns = (numbers, first, ends, passing, begun, start, start + 2 + size)
    for number, low, high, passed, login, client, client_end in _lists(*columns):
        state = batch.connections[number].login
        state.names(batch.buffer[client:client_end])
        before = state.guarded
        if login or state.active:
            followed.append((low, [state.follow(key) for key in keys[low:high].tolist()]))
        elif passed < high:
            state.passed()
        guarded += before, state.guarded
    batch.guarded = repeat(np.array(guarded, bool), np.stack((passing - first, ends - passing), axis=1).reshape(-1))
    for low, values in followed:
        batch.guarded[low : low + len(values)] = values


def _identify(batch: ExchangeBatch, row: int, number: int, which: int, body: bytes, software: Software) -> None:
    """Reads a request of IDENTIFYING; equal ApiVersions bodies are decoded once. number, which: indexes of its
    connection and kind."""
    identity, kind = batch.connections[number].identity, batch.kinds[which]
    assert kind is not None
    known = software.get((kind.version, body)) if kind.key == API_VERSIONS else None
    if known is None:
        request = batch[row].request
        assert request is not None
        identity.request(request.body())
        if kind.key == API_VERSIONS and len(software) < 1000:
            software[kind.version, body] = identity.software, identity.software_version
    elif known[0] is not None:
        identity.software, identity.software_version = known


def _lists(*columns: Ints) -> Iterator[tuple[int, ...]]:
    """The rows of columns of the same length."""
    return zip(*(column.tolist() for column in columns), strict=True)
