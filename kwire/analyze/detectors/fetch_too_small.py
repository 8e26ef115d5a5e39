"""Consumers that fetch a few kilobytes at a time while much more waits for them.

Sees PartitionMaxBytes and MaxBytes of Fetch requests, the bytes of records in the answers, and HighWatermark: answers
that are as full as was allowed, one after the other, of a client that is behind. A limit below one batch gives one
batch at a time (KIP-74)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, Pace, answer_of, callers, grouped
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.fetched import fetched
from kwire.analyze.findings import Finding, Reference
from kwire.counted import counted
from kwire.schema.keys import FETCH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

MOST = 10_000
STRETCH = 2_000_000_000
FULL = 0.9  # of what was allowed


@dataclass(slots=True)
class FullFetches:
    """Of one client, topic and partition: full answers, the bytes in them, the limit."""

    caller: Caller
    topic: str
    partition: int
    limit: int
    bytes: int = 0
    behind: int = 0  # records that were still to come, the most
    pace: Pace = field(default_factory=lambda: Pace(STRETCH))
    proofs: list[Reference] = field(default_factory=list)


class TooSmall(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.readers: dict[tuple[str, str, str, int], FullFetches] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch, flat = decoded.batch, fetched(decoded, number)
        asked, answered = flat.asked, flat.answered
        small = asked.values["PartitionMaxBytes"] <= self.limit("bytes")
        if not len(asked) or not len(answered) or not small.any():
            return
        names = {name: at for at, name in enumerate(answered.names)}
        topics = np.array([names.get(name, -1) for name in asked.names] or [-1], np.int64)
        wide = max(int(asked.values["Partition"].max()), int(answered.values["PartitionIndex"].max())) + 1
        size = len(answered.names) * wide
        left = asked.row * size + topics[asked.topic] * wide + asked.values["Partition"]
        right = answered.row * size + answered.topic * wide + answered.values["PartitionIndex"]
        known, first, second = np.intersect1d(
            left[small & (topics[asked.topic] >= 0)], right, assume_unique=False, return_indices=True
        )
        if not len(known):
            return
        first = np.flatnonzero(small & (topics[asked.topic] >= 0))[first]
        allowed, got = asked.values["PartitionMaxBytes"][first], answered.size[second]
        behind = answered.values["HighWatermark"][second] - asked.values["FetchOffset"][first]
        full = np.flatnonzero((got >= FULL * allowed) & (behind > self.limit("behind")))
        people, which = callers(batch)
        rows = asked.row[first]
        for key, places in grouped(which[rows[full]] * size + right[second[full]] % size):
            who, rest = divmod(key, size)
            topic, partition = divmod(rest, wide)
            caller, mine = people[who], full[places]
            ident = (*caller.client, answered.names[topic], partition)
            reader = self.readers.get(ident)
            if reader is None:
                if len(self.readers) >= MOST:
                    continue
                reader = self.readers[ident] = FullFetches(caller, ident[2], partition, int(allowed[mine].min()))
            reader.bytes += int(got[mine].sum())
            reader.behind = max(reader.behind, int(behind[mine].max()))
            reader.pace.add(batch.response.time[rows[mine]])
            if len(reader.proofs) < 3:
                reader.proofs += [answer_of(batch, row) for row in rows[mine][: 3 - len(reader.proofs)].tolist()]

    def findings(self) -> Iterator[Finding]:
        for reader in self.readers.values():
            pace = reader.pace
            if pace.count < self.limit("least") or pace.per_second < self.limit("per_second"):
                continue
            what = (
                f"{reader.caller.label} reads {reader.topic}-{reader.partition} in {counted(pace.count, 'answer')} of "
            )
            what += f"{reader.bytes // pace.count:,} bytes, {pace.per_second:.0f} a second, while up to "
            what += f"{counted(reader.behind, 'record')} wait: it allows {reader.limit:,} bytes a partition"
            advice = "Raise max.partition.fetch.bytes (1,048,576 by default) and fetch.max.bytes; fetch.min.bytes lets "
            advice += "brokers wait for more."
            yield Finding(
                "warning", what, tuple(reader.proofs), advice, time=pace.first or 0, last=pace.last, count=pace.count,
                about=reader.caller.about | {"topic": reader.topic, "partition": reader.partition, "api": "Fetch"},
                otherwise="the client's memory is what the limit is for",
            )  # fmt: skip


DETECTOR = Detector(
    "consumers that fetch too little at a time",
    watch=TooSmall,
    fields="Fetch: PartitionMaxBytes, FetchOffset; Records and HighWatermark of the answers",
    source="KIP-74; max.partition.fetch.bytes=1048576, fetch.max.bytes=52428800",
    means="The consumer is behind, and asks for so little that it gets a batch or two with each round trip.",
    proof="Answers as full as the request allows, one after the other, with HighWatermark far ahead.",
    advice="Raise max.partition.fetch.bytes.",
    thresholds={"bytes": 65_536, "least": 20, "per_second": 10, "behind": 10},
    bodies=(FETCH,),
    needs=("clock",),
)
