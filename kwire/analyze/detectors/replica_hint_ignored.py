"""Consumers that are told to read from another replica and go on asking the leader.

Sees PreferredReadReplica of Fetch answers (from version 11 on): a client that follows asks the leader again only when
the replica fails or its metadata ages (KIP-392), so that the same hint for the same partition, again and again, is one
that it does not follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, answer_of, callers
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.fetched import fetched
from kwire.analyze.findings import Finding, lasted
from kwire.analyze.tally import Tallies
from kwire.counted import counted
from kwire.schema.keys import FETCH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded


class IgnoredHints(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.hints: Tallies[tuple[Caller, str, int]] = Tallies()  # by client and broker, topic, partition
        self.replicas: dict[tuple[Caller, str, int], int] = {}

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
            hints = self.hints.of(key)
            if hints is not None:
                hints.add(answer_of(batch, row), int(batch.response.time[row]))
                self.replicas.setdefault(key, int(flat.values["PreferredReadReplica"][place]))

    def findings(self) -> Iterator[Finding]:
        for key, hints in self.hints.known.items():
            caller, topic, partition = key
            replica = self.replicas[key]
            minutes = max((hints.last - hints.first) / 60e9, 1)
            if hints.count / minutes < self.limit("least"):
                continue
            what = f"{caller.label} was told {counted(hints.count, 'time')} in "
            what += f"{lasted(hints.last - hints.first)} to read {topic}-{partition} from broker "
            what += f"{replica}, and goes on asking the leader ({caller.broker})"
            advice = "Such an answer holds no records: the client does not consume. Update the client, or take its "
            advice += f"rack away; see whether it can reach broker {replica}."
            yield Finding(
                "warning",
                what,
                tuple(hints.samples),
                advice,
                time=hints.first,
                last=hints.last,
                count=hints.count,
                about=caller.about | {"topic": topic, "partition": partition, "broker": caller.broker, "api": "Fetch"},
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
    needs=("clock",),
)
