"""Members of a KIP-848 or streams group that do not give up what the group takes from them.

Sees ConsumerGroupHeartbeat: an Assignment that lacks partitions which the member owns, and its heartbeats that go on
without TopicPartitions that give them back; StreamsGroupHeartbeat: ActiveTasks in the same way. The coordinator waits
as long as the member's RebalanceTimeoutMs, then fences it (GroupMetadataManager.scheduleConsumerGroupRebalanceTimeout).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, lasted
from kwire.analyze.revocations import RevocationSpan
from kwire.counted import counted

if TYPE_CHECKING:
    pass

MS = 1_000_000
DEFAULT_TIMEOUT = 300_000  # ms: max.poll.interval.ms


class Unrevoked(Watch):
    def findings(self) -> Iterator[Finding]:
        for span in self.case.revocations.revoked:
            timeout = (span.rebalance_ms if span.rebalance_ms > 0 else DEFAULT_TIMEOUT) * MS
            if span.length >= self.limit("share") * timeout and span.heartbeats >= 2:
                yield self._finding(span, timeout)

    def _finding(self, span: RevocationSpan, timeout: int) -> Finding:
        clock = self.case.clock
        what = f"{span.label} in group {span.group} was told at {clock(span.began)} to give up "
        what += f"{counted(len(span.partitions), span.noun)} and "
        if span.over is None:
            what += f"had not done so {lasted(span.length)} later, though its heartbeats went on"
        else:
            what += f"did so {lasted(span.length)} later; its heartbeats went on meanwhile"
        what += f"; its rebalance timeout is {lasted(timeout)}"
        what += "" if span.rebalance_ms > 0 else " (by default: the capture does not say)"
        busy = "in onPartitionsRevoked, or does not poll" if span.noun == "partition" else "on records"
        advice = f"It works {busy}: nobody else gets these {span.noun}s until it is done. "
        advice += "Shorten that work, or fetch less at a time (max.poll.records); at the timeout "
        advice += "(max.poll.interval.ms) it is fenced."
        about: dict[str, str | int] = {"group": span.group, "member": span.member, "address": span.host}
        if span.client_id:
            about["client_id"] = span.client_id
        topics = {topic for topic, _ in span.partitions}
        if len(topics) == 1 and span.noun == "partition":
            about["topic"] = topics.pop()
        proofs = (span.proof, span.seen_proof, span.over_proof)
        return Finding(
            "warning", what, tuple(proof for proof in proofs if proof), advice, time=span.began,
            last=span.seen if span.over is None else span.over, about=about, count=len(span.partitions),
            otherwise=f"a heartbeat with fewer {span.noun}s is missing in the capture",
        )  # fmt: skip


DETECTOR = Detector(
    "members that do not give up partitions when told to",
    watch=Unrevoked,
    fields="Assignment and TopicPartitions of ConsumerGroupHeartbeat, ActiveTasks of StreamsGroupHeartbeat",
    source="KIP-848, KIP-1071; max.poll.interval.ms=300000; GroupMetadataManager.scheduleConsumerGroupRebalanceTimeout",
    means="The group waits for the member: it has been told to revoke, and has not said that it did.",
    proof="The answer that takes partitions away, heartbeats after it, and the one that gives them back.",
    advice="Look at the work in onPartitionsRevoked, and at how often the member polls.",
    thresholds={"share": 0.5},
    needs=("clock",),
)
