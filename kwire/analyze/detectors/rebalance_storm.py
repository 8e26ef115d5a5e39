"""Groups that rebalance again and again though no new member joins.

Sees generations and epochs that form within a minute, and what began each: evictions, members that come back, leave or
join again. A member that restarts once is not counted, nor the second generation of cooperative members (KIP-429).
"""

from __future__ import annotations

from functools import partial

from kwire.analyze.detectors import Detector
from kwire.analyze.group_watch import GroupWatch

OTHERWISE = "its members are restarted on purpose, each several times"
DETECTOR = Detector(
    "groups that rebalance again and again",
    watch=partial(GroupWatch, "rebalance-storm", OTHERWISE, {"storm": "generations", "storm_seconds": "seconds"}),
    fields="generations of JoinGroup answers, epochs of group heartbeats",
    source="KIP-345, KIP-429, KIP-848 for what makes rebalances fewer",
    means="Members come and go, or join again, faster than the group can settle.",
    proof="The generations with the frames that formed them, and the event that began each.",
    advice="Find what throws members out first; static membership and cooperative assignors make it bearable.",
    thresholds={"generations": 4, "seconds": 60},
    needs=("answers", "requests"),
)
