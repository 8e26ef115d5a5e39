"""Members that the coordinator threw out of their group since their session ended, and those that came close to it.

Sees the heartbeats, joins and commits of each member against the session timeout that it asked for, UNKNOWN_MEMBER_ID
(25) and FENCED_MEMBER_EPOCH (110) on its return, generations that form without it (GroupMetadataManager, KIP-848).
"""

from __future__ import annotations

from functools import partial

from kwire.analyze.detectors import Detector
from kwire.analyze.group_watch import GroupWatch

OTHERWISE = "that member sent a heartbeat meanwhile, on a connection that the capture does not hold"
DETECTOR = Detector(
    "members that were thrown out of their group",
    watch=partial(GroupWatch, "evicted", OTHERWISE, {"near": "near"}),
    fields="JoinGroup.SessionTimeoutMs; times of Heartbeat, SyncGroup, OffsetCommit; error codes 25 and 110",
    source="org.apache.kafka.coordinator.group.GroupMetadataManager; session.timeout.ms, KIP-848",
    means="The coordinator heard nothing of a member for its session timeout and went on without it.",
    proof="The last heartbeat, the session timeout asked for, and the error that the member met when it came back.",
    advice="Find what held it up: a pause (GC, swap, a frozen container), the network, an application that blocks.",
    thresholds={"near": 0.7},
    needs=("answers", "requests"),
)
