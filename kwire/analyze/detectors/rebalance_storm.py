"""Groups that do not come to rest: one rebalance after the other though no new member joins.

Sees generations and epochs that form within a minute, and what began each: evictions, members that come back, leave or
join again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding

if TYPE_CHECKING:
    from kwire.analyze.case import Case


class Restless(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        case.limits.storm, case.limits.storm_seconds = self.limit("generations"), self.limit("seconds")

    def findings(self) -> Iterator[Finding]:
        for finding in self.case.of_groups("rebalance-storm"):
            yield replace(finding, what=f"group {finding.about['group']}: {finding.what}", otherwise=OTHERWISE)


OTHERWISE = "the whole group is restarted one by one, which ends by itself"
DETECTOR = Detector(
    "groups that rebalance again and again",
    watch=Restless,
    fields="generations of JoinGroup answers, epochs of group heartbeats",
    source="KIP-345, KIP-429, KIP-848 for what makes rebalances fewer",
    means="Members come and go, or join again, faster than the group can settle.",
    proof="The generations with the frames that formed them, and the event that began each.",
    advice="Find what throws members out first; static membership and cooperative assignors make it bearable.",
    thresholds={"generations": 4, "seconds": 60},
    needs=("answers", "requests"),
)
