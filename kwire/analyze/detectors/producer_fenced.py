"""Producers that were replaced by another one with their transactional id.

Sees INVALID_PRODUCER_EPOCH (47), PRODUCER_FENCED (90) and TRANSACTION_COORDINATOR_FENCED (52) in any answer, and who
else asked InitProducerId for the same TransactionalId, which raises its epoch (KIP-360, KIP-588;
TransactionCoordinator)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, Reference
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import INIT_PRODUCER_ID

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.exchange import Exchange

FENCED = (codes.INVALID_PRODUCER_EPOCH, codes.PRODUCER_FENCED, codes.TRANSACTION_COORDINATOR_FENCED)
MOST = 10_000


class FencedProducers(Watch):
    """begun: who began as which transactional id: client, host and the answer; ids: which id a client had last."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.begun: dict[str, list[tuple[str, str, Reference]]] = {}
        self.ids: dict[tuple[str, str], str] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        asked = request.body() if request else None
        if request is None or response is None or response.errors or not (asked or {}).get("TransactionalId"):
            return
        ident = str((asked or {})["TransactionalId"])
        client, host = request.client_id or "", exchange.connection.host
        if len(self.begun) < MOST or ident in self.begun:
            known = self.begun.setdefault(ident, [])
            if len(known) < 100:
                known.append((client, host, Reference.of(response)))
            self.ids[client, host] = ident

    def findings(self) -> Iterator[Finding]:
        alike: dict[tuple[str, str, str], list[Trouble]] = {}
        for trouble in self.case.troubles.of(*FENCED):
            fact = trouble.fact
            ident = str(fact.about.get("transactional_id") or self.ids.get((fact.client_id, fact.host), ""))
            alike.setdefault((ident, fact.client_id, fact.host), []).append(trouble)
        for (ident, client, host), troubles in alike.items():
            yield self._finding(ident, client, host, troubles)

    def _finding(self, ident: str, client: str, host: str, troubles: list[Trouble]) -> Finding:
        first = min((one.fact for one in troubles), key=lambda fact: fact.time)
        clock, count = self.case.clock, sum(one.count for one in troubles)
        usurper = next(
            (
                one
                for one in reversed(self.begun.get(ident, ()))
                if one[2].time < first.time and one[:2] != (client, host)
            ),
            None,
        )
        what = f"{client or f'a producer at {host}'}"
        what += f" (transactional id {ident})" if ident else ""
        what += f" was fenced: {first.error}, {counted(count, 'time')}"
        proofs = [proof for one in troubles for proof in one.samples]
        if usurper is not None:
            name, address, proof = usurper
            what += f"; {name or 'another producer'} at {address} began with the same id at {clock(proof.time)}"
            proofs.insert(0, proof)
            advice = (
                "Give each process a transactional.id of its own; after a failover the older process should be gone."
            )
        else:
            advice = "Another process has its transactional.id, or its transaction timed out and was aborted by the "
            advice += "coordinator (transaction.timeout.ms): see open-transaction."
        about = {"client_id": client, "address": host, "transactional_id": ident, "api": first.api}
        return Finding(
            "error", what, tuple(dict.fromkeys(proofs))[:8], advice, time=first.time,
            last=max(one.last.time for one in troubles), about={name: value for name, value in about.items() if value},
            count=count, words=troubles[0].words,
            otherwise="it is the older process of a failover, which was to go anyway",
        )  # fmt: skip


DETECTOR = Detector(
    "transactional producers that were replaced",
    watch=FencedProducers,
    fields="ErrorCode 47, 52, 90 of any answer; InitProducerId: TransactionalId",
    source="KIP-98, KIP-360, KIP-588; kafka.coordinator.transaction.TransactionCoordinator",
    means="The id's epoch was raised by somebody else: what the older producer still sends is refused, for good.",
    proof="The refused answer; the InitProducerId of the other one before it.",
    advice="One transactional.id for one running process.",
    exchanges=(INIT_PRODUCER_ID,),
)
