"""Rebalances in which one member is waited for: told that the group rebalances, it joins late or not at all.

Sees REBALANCE_IN_PROGRESS (27), which tells a member at its heartbeat, and the time from there to its JoinGroup. The
time until its next heartbeat is the protocol's (heartbeat.interval.ms) and not counted.
"""

from __future__ import annotations

from functools import partial

from kwire.analyze.detectors import Detector
from kwire.analyze.group_watch import GroupWatch

OTHERWISE = "that member sent a JoinGroup on a connection that the capture does not hold"
DETECTOR = Detector(
    "members that a whole rebalance waits for",
    watch=partial(GroupWatch, "slow-joiner", OTHERWISE, {"slow": "seconds", "open": "open_seconds"}),
    fields="error code 27 of Heartbeat; times of JoinGroup requests and answers",
    source="KIP-62; max.poll.interval.ms, which is the rebalance timeout",
    means="Nobody in the group consumes while a member that was told to join does not: its application does not poll.",
    proof="The answer that told it, its JoinGroup or the lack of one, and the rebalance's length.",
    advice="Shorten the work between polls, or lower max.poll.interval.ms; cooperative assignors or KIP-848 stop less.",
    thresholds={"seconds": 2.5, "open_seconds": 10},
    needs=("answers", "requests"),
)
