"""Which findings follow from an event of the cluster, so that it is told once, with its consequences under it.

Events are what detectors with a rank find: a broker that is gone, another controller, leaders or coordinators that
moved. A finding follows from one when both name the same broker, the event is nearer to the root, and it came in the
time around the event in which clients and brokers notice: a broker that is stopped gives up its partitions before its
port is closed, and a client learns of a new leader when it asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kwire.analyze.detectors import detector
from kwire.analyze.findings import SECOND, SEVERITIES, Finding, RootEvent

BEFORE = 10 * SECOND  # controlled.shutdown.max.retries and backoff: how long a broker that stops may take
AFTER = 60 * SECOND  # reconnect.backoff.max.ms and a few rounds of Metadata
MOST = 100  # events of a broker from which others are taken to follow
NO_EVENT = 1000  # behind the ranks of all events
ONE_THING = ("topic", "partition")  # findings about different ones do not follow from each other


def with_causes(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each with its cause, if one of the others is its cause."""
    found = list(findings)
    ranked = sorted(found, key=lambda one: (_rank(one) or NO_EVENT, one.time))
    events: dict[str, list[int]] = {}  # the first ones of each broker, nearest to the root first
    roots: dict[int, Finding] = {}  # by the id of what follows
    for number, one in enumerate(ranked):
        near = sorted({at for name in one.brokers for at in events.get(name, ())})
        event = next((ranked[at] for at in near if _follows(one, ranked[at])), None)
        if event is not None:
            roots[id(one)] = roots.get(id(event), event)
        for name in one.brokers if _rank(one) else ():
            if len(known := events.setdefault(name, [])) < MOST:
                known.append(number)
    return [one if (root := roots.get(id(one))) is None else replace(one, cause=RootEvent.of(root)) for one in found]


def families(findings: Iterable[Finding]) -> list[tuple[Finding, list[Finding]]]:
    """Each finding without a cause, with those that follow from it, both in order; families with the worst finding come
    first."""
    found = list(findings)
    heads = [one for one in found if one.cause is None]
    known = {RootEvent.of(one): number for number, one in reversed(list(enumerate(heads)))}
    out: list[tuple[Finding, list[Finding]]] = [(head, []) for head in heads]
    for one in found:
        if one.cause is not None and one.cause in known:
            out[known[one.cause]][1].append(one)
        elif one.cause is not None:
            out.append((one, []))
    return sorted(out, key=lambda family: (worst(*family), family[0].time))


def worst(head: Finding, others: Iterable[Finding]) -> int:
    """The severity of a family, as its place in SEVERITIES."""
    return min(SEVERITIES.index(one.severity) for one in (head, *others))


def _rank(finding: Finding) -> int:
    return detector(finding.detector).event


def _follows(one: Finding, event: Finding) -> bool:
    if _rank(one) == _rank(event) and one.about.get("broker") == event.about.get("broker"):
        return False
    last = event.time if event.last is None else event.last
    if not event.time - BEFORE <= one.time <= last + AFTER:
        return False
    both = [(one.about[name], event.about[name]) for name in ONE_THING if name in one.about and name in event.about]
    return all(mine == its for mine, its in both)
