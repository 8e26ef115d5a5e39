"""Consumers that commit their offsets again and again.

Sees OffsetCommit requests a second of one client and group. Each is a record in __consumer_offsets that is replicated
before it is answered; auto.commit.interval.ms is 5,000 by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, Pace, callers, grouped, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference
from kwire.schema.keys import OFFSET_COMMIT

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch

MOST = 10_000
STRETCH = 5_000_000_000
LONG = 3_000_000_000  # ns over which a mean is believed


@dataclass(slots=True)
class Committer:
    caller: Caller
    group: str
    pace: Pace = field(default_factory=lambda: Pace(STRETCH))
    proofs: list[Reference] = field(default_factory=list)


class CommitStorm(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.committers: dict[tuple[str, str], Committer] = {}

    def batch(self, batch: ExchangeBatch) -> None:
        kinds = np.array([kind is not None and kind.key == OFFSET_COMMIT for kind in batch.kinds], bool)
        if not kinds.any():
            return
        rows = np.flatnonzero(kinds[batch.kind] & batch.request.there)
        people, which = callers(batch)
        for who, places in grouped(which[rows]):
            caller = people[who]
            known = self.committers.get(caller.client)
            if known is None:
                if len(self.committers) >= MOST:
                    continue
                groups = batch[int(rows[places[0]])].about.groups
                known = self.committers[caller.client] = Committer(caller, groups[0] if groups else "")
            known.pace.add(batch.request.time[rows[places]])
            if len(known.proofs) < 4:
                known.proofs += [request_of(batch, row) for row in rows[places][: 4 - len(known.proofs)].tolist()]

    def findings(self) -> Iterator[Finding]:
        for one in self.committers.values():
            pace, wanted = one.pace, self.limit("per_second")
            often = max(pace.most * 1e9 / STRETCH, pace.per_second if pace.span > LONG else 0)
            if pace.count < self.limit("least") or often < wanted:
                continue
            what = f"{one.caller.label} commits the offsets of group {one.group or '?'} {often:.0f} "
            what += f"times a second ({pace.count:,} in all)"
            severity = "warning" if often >= self.limit("many_per_second") else "note"  # some libraries do so unasked
            advice = "Commit by time and not by record: enable.auto.commit with auto.commit.interval.ms, or every few "
            advice += "seconds by hand. What is processed twice after a crash is bounded by that time."
            yield Finding(
                severity, what, tuple(one.proofs), advice, time=pace.first or 0, last=pace.last, count=pace.count,
                about=one.caller.about | ({"group": one.group} if one.group else {}) | {"api": "OffsetCommit"},
                otherwise="several members share the client id and the host",
            )  # fmt: skip


DETECTOR = Detector(
    "consumers that commit after each record",
    watch=CommitStorm,
    fields="OffsetCommit: how often one client asks",
    source="auto.commit.interval.ms=5000; offsets.topic.* (each commit is a replicated record)",
    means="Commits take the time of the consumer, which waits for each, and of the group's coordinator.",
    proof="OffsetCommit requests in quick succession of one client.",
    advice="Commit by time.",
    thresholds={"per_second": 5, "many_per_second": 10, "least": 20},
    batches=True,
    needs=("clock",),
)
