"""Members that have no assignor in common with their group.

Sees INCONSISTENT_GROUP_PROTOCOL (23) of JoinGroup, and the Protocols that the member offers.
"""

from __future__ import annotations

from functools import partial

from kwire.analyze.detectors import Detector
from kwire.analyze.group_watch import GroupWatch

OTHERWISE = "a join of the same member goes well, as the others left meanwhile"
DETECTOR = Detector(
    "members without an assignor in common",
    watch=partial(GroupWatch, "assignor-clash", OTHERWISE, {}),
    fields="error code 23; JoinGroup.Protocols",
    source="org.apache.kafka.coordinator.group.classic.ClassicGroup.supportsProtocols",
    means="A member offers only assignors, or a protocol type, that not all others of the group offer.",
    proof="The refused JoinGroup with what it offers, and the protocol that the group uses.",
    advice="Change partition.assignment.strategy in two rolling restarts: first both, then the new one.",
    needs=("answers", "requests"),
)
