"""Gathers findings that say the same of many things into one with a count, so that one cause does not fill the page.

Findings are alike when their detector, severity, cause and advice are the same but for names and numbers, and what they
are about differs only in partitions, clients or topics. What differs is kept by name: `among`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from kwire.analyze.detectors import detector
from kwire.analyze.findings import About, Finding

CLIENTS = frozenset(("client_id", "address", "member", "principal", "transactional_id"))
PARTITIONS, TOPICS = frozenset(("partition",)), frozenset(("topic",))
EVIDENCE = 64  # packets of a finding that stands for many


class GatheringStep(NamedTuple):
    """least: from how many findings on those that differ only in some names of about are gathered."""

    varies: frozenset[str]
    least: int


STEPS = (  # the first that gathers a finding names what the reader has to look at least far for
    GatheringStep(PARTITIONS, 4), GatheringStep(CLIENTS, 4), GatheringStep(PARTITIONS | CLIENTS, 4),
    GatheringStep(PARTITIONS | TOPICS, 4), GatheringStep(PARTITIONS | CLIENTS | TOPICS, 10),
)  # fmt: skip


def gathered(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, with similar ones gathered into one. Events of the cluster stay apart, since other findings follow
    from them."""
    found = list(findings)
    for step in STEPS:
        found = list(_together(found, step))
    return found


def _together(findings: list[Finding], step: GatheringStep) -> Iterator[Finding]:
    families: dict[object, list[Finding]] = {}
    counts = Counter((one.detector, one.severity, one.cause) for one in findings)
    for one in findings:
        many = counts[one.detector, one.severity, one.cause] >= step.least
        families.setdefault(_likeness(one, step.varies) if many else None, []).append(one)
    for key, alike in families.items():
        if key is None or len(alike) < step.least:
            yield from alike
        else:
            yield _joined(alike)


def _likeness(one: Finding, varies: frozenset[str]) -> object:
    """A key that similar findings share; None if a finding must stay alone."""
    if detector(one.detector).event or not varies & (one.about.keys() | one.among.keys()):
        return None
    same = tuple(sorted((name, str(value)) for name, value in one.about.items() if name not in varies))
    kept = tuple(sorted(name for name in one.among if name not in varies))
    return one.detector, one.severity, one.cause, same, kept, _pattern(one)


def _pattern(one: Finding) -> str:
    """The advice without the names and numbers of this finding."""
    text = f"{one.advice} {one.otherwise}"
    names = sorted({str(value) for values in _values(one).values() for value in values} - {""}, key=len, reverse=True)
    if names:
        text = re.sub("|".join(map(re.escape, names[:64])), "_", text)
    return re.sub(r"[\d,.]*\d", "#", text)


def _values(one: Finding) -> Mapping[str, tuple[About, ...]]:
    return {**{name: (value,) for name, value in one.about.items()}, **one.among}


def _joined(alike: list[Finding]) -> Finding:
    lead = min(alike, key=lambda one: (-one.count, one.time))
    values = [_values(one) for one in alike]
    names = {name for each in values for name in each}
    differing = {name: tuple(dict.fromkeys(value for each in values for value in each.get(name, ()))) for name in names}
    among = {name: differing[name] for name in names if len(differing[name]) > 1}
    proof = dict.fromkeys([*lead.evidence[:1], *(reference for one in alike for reference in one.evidence[:1])])
    return replace(
        lead,
        time=min(one.time for one in alike),
        last=max(one.time if one.last is None else one.last for one in alike),
        count=sum(one.count for one in alike),
        stands_for=sum(one.stands_for for one in alike),
        evidence=tuple(proof)[:EVIDENCE],
        brokers=frozenset(name for one in alike for name in one.brokers),
        about={name: value for name, value in lead.about.items() if name not in among},
        among=among,
    )
