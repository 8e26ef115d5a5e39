"""Idempotent producers whose batches do not follow each other: one before was lost, or came in the wrong order.

Sees OUT_OF_ORDER_SEQUENCE_NUMBER (45) and UNKNOWN_PRODUCER_ID (59) in answers to Produce, with ProducerId and
BaseSequence of the refused batch (ProducerAppendInfo.checkSequence). The batch behind a failed one fails so too; a
client that then sends them in order again is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.callers import topic_name
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding
from kwire.counted import counted
from kwire.records.batch import SIZE, read_header
from kwire.schema import codes
from kwire.schema.keys import PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

GAPS = (codes.OUT_OF_ORDER_SEQUENCE_NUMBER, codes.UNKNOWN_PRODUCER_ID)
MOST = 1000


class Gap(Watch):
    """refused: ProducerId and BaseSequence of the first refused batch, by topic and partition."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.refused: dict[tuple[str, int], tuple[int, int]] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch = decoded.batch
        for row in ((batch.kind == number) & (batch.errors > 0)).nonzero()[0].tolist():
            exchange = batch[row]
            asked = exchange.request.body() if exchange.request else None
            if asked is None or exchange.response is None or not set(exchange.response.errors) & set(GAPS):
                continue
            for topic in asked["TopicData"]:
                name = topic_name(exchange, topic)
                for part in topic["PartitionData"]:
                    data = part["Records"] or b""
                    if len(data) >= SIZE and len(self.refused) < MOST:
                        header = read_header(data, 0)
                        self.refused.setdefault((name, part["Index"]), (header.producer_id, header.base_sequence))

    def findings(self) -> Iterator[Finding]:
        for trouble in self.case.troubles.of(*GAPS):
            fact = trouble.fact
            topic, partition = str(fact.about.get("topic", "?")), fact.about.get("partition", -1)
            who = fact.client_id or f"a client at {fact.host}"
            what = (
                f"{who} was refused {counted(trouble.count, 'batch', 'batches')} for {topic}-{partition}: {fact.error}"
            )
            if refused := self.refused.get((topic, int(partition))):
                what += f"; producer {refused[0]}, from sequence {refused[1]} on"
            what += f"; it went on at {self.case.clock(trouble.over)}" if trouble.over else ""
            advice = (
                "A batch before it did not arrive or was given up: compare what was sent with what was written. Keep "
            )
            advice += "retries on and max.in.flight.requests.per.connection at 5 or less."
            yield Finding(
                "warning" if trouble.over else "error", what, tuple(trouble.samples), advice, time=fact.time,
                last=trouble.last.time, about=trouble.about | {"api": fact.api}, count=trouble.count,
                words=trouble.words,
                otherwise="the same sequence was taken later: then nothing is lost",
            )  # fmt: skip


DETECTOR = Detector(
    "gaps in the sequences of idempotent producers",
    watch=Gap,
    fields="Produce: ErrorCode 45, 59 of a partition; ProducerId and BaseSequence of its batch",
    source="KIP-98; org.apache.kafka.storage.internals.log.ProducerAppendInfo.checkSequence",
    means="The broker has not written what comes right before the batch, and refuses it to keep the order.",
    proof="The answer's element of the partition; the batch's BaseSequence in the request.",
    advice="Look for the batch before: an error, a timeout or a lost connection.",
    bodies=(PRODUCE,),
)
