"""Members that the coordinator threw out of their group since their session ended, and those that came close to it.

Sees the heartbeats, joins and commits of each member against the session timeout that it asked for, UNKNOWN_MEMBER_ID
(25) and FENCED_MEMBER_EPOCH (110) on its return, generations that form without it (GroupMetadataManager, KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding

if TYPE_CHECKING:
    from kwire.analyze.case import Case


class Evicted(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        case.limits.near = self.limit("near")

    def findings(self) -> Iterator[Finding]:
        for finding in self.case.of_groups("evicted"):
            yield replace(finding, what=f"group {finding.about['group']}: {finding.what}", otherwise=OTHERWISE)


OTHERWISE = "that member sent a heartbeat meanwhile, on a connection that the capture does not hold"
DETECTOR = Detector(
    "members that were thrown out of their group",
    watch=Evicted,
    fields="JoinGroup.SessionTimeoutMs; times of Heartbeat, SyncGroup, OffsetCommit; error codes 25 and 110",
    source="org.apache.kafka.coordinator.group.GroupMetadataManager; session.timeout.ms, KIP-848",
    means="The coordinator heard nothing of a member for its session timeout and went on without it.",
    proof="The last heartbeat, the session timeout asked for, and the error that the member met when it came back.",
    advice="Find what held it up: a pause (GC, swap, a frozen container), the network, an application that blocks.",
    thresholds={"near": 0.7},
    needs=("answers", "requests"),
)
