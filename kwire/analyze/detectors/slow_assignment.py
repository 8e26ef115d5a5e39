"""Members of a KIP-848 or streams group that wait long for their first partitions, and whom they wait for.

Sees ConsumerGroupHeartbeat and StreamsGroupHeartbeat: a member that joined (MemberEpoch 0) and got no partitions or
tasks, until the answer that brings some, longer than its heartbeat interval and the threshold; and who of the group had
been told to give up some meanwhile and had not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, lasted
from kwire.analyze.revocations import RevocationSpan

if TYPE_CHECKING:
    pass

SECOND, MS = 1_000_000_000, 1_000_000


class SlowAssignment(Watch):
    def findings(self) -> Iterator[Finding]:
        for wait in self.case.revocations.waited:
            if wait.length < self.limit("seconds") * SECOND + wait.beat_ms * MS:  # which any answer takes
                continue
            holders = [
                span for span in self.case.revocations.revoked
                if span.group == wait.group and span.member != wait.member and wait.meets(span) * 2 > wait.length
            ]  # fmt: skip
            if holders or wait.over is not None:  # without either there may be nothing for it to get
                yield self._finding(wait, holders)

    def _finding(self, wait: RevocationSpan, holders: list[RevocationSpan]) -> Finding:
        clock = self.case.clock
        what = f"{wait.label} joined group {wait.group} at {clock(wait.began)} and got its first {wait.noun}s "
        what += "not" if wait.over is None else f"{lasted(wait.length)} later"
        what += f" within {lasted(wait.length)}" if wait.over is None else ""
        proofs = [wait.proof, wait.over_proof or wait.seen_proof]
        if holders:
            holder = max(holders, key=wait.meets)
            what += f"; {lasted(wait.meets(holder))} of that it waited for {holder.label}, which was told to give up "
            what += f"{holder.noun}s at {clock(holder.began)}"
            proofs += [holder.proof, holder.over_proof]
        if holders:
            advice = f"{max(holders, key=wait.meets).label} gives them up when its application polls next: shorten the "
            advice += "work between its polls, and in its rebalance listener."
        else:
            advice = f"Nobody is seen to hold {wait.noun}s: a member that is gone is waited for until its session ends."
        about: dict[str, str | int] = {"group": wait.group, "member": wait.member, "address": wait.host}
        if wait.client_id:
            about["client_id"] = wait.client_id
        return Finding(
            "warning" if holders else "note", what, tuple(proof for proof in proofs if proof), advice,
            time=wait.began, last=wait.seen if wait.over is None else wait.over, about=about,
            otherwise=f"there were fewer {wait.noun}s than members until then",
        )  # fmt: skip


DETECTOR = Detector(
    "members that wait long for their first partitions",
    watch=SlowAssignment,
    fields="MemberEpoch 0; HeartbeatIntervalMs; Assignment and ActiveTasks of the two heartbeats",
    source="KIP-848, KIP-1071; group.consumer.heartbeat.interval.ms=5000: news comes with a heartbeat",
    means="The member runs and reads nothing: what it is to get is still with another member.",
    proof="The answer to its join, and the one that brings partitions; the other member's revocation between.",
    advice="Look at who is waited for.",
    thresholds={"seconds": 5},
    needs=("clock",),
)
