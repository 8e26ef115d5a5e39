"""A topic that was deleted and made anew under the same name: its id changed, and with it all that clients know of it.

Sees Topics[].Name with TopicId in Metadata answers (KIP-516): one name with two ids in one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding
from kwire.counted import counted
from kwire.schema import codes

GONE = (codes.UNKNOWN_TOPIC_OR_PARTITION, codes.UNKNOWN_TOPIC_ID, codes.INCONSISTENT_TOPIC_ID)


class Recreated(Watch):
    def findings(self) -> Iterator[Finding]:
        for (_, name), ids in self.case.cluster.ids.items():
            if len(ids) < 2:
                continue
            (old, (_, last_old)), *_, (new, (first_new, _)) = ids.items()
            hurt = [
                one for one in self.case.troubles.of(*GONE)
                if one.fact.about.get("topic") == name and one.last.time > last_old.time
            ]  # fmt: skip
            failures = sum(one.count for one in hurt)
            what = (
                f"topic {name} was deleted and made anew: id {old}, then {new} from {self.case.clock(first_new.time)}"
            )
            what += f"; {counted(failures, 'request')} failed on it meanwhile" if failures else ""
            what += f" ({counted(len(ids) - 1, 'time')} in all)" if len(ids) > 2 else ""
            advice = "Committed offsets are of the old topic: consumers need a reset. Old clients may have to restart."
            evidence = (last_old, first_new, *(one.fact.proof for one in hurt[:4]))
            yield Finding(
                "warning" if failures else "note", what, evidence, advice, time=first_new.time, about={"topic": name},
                count=len(ids) - 1, otherwise="the capture has two clusters of which neither says its id",
            )  # fmt: skip


DETECTOR = Detector(
    "a topic made anew under its old name",
    watch=Recreated,
    fields="Name and TopicId of Metadata answers v10 and later",
    source="KIP-516",
    means="The topic's id changed: it was deleted and created. Offsets, leader epochs and sessions of it are void.",
    proof="Two answers of one cluster that give the same name different ids.",
    advice="Reset consumers' offsets for it; do not recreate topics that are in use.",
)
