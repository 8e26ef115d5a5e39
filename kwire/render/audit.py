"""An audit for a person: a line on what it is about, then a block for each client, those that are blocked first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.analyze.audit import BLOCKED, READY, UNPROVEN
from kwire.analyze.findings import lasted
from kwire.counted import counted
from kwire.render.lines import Line, clean, flowing, paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kwire.analyze.audit import Audit, ClientVerdict

STYLES = {BLOCKED: "error", UNPROVEN: "note", READY: "good"}
MARGIN = " " * 11
SHOWN = 4  # addresses in a line


def audit_lines(audit: Audit, verdicts: Sequence[ClientVerdict], question: str, width: int) -> list[Line]:
    """The whole answer. question: as "to 4.0"."""
    counts = [(verdict, sum(one.verdict == verdict for one in verdicts)) for verdict in (BLOCKED, UNPROVEN, READY)]
    title: Line = [(question, "title")]
    title += [(f"{count} {verdict}", STYLES[verdict] if count else "dim") for verdict, count in counts]
    seen = f"{counted(len(verdicts), 'client')} seen within {lasted(audit.end - (audit.start or audit.end))}"
    lines = flowing([*title, (seen, "dim")], width, "  ")
    for broker in sorted(audit.offered):
        release = audit.release_of(broker)
        said = f"broker {clean(broker)} offers what Kafka {release[0]}.{release[1]} does" if release else ""
        lines += [[(said, "dim")]] if said and len(audit.offered) <= SHOWN else []
    brief = False
    for verdict in verdicts:  # those of which there is no more than a line stand together
        found = _verdict(verdict, width)
        lines += found if brief and not _details(verdict) else [[], *found]
        brief = not _details(verdict)
    return lines


def _details(verdict: ClientVerdict) -> bool:
    return bool(verdict.by or verdict.why or verdict.negotiated)


def _verdict(verdict: ClientVerdict, width: int) -> list[Line]:
    one = verdict.speaker
    head: Line = [(f"{verdict.verdict:<9}", STYLES[verdict.verdict]), (clean(one.label), "section")]
    head.append((f"from {clean(_some(sorted(one.addresses)))}", "dim"))
    if one.principals:
        head.append((f"as {clean(_some(sorted(one.principals)))}", "dim"))
    if one.uses and not one.negotiates:
        head.append(("without ApiVersions", "dim"))
    lines = flowing(head, width, MARGIN)
    if verdict.by:
        lines += paragraph(", ".join(block.words() for block in verdict.by), width, MARGIN, "", breaks=True)
    if verdict.negotiated:
        fits = ", ".join(f"{block.api} v{', v'.join(map(str, block.versions))}" for block in verdict.negotiated)
        said = f"speaks only as its brokers offer it, and will negotiate others: {fits}"
        lines += paragraph(said, width, MARGIN, "dim", breaks=True)
    if verdict.why:
        lines += paragraph(verdict.why, width, MARGIN, "note")
    if verdict.cure:
        lines += paragraph(f"→ {verdict.cure}", width, MARGIN, "good", MARGIN + "  ")
    packets = list(dict.fromkeys(str(proof) for block in verdict.by for proof in block.proofs))
    if packets:
        shown = ", ".join(clean(packet) for packet in packets[:8])
        lines += paragraph(f"packet{'s' if len(packets) > 1 else ''} {shown}", width, MARGIN, "dim", breaks=True)
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
