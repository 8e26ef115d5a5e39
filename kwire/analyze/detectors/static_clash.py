"""Two processes with one group.instance.id, of which one puts the other out of the group, or is refused.

Sees FENCED_INSTANCE_ID (82) and UNRELEASED_INSTANCE_ID (111), and joins under an instance id that another member id
holds (KIP-345; KIP-848: the member that holds it keeps it).
"""

from __future__ import annotations

from functools import partial

from kwire.analyze.detectors import Detector
from kwire.analyze.group_watch import GroupWatch

OTHERWISE = "one process was replaced on purpose, and was to end"
DETECTOR = Detector(
    "two processes with one group.instance.id",
    watch=partial(GroupWatch, "static-clash", OTHERWISE, {}),
    fields="error codes 82 and 111; GroupInstanceId and MemberId of JoinGroup and its kin",
    source="KIP-345",
    means="Two live processes have the same static member id: the later one fences the earlier in a classic group, and "
    "is refused in one of KIP-848.",
    proof="The error, and the join under the same instance id from elsewhere.",
    advice="Give each process a group.instance.id of its own.",
    needs=("answers", "requests"),
)
