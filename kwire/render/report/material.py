"""What a report is made of: what the other commands found out, the files, and the frames that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kwire.analyze.findings import Finding, Reference
from kwire.render.html.markup import Markup
from kwire.render.report.commands import Commands

if TYPE_CHECKING:
    from kwire.analyze.clients import Clients
    from kwire.analyze.doctor import Diagnosis
    from kwire.analyze.overtime import OverTime
    from kwire.analyze.stats import Stats

OF_FINDING, OF_ALL = 4, 80  # frames that are shown of a finding, and of all
Packet = tuple[str, int]  # the capture's name, and the number in it


class File(NamedTuple):
    """A capture: its name, its bytes, how many packets it holds."""

    name: str
    size: int
    packets: int


@dataclass(slots=True)
class Material:
    """frames: the diagrams of packets that findings name; twice: whether the captures can be read again for them;
    remarks: what was damaged or is missing, a line each; share: of what is usually in the page, when that is too
    much."""

    files: Sequence[File]
    diagnosis: Diagnosis
    stats: Stats
    clients: Clients
    over: OverTime
    commands: Commands
    remarks: Sequence[str] = ()
    twice: bool = True
    frames: Mapping[Packet, Markup] = field(default_factory=dict)
    share: float = 1.0

    def most(self, usual: int) -> int:
        """How many of something are in the page."""
        return max(int(usual * self.share), 5)

    def evidence(self) -> list[Reference]:
        """The frames whose diagrams should be in the page: of the worst findings first."""
        judgement = self.diagnosis.case.judgement
        groups = [one for _, _, found in judgement.groups for one in found] if judgement is not None else []
        return wanted_frames([*self.diagnosis.findings, *groups])


def wanted_frames(findings: Sequence[Finding]) -> list[Reference]:
    """The first frames of each finding, once each."""
    found: dict[Packet, Reference] = {}
    for finding in findings:
        for reference in finding.evidence[:OF_FINDING]:
            if len(found) < OF_ALL:
                found.setdefault((reference.capture, reference.packet), reference)
    return list(found.values())
