"""Transactions that their producer does not end in time.

Sees TransactionalId of Produce, AddPartitionsToTxn and AddOffsetsToTxn, which begin one, EndTxn and InitProducerId,
which end it, and TransactionTimeoutMs of InitProducerId. After that time the coordinator aborts it and raises the epoch
(TransactionCoordinator.abortTimedOutTransactions), so that the producer is fenced when it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, lasted
from kwire.analyze.transactions import DEFAULT_TIMEOUT, KEYS, MS, SeenTransaction, TransactionHistory
from kwire.counted import counted
from kwire.schema.keys import PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange


class Open(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.transactions = TransactionHistory()

    def exchange(self, exchange: Exchange) -> None:
        self.transactions.exchange(exchange)

    def columns(self, decoded: Decoded, number: int) -> None:
        self.transactions.columns(decoded, number)

    def findings(self) -> Iterator[Finding]:
        for one in self.transactions.over(self.case.end):
            seen = one.ident in self.transactions.timeouts or one.how
            if one.ended is None and (not seen or self.case.coverage.incomplete):
                continue  # its coordinator may be a broker whose connections the capture lacks
            yield self._finding(one)

    def _finding(self, one: SeenTransaction) -> Finding:
        clock = self.case.clock
        who = one.client_id or f"a producer at {one.host}"
        timeout = one.timeout or DEFAULT_TIMEOUT
        what = f"{who} (transactional id {one.ident}) began a transaction at {clock(one.began)}"
        if one.ended is None:
            what += f" and has not ended it at the capture's end, {lasted(self.case.end - one.began)} later"
        else:
            what += f" and ended it with {one.how} {lasted(one.ended - one.began)} later"
        what += f"; its timeout is {lasted(timeout * MS)}"
        what += "" if one.timeout else " (by default: the capture does not say)"
        what += f"; it had written to {counted(len(one.partitions), 'partition')}" if one.partitions else ""
        what += f", last at {clock(one.last)}" if one.last > one.began else ""
        advice = (
            "The coordinator aborts it by itself, within 10 s of the timeout; until then readers of committed records "
        )
        advice += "stand still at it. Look at why the producer said no more: it died, or is stuck between two sends."
        proofs = [one.proof, one.last_proof, one.end_proof]
        about: dict[str, str | int] = {"transactional_id": one.ident, "address": one.host}
        if one.client_id:
            about["client_id"] = one.client_id
        if len(one.partitions) == 1:
            ((topic, partition),) = one.partitions
            about |= {"topic": topic, "partition": partition}
        return Finding(
            "warning", what, tuple(dict.fromkeys(proof for proof in proofs if proof)), advice, time=one.began,
            last=self.case.end if one.ended is None else one.ended, about=about,
            otherwise="an EndTxn went to a coordinator whose connections the capture lacks",
        )  # fmt: skip


DETECTOR = Detector(
    "transactions that are not ended in time",
    watch=Open,
    fields="TransactionalId of Produce, AddPartitionsToTxn, EndTxn, InitProducerId; TransactionTimeoutMs",
    source="transaction.timeout.ms=60000; KIP-98, KIP-890; TransactionCoordinator",
    means="The transaction was open for longer than its timeout: the coordinator aborts it, what was written is void.",
    proof="The request that began it, the last one in it, and the one that ended it, if any.",
    advice="Find out what the producer does meanwhile; raise transaction.timeout.ms only if that work is meant.",
    exchanges=KEYS,
    bodies=(PRODUCE,),
    needs=("clock",),
)
