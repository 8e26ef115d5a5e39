"""Findings for a person: what was seen in a line, then each finding with its advice and packets, then what was looked
for in vain; and the same for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kwire.analyze.consequences import families, worst
from kwire.analyze.detectors import detector
from kwire.analyze.findings import SEVERITIES, Finding, TimeFormat, lasted
from kwire.counted import counted
from kwire.render.jsonform import dumps
from kwire.render.lines import Line, clean, joined, paragraph

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.analyze.doctor import Diagnosis
    from kwire.analyze.live import ToldFinding

STYLES = {"error": "error", "warning": "note", "note": "dim"}
MARGIN = " " * 9
SHOWN = 20  # findings of a severity, unless all are asked for
PACKETS = 8
WHOLE = "nothing missing"


def diagnosis_lines(diagnosis: Diagnosis, width: int, everything: bool = False) -> list[Line]:
    """The whole answer of kwire doctor."""
    lines = seen_lines(diagnosis.case, width)
    if diagnosis.case.start is None:
        return lines
    clock = diagnosis.clock
    together = families(diagnosis.findings)
    for at, severity in enumerate(SEVERITIES):
        found = [family for family in together if worst(*family) == at]
        for head, others in found if everything else found[:SHOWN]:
            lines += [[], *finding_lines(head, clock, width)]
            if others:
                lines.append([(f"{MARGIN}in its wake", "head")])
            for one in others if everything else others[:SHOWN]:
                advised = one if one.severity != SEVERITIES[-1] else replace(one, advice="")  # the event's is enough
                lines += indented(finding_lines(advised, clock, width - len(MARGIN)))
            if len(others) > SHOWN and not everything:
                lines.append([(f"{MARGIN}… {len(others) - SHOWN:,} more (--all)", "dim")])
        if len(found) > SHOWN and not everything:
            lines += [[], [(f"{MARGIN}… {len(found) - SHOWN:,} more of severity {severity} (--all)", "dim")]]
    if not diagnosis.findings and diagnosis.case.messages:
        lines += [[], [("nothing found", "good")]]
    if not diagnosis.case.messages:
        return [*lines, [], [("no message of Kafka's was seen: nothing else can be judged", "dim")]]
    if diagnosis.quiet:
        lines += [[], [("looked for and not found", "head")]]
        lines += _looked_for([(name, detector(name).looks_for) for name in diagnosis.quiet], width)
    if diagnosis.blind:
        lines += [[], [("not to be judged from this capture", "head")]]
        lines += _looked_for(diagnosis.blind, width)
    return lines


def indented(lines: list[Line]) -> list[Line]:
    """Beneath what they follow from."""
    return [[(MARGIN, ""), *line] for line in lines]


def _looked_for(rows: list[tuple[str, str]], width: int) -> list[Line]:
    """A line each: a detector and some words."""
    wide = max(len(name) for name, _ in rows)
    lines: list[Line] = []
    for name, words in rows:
        room = width - wide - 4
        text = words if len(words) <= room else words[: room - 1] + "…"
        lines.append([(f"  {name:<{wide}}  ", ""), (text, "dim")])
    return lines


def news_lines(news: Sequence[ToldFinding], width: int) -> list[Line]:
    """What a look at traffic that goes on brought: the first few, and how many more."""
    lines = [line for one in news[:SHOWN] for line in told_lines(one, width)]
    more = len(news) - SHOWN
    return [*lines, [], [(f"{MARGIN}… {more:,} more, told at the end", "dim")]] if more > 0 else lines


def told_lines(told: ToldFinding, width: int) -> list[Line]:
    """What a look at traffic that goes on shows: a finding, or that there is more of it, or that it is none."""
    one, before = told.finding, told.before
    if before is None and not told.gone:
        lines = [[], *finding_lines(one, TimeFormat(), width)]
        if one.cause is not None:
            event = f"{one.cause.detector} of {TimeFormat()(one.cause.time)}"
            lines += paragraph(f"in the wake of {event}", width, MARGIN, "dim")
        return lines
    if told.gone:
        return [[], *_head(one, TimeFormat(), width), [(f"{MARGIN}no more: what followed shows otherwise", "dim")]]
    assert before is not None
    was = f"was {before.severity}" if before.severity != one.severity else f"was {before.count:,}"
    return [[], *_head(one, TimeFormat(), width, was), *paragraph(clean(one.what), width, MARGIN, "", breaks=True)]


def _head(finding: Finding, clock: TimeFormat, width: int, was: str = "") -> list[Line]:
    """Severity, detector, when, how often."""
    first, last = clock(finding.time), clock(finding.last if finding.last is not None else finding.time)
    when = f"at {first}" if first == last else f"{first} to {last}"
    parts = [(finding.detector, "section"), (when, "dim")]
    if finding.count > 1:
        parts.append((f"{finding.count:,} times", "dim"))
    if was:
        parts.append((was, "dim"))
    return [[(f"{finding.severity:<9}", STYLES[finding.severity]), *joined(parts, width)[0]]]


def finding_lines(finding: Finding, clock: TimeFormat, width: int) -> list[Line]:
    """A finding: severity, detector, when; what, advice, packets."""
    lines = _head(finding, clock, width)
    lines += paragraph(clean(finding.text), width, MARGIN, "", breaks=True)
    if finding.words:
        said = f"the broker says: {clean(finding.words)}"
        lines += paragraph(said, width, MARGIN, "note", MARGIN + "  ", breaks=True)
    if finding.advice:
        lines += paragraph(f"→ {clean(finding.advice)}", width, MARGIN, "good", MARGIN + "  ", breaks=True)
    if finding.otherwise and finding.severity != "note":
        said = f"not so if {clean(finding.otherwise)}"
        lines += paragraph(said, width, MARGIN, "dim", MARGIN + "  ", breaks=True)
    packets = list(dict.fromkeys(str(one) for one in finding.evidence))
    if packets:
        more = f" and {len(packets) - PACKETS:,} more" if len(packets) > PACKETS else ""
        named = ", ".join(clean(one) for one in packets[:PACKETS])
        lines += paragraph(f"packet{'s' if len(packets) > 1 else ''} {named}{more}", width, MARGIN, "dim", breaks=True)
    return lines


def seen_lines(case: Case, width: int) -> list[Line]:
    """What was seen: how long, of whom, how well."""
    if case.start is None:
        return [[("nothing seen", "dim")]]
    begun = datetime.fromtimestamp(case.start // 1_000_000_000, UTC)
    clients = len({(one.client_id, one.host) for one in case.participants.known.values()})
    coverage = case.coverage
    parts = [
        (f"{lasted(case.end - case.start)} from {begun:%Y-%m-%d %H:%M:%S} UTC", "title"),
        (counted(len(case.participants.brokers), "broker"), ""),
        (counted(clients, "client"), ""),
        (counted(case.messages, "message"), ""),
        (counted(coverage.connections, "connection"), ""),
    ]
    lacking = lacks(case)
    return joined([*parts, *((words, "dim" if lacking == [WHOLE] else "note") for words in lacking)], width)


def lacks(case: Case) -> list[str]:
    """What the capture lacks, in a few words each; one of them where it lacks nothing."""
    coverage = case.coverage
    missing = sum(coverage.missing)
    found = [f"one direction: {coverage.one_sided}"] if coverage.one_sided else []
    found += [f"{counted(missing, 'byte')} missing"] if missing else []
    found += [f"{counted(coverage.cut, 'message')} cut by the snaplen"] if coverage.cut else []
    found += [f"{counted(coverage.midstream, 'connection')} begun before the capture"] if coverage.midstream else []
    found += [f"{counted(coverage.encrypted, 'connection')} in TLS that cannot be read"] if coverage.encrypted else []
    return found or [WHOLE]


def diagnosis_json(diagnosis: Diagnosis) -> Iterator[str]:
    """A finding a line."""
    return map(record_line, diagnosis.findings)


def record_line(finding: Finding) -> str:
    """A finding as a line of JSON."""
    return dumps(finding.record(), indent=None)


def list_lines(names: list[str], width: int) -> list[Line]:
    """All detectors: what each looks for, its thresholds, where the rule comes from."""
    lines: list[Line] = []
    for name in names:
        found = detector(name)
        limits = ", ".join(f"{key} {value:g}" for key, value in found.thresholds.items())
        lines.append([(name, "section")])
        lines += paragraph(found.looks_for, width, "  ")
        if limits:
            lines += paragraph(f"thresholds: {limits}", width, "  ", "value")
        lines += paragraph(f"rule: {found.source}", width, "  ", "dim", "    ", breaks=True)
    return lines


def explain_lines(name: str, width: int) -> list[Line]:
    """The page of a detector."""
    found = detector(name)
    lines: list[Line] = [[(name, "title")], [(found.looks_for, "dim")]]
    limits = ", ".join(f"{key} {value:g} (--set {name}.{key}=…)" for key, value in found.thresholds.items())
    sections = [
        ("What it means", found.means), ("What proves it", found.proof), ("What to do", found.advice),
        ("Fields", found.fields), ("Thresholds", limits or "none"), ("Rule", found.source),
    ]  # fmt: skip
    for title, text in sections:
        lines += [[], [(title, "section")], *paragraph(text, width, "  ", breaks=True)]
    return lines


def explain_json(name: str) -> dict[str, object]:
    """The same as data."""
    found = detector(name)
    return {
        "detector": name, "looks_for": found.looks_for, "means": found.means, "proof": found.proof,
        "advice": found.advice, "fields": found.fields, "thresholds": dict(found.thresholds), "source": found.source,
    }  # fmt: skip
