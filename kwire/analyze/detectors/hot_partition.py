"""Topics of which one partition gets most of the bytes.

Sees the bytes of records that Produce requests bring to each partition; how many partitions there are is what Metadata
answers say, so that those that get nothing count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import callers, grouped, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference
from kwire.analyze.produced import produced
from kwire.schema.keys import PRODUCE
from kwire.wire.columns import tally

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

MOST = 10_000  # topics
MOST_PARTITIONS = 10_000  # of a topic


@dataclass(slots=True)
class TopicTraffic:
    """Bytes by partition; clients: bytes by client; proofs: of each partition the first request."""

    bytes: Counter[int] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    proofs: dict[int, Reference] = field(default_factory=dict)
    first: int = 0
    last: int = 0
    batches: Counter[int] = field(default_factory=Counter)


class Hot(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.topics: dict[str, TopicTraffic] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch, made = decoded.batch, produced(decoded, number)
        if not len(made):
            return
        people, which = callers(batch)
        for key, places in grouped(made.topic):
            name = made.names[key]
            if name not in self.topics and len(self.topics) >= MOST:
                continue
            topic = self.topics.setdefault(name, TopicTraffic())
            times = batch.request.time[made.row[places]]
            topic.first = min(topic.first or int(times.min()), int(times.min()))
            topic.last = max(topic.last, int(times.max()))
            partitions, at = np.unique(made.partition[places], return_inverse=True)
            totals, counts = tally(at, made.size[places]).astype(np.int64), tally(at)
            for partition, total, count in zip(partitions.tolist(), totals.tolist(), counts.tolist(), strict=True):
                if partition in topic.bytes or len(topic.bytes) < MOST_PARTITIONS:
                    topic.bytes[partition] += total
                    topic.batches[partition] += count
                    if partition not in topic.proofs and len(topic.proofs) < 64:
                        row = int(made.row[places[at == np.searchsorted(partitions, partition)][0]])
                        topic.proofs[partition] = request_of(batch, row)
            for who, rows in grouped(which[made.row[places]]):
                if people[who].label in topic.clients or len(topic.clients) < 1000:
                    topic.clients[people[who].label] += int(made.size[places[rows]].sum())

    def findings(self) -> Iterator[Finding]:
        known: dict[str, set[int]] = {}
        for _, name, partition in self.case.cluster.leaders:
            if name in self.topics:
                known.setdefault(name, set()).add(partition)
        for name, topic in self.topics.items():
            partitions = known.get(name, set()) | set(topic.bytes)
            total = sum(topic.bytes.values())
            if len(partitions) < self.limit("partitions") or total < self.limit("bytes"):
                continue
            hot, most = topic.bytes.most_common(1)[0]
            usual = median(topic.bytes.get(partition, 0) for partition in partitions)
            if most < self.limit("times") * max(usual, 1):
                continue
            what = (
                f"{name}-{hot} gets {most / total:.0%} of what is written to the topic's {len(partitions)} partitions: "
            )
            what += f"{most / 1e6:.1f} MB, the median partition {usual / 1e6:.2f} MB"
            writer, wrote = topic.clients.most_common(1)[0]
            what += f"; most of it from {writer}" if wrote > total / 2 else ""
            advice = (
                "One key (or a partitioner that knows few) has most of the records: make the key finer, or none where "
            )
            advice += "no order is needed. More partitions do not help."
            about: dict[str, str | int] = {"topic": name, "partition": hot, "api": "Produce"}
            if len(topic.clients) == 1:
                about["client_id"] = writer
            proof = topic.proofs.get(hot)
            yield Finding(
                "warning", what, (proof,) if proof else (), advice, time=topic.first, last=topic.last, about=about,
                count=topic.batches[hot],
                otherwise="other brokers of the cluster, which are not in the capture, get the other partitions' bytes",
            )  # fmt: skip


DETECTOR = Detector(
    "partitions that get most of their topic's bytes",
    watch=Hot,
    fields="Produce: bytes of Records by partition; Metadata: partitions of the topic",
    source="partitioner and keys are the client's; KIP-794 for records without a key",
    means="One partition, its leader and the one consumer that reads it carry what several should share.",
    proof="The sum of bytes by partition; the first request to the one that stands out.",
    advice="Choose keys that spread.",
    thresholds={"times": 5, "partitions": 3, "bytes": 500_000},
    bodies=(PRODUCE,),
    needs=("requests",),
)
