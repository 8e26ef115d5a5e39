"""Offsets that cannot be read, since a transaction that holds commits of them is not over.

Sees UNSTABLE_OFFSET_COMMIT (88) in answers to OffsetFetch, which clients with isolation.level=read_committed ask with
RequireStable (KIP-447). They ask again until the transaction is over, and do not consume meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, lasted
from kwire.counted import counted
from kwire.schema import codes


class Unstable(Watch):
    def findings(self) -> Iterator[Finding]:
        for trouble in self.case.troubles.of(codes.UNSTABLE_OFFSET_COMMIT):
            fact, clock = trouble.fact, self.case.clock
            if trouble.most < self.limit("least"):
                continue
            end = trouble.over or trouble.last.time
            who = fact.client_id or f"a client at {fact.host}"
            what = f"{who} waited {lasted(end - fact.time)} for its offsets: {counted(trouble.count, 'time')} "
            what += "UNSTABLE_OFFSET_COMMIT, as an open transaction holds commits of them"
            what += f"; it had them at {clock(trouble.over)}" if trouble.over else "; it had not got them at the end"
            advice = "End transactions sooner, and lower transaction.timeout.ms; kafka-transactions find-hanging names "
            advice += "those of __consumer_offsets that nobody ends."
            yield Finding(
                "warning" if trouble.over else "error", what, tuple(trouble.samples), advice, time=fact.time,
                last=end, about=trouble.about | {"api": fact.api}, count=trouble.count, words=trouble.words,
                otherwise="the group's offsets were read without the error in between",
            )  # fmt: skip


DETECTOR = Detector(
    "offsets that an open transaction holds back",
    watch=Unstable,
    fields="OffsetFetch: ErrorCode 88 of a partition",
    source="KIP-447; OffsetMetadataManager.fetchOffsets",
    means="A member cannot begin: the group's offsets are part of a transaction that is neither committed nor aborted.",
    proof="Several answers to OffsetFetch in a row with UNSTABLE_OFFSET_COMMIT.",
    advice="Look for the producer that sends these offsets to a transaction and does not end it.",
    thresholds={"least": 5},
    needs=("clock",),
)
