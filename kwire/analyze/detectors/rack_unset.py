"""Consumers that do not say in which rack they are, where brokers are in several.

Sees Rack of Metadata's brokers and RackId of Fetch (from version 11 on). Without it a consumer reads from the leader,
wherever that is (KIP-392).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, callers, grouped, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.fetched import fetched
from kwire.analyze.findings import Finding, Reference
from kwire.analyze.participants import CONSUMER
from kwire.counted import counted
from kwire.schema.keys import FETCH, METADATA

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange

MOST = 10_000


class RackUnset(Watch):
    """racks: by the address of a broker that told them; readers: who fetches without one: how often, first and last."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.racks: dict[str, set[str]] = {}
        self.readers: dict[tuple[str, str], tuple[Caller, list[int], Reference]] = {}

    def exchange(self, exchange: Exchange) -> None:
        broker = exchange.connection.ends[1]
        if broker in self.racks or exchange.response is None:
            return
        body = exchange.response.body()
        if body is not None:
            self.racks[broker] = {node["Rack"] for node in body.get("Brokers") or () if node.get("Rack")}

    def columns(self, decoded: Decoded, number: int) -> None:
        flat = fetched(decoded, number)
        rows = flat.rows[(flat.racks == 0) & (flat.top["ReplicaId"] < 0)]
        people, which = callers(decoded.batch)
        for who, places in grouped(which[rows]):
            caller, times = people[who], decoded.batch.request.time[rows[places]]
            known = self.readers.get(caller.client)
            if known is None:
                if len(self.readers) >= MOST:
                    continue
                proof = request_of(decoded.batch, int(rows[places[np.argmin(times)]]))
                known = self.readers[caller.client] = caller, [0, int(times.min()), 0], proof
            known[1][0] += len(places)
            known[1][2] = max(known[1][2], int(times.max()))

    def findings(self) -> Iterator[Finding]:
        for caller, (count, first, last), proof in self.readers.values():
            racks = self.racks.get(caller.broker, set())
            if len(racks) < 2 or self.case.participants.role_of(*caller.client) != CONSUMER:
                continue
            what = f"{caller.label} does not say in which rack it is, and the brokers are in "
            what += f"{counted(len(racks), 'rack')} ({', '.join(sorted(racks)[:4])}): it reads from leaders wherever "
            what += "they are"
            advice = (
                "Set client.rack of the consumer, and replica.selector.class=RackAwareReplicaSelector on the brokers."
            )
            yield Finding(
                "note",
                what,
                (proof,),
                advice,
                time=first,
                last=last,
                count=count,
                about=caller.about | {"api": "Fetch"},
                otherwise="traffic between racks costs nothing",
            )


DETECTOR = Detector(
    "consumers without a rack among brokers in several",
    watch=RackUnset,
    fields="Metadata: Rack of Brokers; Fetch: RackId (11+)",
    source="KIP-392; client.rack, replica.selector.class",
    means="Reads cross racks (zones), which costs money and time, where a replica nearby could serve them.",
    proof="Fetch requests with an empty RackId; a Metadata answer with brokers in several racks.",
    advice="Set client.rack.",
    exchanges=(METADATA,),
    bodies=(FETCH,),
)
