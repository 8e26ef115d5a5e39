"""Batches that are larger than their topic takes.

Sees MESSAGE_TOO_LARGE (10) and RECORD_LIST_TOO_LARGE (18) in answers to Produce, and how many bytes the refused batch
has. max.message.bytes counts the batch as it is sent, compressed (UnifiedLog.analyzeAndValidateRecords).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.callers import topic_name
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

TOO_LARGE = (codes.MESSAGE_TOO_LARGE, codes.RECORD_LIST_TOO_LARGE)
MOST = 1000  # partitions of which the batch's size is kept


class TooLarge(Watch):
    """sizes: bytes of the largest refused batch by topic and partition."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.sizes: dict[tuple[str, int], int] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch = decoded.batch
        for row in ((batch.kind == number) & (batch.errors > 0)).nonzero()[0].tolist():
            exchange = batch[row]
            asked = exchange.request.body() if exchange.request else None
            if asked is None or exchange.response is None or not set(exchange.response.errors) & set(TOO_LARGE):
                continue
            for topic in asked["TopicData"]:
                name = topic_name(exchange, topic)
                for part in topic["PartitionData"]:
                    key = name, part["Index"]
                    if key in self.sizes or len(self.sizes) < MOST:
                        self.sizes[key] = max(self.sizes.get(key, 0), len(part["Records"] or b""))

    def findings(self) -> Iterator[Finding]:
        for trouble in self.case.troubles.of(*TOO_LARGE):
            fact = trouble.fact
            topic, partition = str(fact.about.get("topic", "?")), fact.about.get("partition", -1)
            size = self.sizes.get((topic, int(partition)))
            who = fact.client_id or f"a client at {fact.host}"
            what = (
                f"{who} was refused {counted(trouble.count, 'batch', 'batches')} for {topic}-{partition}: {fact.error}"
            )
            what += f"; the largest has {size:,} bytes" if size else ""
            advice = (
                f"max.message.bytes of {topic} (message.max.bytes of the broker) counts the batch as sent, compressed:"
            )
            advice += " raise it above that, or lower the producer's batch.size and max.request.size."
            yield Finding(
                "error",
                what,
                tuple(trouble.samples),
                advice,
                time=fact.time,
                last=trouble.last.time,
                about=trouble.about | {"api": fact.api},
                count=trouble.count,
                words=trouble.words,
                otherwise="the client split the batch and sent its records again, as Java does with several",
            )


DETECTOR = Detector(
    "batches that are larger than the topic takes",
    watch=TooLarge,
    fields="Produce: ErrorCode 10 and 18 of a partition; the length of its Records",
    source="max.message.bytes (1,048,588 by default) of the topic; UnifiedLog.analyzeAndValidateRecords",
    means="The broker did not write the batch, and will not: the records are lost unless the client splits it.",
    proof="The answer's element of the partition; the request's Records.",
    advice="Raise max.message.bytes, or make batches smaller; consumers need no setting for it.",
    bodies=(PRODUCE,),
)
