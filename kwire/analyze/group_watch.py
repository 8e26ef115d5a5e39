"""Detectors whose findings come from the histories of groups (verdicts.py); only the group's name is added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Watch
from kwire.analyze.findings import Finding

if TYPE_CHECKING:
    from kwire.analyze.case import Case


class GroupWatch(Watch):
    """detector: its name; otherwise: as Finding has it; sets: by field of VerdictLimits the threshold that it has."""

    def __init__(
        self, detector: str, otherwise: str, sets: Mapping[str, str], case: Case, limits: Mapping[str, float]
    ) -> None:
        super().__init__(case, limits)
        self._detector, self._otherwise = detector, otherwise
        for field, threshold in sets.items():
            setattr(case.limits, field, self.limit(threshold))

    def findings(self) -> Iterator[Finding]:
        for finding in self.case.of_groups(self._detector):
            yield replace(finding, what=f"group {finding.about['group']}: {finding.what}", otherwise=self._otherwise)
