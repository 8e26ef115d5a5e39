"""Reads client ids, software and logins from a batch into the ConnectionInfos."""

from __future__ import annotations

import numpy as np

from kwire.schema.keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwire.session.batch import ExchangeBatch
from kwire.session.sasl import IDENTIFYING
from kwire.wire.columns import Ints

Software = dict[tuple[int, bytes], tuple[str | None, str | None]]  # by ApiVersions version and body: name, version


def learn(batch: ExchangeBatch, software: Software) -> None:
    """Fills in each connection's first client id, software and login, and batch.guarded. software: a cache across
    batches."""
    named = np.flatnonzero(batch.client_length >= 0)
    numbers, first = np.unique(batch.connection[named], return_index=True)
    for number, row in zip(numbers.tolist(), named[first].tolist(), strict=True):
        clients = batch.connections[number].clients
        if not clients:
            start = int(batch.client_start[row])
            name = batch.buffer[start : start + int(batch.client_length[row])]
            clients[name] = name.decode("utf-8", "surrogateescape")
    keys = np.array([-1 if kind is None else kind.key for kind in batch.kinds], np.int64)[batch.kind]
    for row in np.flatnonzero(np.isin(keys, IDENTIFYING)).tolist():
        _identify(batch, row, software)
    _guard(batch, keys)


def _guard(batch: ExchangeBatch, keys: Ints) -> None:
    """Follows the logins, as Login.reads does for whole requests. On most connections there is none: their first
    request that is not part of a login decides."""
    logins = np.isin(keys, (SASL_HANDSHAKE, SASL_AUTHENTICATE))
    numbers, first = np.unique(batch.connection, return_index=True)
    ends = np.append(first[1:], len(batch))[: len(first)]
    others = np.flatnonzero(~np.isin(keys, IDENTIFYING))
    passing = np.append(others, len(batch))[np.searchsorted(others, first)]
    begun = np.add.reduceat(logins, first) if len(first) else first
    columns = (numbers, first, ends, np.minimum(passing, ends), begun)
    for number, low, high, passed, login in zip(*(column.tolist() for column in columns), strict=True):
        state = batch.connections[number].login
        start, size = int(batch.request.start[high - 1]), int(batch.client_length[high - 1])
        state.names(batch.buffer[start + 12 : start + 14 + max(size, 0)])
        if not login and not state.active:
            batch.guarded[low:high] = state.guarded
            if passed < high:
                state.passed()
                batch.guarded[passed:high] = state.guarded
            continue
        for row in range(low, high):
            batch.guarded[row] = state.follow(int(keys[row]))


def _identify(batch: ExchangeBatch, row: int, software: Software) -> None:
    """Reads a request of IDENTIFYING; equal ApiVersions bodies are decoded once."""
    identity, kind = batch.connections[batch.connection[row]].identity, batch.kinds[batch.kind[row]]
    assert kind is not None
    if kind.key != API_VERSIONS:
        request = batch[row].request
        assert request is not None
        identity.request(request.body())
        return
    body = batch.buffer[batch.request.body[row] : batch.request.start[row] + batch.request.have[row]]
    known = software.get((kind.version, body))
    if known is None:
        request = batch[row].request
        assert request is not None
        identity.request(request.body())
        if len(software) < 1000:
            software[kind.version, body] = identity.software, identity.software_version
    elif known[0] is not None:
        identity.software, identity.software_version = known
