"""Clients that a quota slows down: who, with which APIs, how often and for how long, and by which kind of quota.

Sees ThrottleTimeMs above zero in any answer, and THROTTLING_QUOTA_EXCEEDED (89) of what makes and deletes topics. The
kinds of quotas are those of org.apache.kafka.server.config.QuotaConfig: producer_byte_rate for Produce,
consumer_byte_rate for Fetch, controller_mutation_rate for topics, request_percentage for all else (KIP-13, 124, 599).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, about, lasted
from kwire.analyze.tally import Tallies
from kwire.analyze.throttling import proof_of, throttles
from kwire.counted import counted
from kwire.schema import keys

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch

QUOTAS = {
    keys.PRODUCE: "producer_byte_rate, or request_percentage", keys.FETCH: "consumer_byte_rate, or request_percentage",
    keys.CREATE_TOPICS: "controller_mutation_rate", keys.DELETE_TOPICS: "controller_mutation_rate",
    keys.CREATE_PARTITIONS: "controller_mutation_rate",
}  # fmt: skip
MILLISECOND = 1_000_000
LEAST_SPAN = 10_000 * MILLISECOND  # over which a share of time is reckoned


class ThrottledClients(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.tallies: Tallies[tuple[str, str, str]] = Tallies()
        self.keys: dict[str, int] = {}

    def batch(self, batch: ExchangeBatch) -> None:
        for found in throttles(batch):
            kind = batch.kinds[batch.kind[found.row]]
            assert kind is not None
            host = batch.connections[batch.connection[found.row]].host
            tally = self.tallies.of((batch.client_id(found.row) or "", host, kind.api))
            self.keys[kind.api] = kind.key
            if tally is not None:
                few = tally.count < len(tally.samples) + 1 or found.ms > tally.most
                time = int(batch.response.time[found.row])
                tally.add(proof_of(batch, found.row) if few else None, time, found.ms)

    def findings(self) -> Iterator[Finding]:
        for (client, host, api), tally in self.tallies.known.items():
            if tally.count < self.limit("least"):
                continue
            who = client or f"a client at {host}"
            span = max(tally.last - tally.first, LEAST_SPAN)
            share = min(tally.total * MILLISECOND / span, 1.0)
            total = lasted(tally.total * MILLISECOND)
            what = f"{who} is throttled in {counted(tally.count, 'answer')} to {api}, for {total} in all and up to "
            what += f"{tally.most:,} ms"
            heavy = tally.total >= self.limit("total_ms") or share > self.limit("share")
            quota = QUOTAS.get(self.keys[api], "request_percentage")
            principal = (known := self.case.participants.known.get((client, host))) and known.principal
            whose = f"user {principal} or client id {client}" if principal else f"client id {client or '(default)'}"
            advice = f"The quota {quota} of {whose}: kafka-configs --describe --entity-type clients (users). Raise it, "
            yield Finding(
                "warning" if heavy else "note", what, tuple(tally.samples), f"{advice}or send less.", time=tally.first,
                last=tally.last, count=tally.count, otherwise="others share the client id and its quota",
                about=about(client_id=client, address=host, api=api),
            )  # fmt: skip


DETECTOR = Detector(
    "clients that a quota slows down",
    watch=ThrottledClients,
    fields="ThrottleTimeMs of all answers",
    source="KIP-13, KIP-124, KIP-219, KIP-599; org.apache.kafka.server.config.QuotaConfig",
    means="The broker holds the client to a quota: it answers, and then does not listen for that long.",
    proof="Answers with ThrottleTimeMs above zero.",
    advice="See whose quota it is and whether it is meant; its waiting is not the broker's slowness.",
    thresholds={"least": 1, "total_ms": 1000, "share": 0.1},
    batches=True,
)
