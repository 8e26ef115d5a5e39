"""Consumers that are told to read from another replica and go on asking the leader.

Sees PreferredReadReplica of Fetch answers (from version 11 on): a client that follows asks the leader again only when
the replica fails or its metadata ages (KIP-392), so that the same hint for the same partition, again and again, is one
that it does not follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, answer_of, callers
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.fetched import fetched
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.counted import counted
from kwire.schema.keys import FETCH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

MOST = 10_000


@dataclass(slots=True)
class Hints:
    """Of one client, broker, topic and partition."""

    caller: Caller
    topic: str
    partition: int
    replica: int
    count: int = 0
    first: int = 0
    last: int = 0
    proofs: list[Reference] = field(default_factory=list)


class IgnoredHints(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.hints: dict[tuple[Caller, str, int], Hints] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        flat = fetched(decoded, number).answered
        hinted = np.flatnonzero(flat.values["PreferredReadReplica"] >= 0)
        if not len(hinted):
            return
        batch = decoded.batch
        people, which = callers(batch)
        for place in hinted.tolist():
            row = int(flat.row[place])
            key = people[int(which[row])], flat.names[int(flat.topic[place])], int(flat.values["PartitionIndex"][place])
            known = self.hints.get(key)
            if known is None:
                if len(self.hints) >= MOST:
                    continue
                known = self.hints[key] = Hints(*key, int(flat.values["PreferredReadReplica"][place]))
            time = int(batch.response.time[row])
            known.count += 1
            known.first, known.last = min(known.first or time, time), max(known.last, time)
            if len(known.proofs) < 4:
                known.proofs.append(answer_of(batch, row))

    def findings(self) -> Iterator[Finding]:
        for hints in self.hints.values():
            minutes = max((hints.last - hints.first) / 60e9, 1)
            if hints.count / minutes < self.limit("least"):
                continue
            what = f"{hints.caller.label} was told {counted(hints.count, 'time')} in "
            what += f"{lasted(hints.last - hints.first)} to read {hints.topic}-{hints.partition} from broker "
            what += f"{hints.replica}, and goes on asking the leader ({hints.caller.broker})"
            advice = "Such an answer holds no records: the client does not consume. Update the client, or take its "
            advice += f"rack away; see whether it can reach broker {hints.replica}."
            about = hints.caller.about | {
                "topic": hints.topic,
                "partition": hints.partition,
                "broker": hints.caller.broker,
            }
            yield Finding(
                "warning",
                what,
                tuple(hints.proofs),
                advice,
                time=hints.first,
                last=hints.last,
                count=hints.count,
                about=about | {"api": "Fetch"},
                otherwise="it fetched that partition from that broker in between",
            )


DETECTOR = Detector(
    "hints of a nearer replica that are not followed",
    watch=IgnoredHints,
    fields="Fetch: PreferredReadReplica of a partition (11+)",
    source="KIP-392; kafka.server.ReplicaManager.findPreferredReadReplica",
    means="The leader answers with a hint and without records; the client asks it again instead of the replica.",
    proof="Several answers of one broker for one partition with PreferredReadReplica set.",
    advice="Update the client, or see why it cannot reach the replica.",
    thresholds={"least": 3},
    bodies=(FETCH,),
)
