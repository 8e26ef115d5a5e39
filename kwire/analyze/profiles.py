"""What clients look like from the wire: their versions and settings, what they did and how often. Compared by
changes.py.

A client's settings do not change while it lives, so that the first requests of each kind on a connection are read whole
and the others only counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.client_settings import read_settings
from kwire.analyze.measures import Measure, Measured, merge
from kwire.analyze.profile import Profile
from kwire.analyze.throttling import Mutes
from kwire.analyze.tls import session_of
from kwire.schema import keys
from kwire.schema.registry import builtin

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.wire.columns import Ints

MOST_CLIENTS = 10_000
SAMPLED = 300  # exchanges of a kind on a connection that are read whole
MOST_GAPS = 5_000  # between requests of a client
PERIODIC = {  # requests that a client repeats by a clock of its own, and what sets it
    keys.HEARTBEAT: "heartbeat.interval.ms", keys.OFFSET_COMMIT: "auto.commit.interval.ms",
    keys.METADATA: "metadata.max.age.ms",
}  # fmt: skip


class Profiles:
    """add(batch) in the order of time collects; clients: by client id; advertised: of each API the versions that
    brokers take. start and end of all exchanges, ns."""

    def __init__(self) -> None:
        self.clients: dict[str, Profile] = {}
        self.advertised: dict[str, tuple[int, int]] = {}
        self.start: int | None = None
        self.end = 0
        self._sampled: Counter[tuple[str, int]] = Counter()
        self._last: dict[tuple[str, str, str], int] = {}
        self._mutes = Mutes()

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        rows = np.flatnonzero(batch.request.there & ~batch.token)
        if not len(rows):
            return
        asked = batch.request.time[rows]
        self.start = int(asked.min()) if self.start is None else min(self.start, int(asked.min()))
        self.end = max(self.end, int(asked.max()))
        names, client = batch.client_ids()
        pairs, which = np.unique(client[rows] * len(batch.kinds) + batch.kind[rows], return_inverse=True)
        measured = dict(Measured(batch, self._mutes).of(rows, which, list(map(str, range(len(pairs))))))
        for number, pair in enumerate(pairs.tolist()):
            name, kind = names[pair // len(batch.kinds)], batch.kinds[pair % len(batch.kinds)]
            profile = self._of(name or "")
            if kind is None or profile is None:
                continue
            mine = rows[which == number]
            self._count(profile, kind.api, kind.version, measured[str(number)], batch.request.time[mine])
            self._read(profile, kind.key, batch, mine)

    def _of(self, name: str) -> Profile | None:
        if name not in self.clients and len(self.clients) < MOST_CLIENTS:
            self.clients[name] = Profile(name)
        return self.clients.get(name)

    def _count(self, profile: Profile, api: str, version: int, measure: Measure, times: Ints) -> None:
        first, last = int(times.min()), int(times.max())
        profile.start = min(profile.start or first, first)
        profile.end = max(profile.end, last)
        profile.versions.setdefault(api, set()).add(version)
        merge(profile.apis.setdefault(api, Measure()), measure)

    def _read(self, profile: Profile, key: int, batch: ExchangeBatch, rows: Ints) -> None:
        for connection in np.unique(batch.connection[rows]).tolist():
            info = batch.connections[connection]
            mine = rows[batch.connection[rows] == connection]
            self._software(profile, info)
            if key in PERIODIC:
                self._gaps(profile, PERIODIC[key], info, batch.request.time[mine])
            where = info.capture + info.name, key
            left = SAMPLED - self._sampled[where]
            for row in mine[: max(left, 0)].tolist():
                read_settings(profile, batch[row])
                if key == keys.API_VERSIONS:
                    self._advertise(batch, row)
            self._sampled[where] += len(mine)

    def _software(self, profile: Profile, info: ConnectionInfo) -> None:
        said = info.identity
        if said.software:
            profile.software[f"{said.software} {said.software_version or ''}".strip()] += 1
        profile.note("sasl.mechanism", said.mechanism or "none")
        profile.note("security.protocol", "TLS" if session_of(info) is not None else "plain")

    def _gaps(self, profile: Profile, period: str, info: ConnectionInfo, times: Ints) -> None:
        where = info.capture + info.name, period, profile.client_id
        known, found = self._last.get(where), profile.gaps.setdefault(period, [])
        ordered = np.sort(times)
        found += np.diff(ordered if known is None else np.append(known, ordered)).tolist()
        del found[MOST_GAPS:]
        self._last[where] = int(ordered[-1])

    def _advertise(self, batch: ExchangeBatch, row: int) -> None:
        answer = batch[row].answer() or {}
        for one in answer.get("ApiKeys") or ():
            name = builtin().name_of(one["ApiKey"]) or f"API key {one['ApiKey']}"
            self.advertised[name] = one["MinVersion"], one["MaxVersion"]
