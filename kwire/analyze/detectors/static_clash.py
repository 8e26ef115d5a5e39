"""Two processes with one group.instance.id, of which each throws the other out.

Sees FENCED_INSTANCE_ID (82) and UNRELEASED_INSTANCE_ID (111), and joins under an instance id that another member id
holds (KIP-345).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding


class Clash(Watch):
    def findings(self) -> Iterator[Finding]:
        for finding in self.case.of_groups("static-clash"):
            yield replace(finding, what=f"group {finding.about['group']}: {finding.what}", otherwise=OTHERWISE)


OTHERWISE = "one process was replaced on purpose, and was to end"
DETECTOR = Detector(
    "two processes with one group.instance.id",
    watch=Clash,
    fields="error codes 82 and 111; GroupInstanceId and MemberId of JoinGroup and its kin",
    source="KIP-345",
    means="Two live processes are configured with the same static member id; the later one fences the earlier.",
    proof="The error, and the join under the same instance id from elsewhere.",
    advice="Give each process a group.instance.id of its own.",
    needs=("answers", "requests"),
)
