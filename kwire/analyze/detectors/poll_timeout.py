"""Members that left by themselves since their application did not poll within max.poll.interval.ms (KIP-62).

Sees LeaveGroup, or a heartbeat with epoch -1, of a client whose connections stay open: its reason where it gives one
(KIP-800), else the time since its last join or commit, or since its last Fetch, against RebalanceTimeoutMs. A client
that is closed closes its connections too, and is left out.
"""

from __future__ import annotations

from functools import partial

from kwire.analyze.detectors import Detector
from kwire.analyze.group_watch import GroupWatch

OTHERWISE = "that member committed or joined meanwhile, on a connection that the capture does not hold"
DETECTOR = Detector(
    "members that left since they did not poll",
    watch=partial(GroupWatch, "poll-timeout", OTHERWISE, {}),
    fields="LeaveGroup.Reason; JoinGroup.RebalanceTimeoutMs; times of joins and commits",
    source="KIP-62, KIP-800; org.apache.kafka.clients.consumer.internals.AbstractCoordinator",
    means="The application took longer for the records of one poll than max.poll.interval.ms allows.",
    proof="The LeaveGroup, and the time since the member's last join or commit.",
    advice="Lower max.poll.records, raise max.poll.interval.ms, or move the work to another thread.",
    needs=("answers", "requests"),
)
