"""What changed between two profiles of traffic: clients, versions, settings, rates, latencies, errors, findings.

Changes that a changed setting causes (a longer linger: fewer Produce requests) are listed below it, not on their own.
Counts are compared only if they differ by more than chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from kwire.analyze.findings import SEVERITIES, Finding, lasted
from kwire.analyze.measures import Measure
from kwire.analyze.profile import BatchProfile, Profile
from kwire.analyze.profiles import Profiles
from kwire.session.record import error_name

KINDS = ("finding", "client", "version", "setting", "error", "rate", "latency")
BRINGS = ("rate", "latency", "finding")  # kinds that may follow from a setting
CERTAIN = 4.5  # standard deviations by which two counts differ
RATIO = 1.5  # of two rates that differ
SLOWER = 2.0  # of two latencies that differ
LEAST_LATENCY = 2_000_000  # ns by which they do
MANY = 30  # latencies from which percentiles are compared
FEW = 3  # gaps, or batches, that tell a period or a size
STEADY = 1.25  # ratio of the longest and the shortest of gaps that are one period
ALIKE = 0.5  # the part of two clients' values of a setting that has to be the same
SAME_LENGTH = 1.3  # ratio of two measured lengths of time that count as the same
A_RECORD = 1.5  # records by which full batches differ in size
HELD = ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")  # whose answers wait for something
BROUGHT = {  # by setting: the measures and findings that change with it
    "linger.ms": ("Produce *", "Fetch *", "batch *", "tiny-batches"),
    "batch.size": ("Produce *", "Fetch *", "batch *", "tiny-batches"),
    "linger.ms or batch.size": ("Produce *", "Fetch *", "batch *", "tiny-batches"),
    "compression.type": ("Produce *", "Fetch *", "batch *", "uncompressed"),
    "acks": ("Produce *", "batch *"), "enable.idempotence": ("InitProducerId *", "Produce *"),
    "transactional.id": ("*",), "fetch.max.wait.ms": ("Fetch *",), "fetch.min.bytes": ("Fetch *",),
    "fetch.max.bytes": ("Fetch *", "fetch-too-small"), "max.partition.fetch.bytes": ("Fetch *", "fetch-too-small"),
    "isolation.level": ("Fetch *",), "client.rack": ("Fetch *", "rack-unset"),
    "heartbeat.interval.ms": ("Heartbeat *",), "auto.commit.interval.ms": ("OffsetCommit *",),
    "metadata.max.age.ms": ("Metadata *",), "group.protocol": ("*Group* *", "Heartbeat *", "*Heartbeat *"),
}  # fmt: skip


@dataclass(slots=True)
class Change:
    """kind: one of KINDS; whom: a client id, or empty; what: the setting, API, error or detector; before and after as
    text, empty where there was nothing; size: how large, in doublings; brought: changes that follow from it."""

    kind: str
    whom: str
    what: str
    before: str
    after: str
    size: float
    note: str = ""
    brought: list[Change] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        said = {"kind": self.kind, "client_id": self.whom or None, "what": self.what, "before": self.before or None,
                "after": self.after or None, "size": round(self.size, 2), "note": self.note or None}  # fmt: skip
        return said | {"brought": [one.row() for one in self.brought]}


class ComparedSide(NamedTuple):
    """What is compared: profiles and the findings of the doctor."""

    profiles: Profiles
    findings: Sequence[Finding] = ()


def changes(before: ComparedSide, after: ComparedSide, alone: bool = False) -> list[Change]:
    """The largest first. alone: each side is one client, whatever its name."""
    found: list[Change] = []
    pairs, gone, fresh = paired(before.profiles.clients, after.profiles.clients, alone)
    for profile in gone:
        found.append(Change("client", profile.client_id, "client", _described(profile), "", 6))
    for profile in fresh:
        found.append(Change("client", profile.client_id, "client", "", _described(profile), 6))
    for old, new in pairs:
        found += [*_versions(old, new), *_settings(old, new), *_measures(old, new)]
    found += _advertised(before.profiles, after.profiles)
    found += _findings(before.findings, after.findings, {old.client_id: new.client_id for old, new in pairs})
    return sorted(_together(found), key=lambda one: (-one.size, KINDS.index(one.kind), one.whom, one.what))


def paired(
    before: dict[str, Profile], after: dict[str, Profile], alone: bool
) -> tuple[list[tuple[Profile, Profile]], list[Profile], list[Profile]]:
    """Pairs the clients of both sides: by client id, else by client id with other numbers in it, else the only ones
    left with the same library."""
    if alone and len(before) == len(after) == 1:
        return [(*before.values(), *after.values())], [], []  # type: ignore[list-item]
    old, new = dict(before), dict(after)
    pairs: list[tuple[Profile, Profile]] = []

    def match(key: Callable[[Profile], object], single: bool) -> None:
        mine, theirs = Counter(map(key, old.values())), defaultdict[object, deque[Profile]](deque)
        for other in new.values():
            theirs[key(other)].append(other)
        for one in list(old.values()):
            alike = key(one)
            if theirs[alike] and (not single or mine[alike] == len(theirs[alike]) == 1):
                pairs.append((old.pop(one.client_id), new.pop(theirs[alike].popleft().client_id)))

    match(lambda profile: profile.client_id, True)
    match(lambda profile: _shape(profile.client_id), False)
    match(lambda profile: (_library(profile), frozenset(profile.roles)), True)
    return pairs, list(old.values()), list(new.values())


def _shape(client_id: str) -> str:
    """The client id without parts that change at each start: numbers, and hexadecimal ones of uuids."""
    return re.sub(r"\d+", "#", re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "#", client_id))


def _library(profile: Profile) -> str:
    return next(iter(profile.software), "").split(" ")[0]


def _described(profile: Profile) -> str:
    counts = sum(measure.count for measure in profile.apis.values())
    return f"{' and '.join(sorted(profile.roles)) or 'client'}, {counts:,} requests"


def _versions(old: Profile, new: Profile) -> Iterator[Change]:
    before, after = (" and ".join(sorted(one.software)) for one in (old, new))
    if before and after and before != after:
        yield Change("version", new.client_id, "client library", before, after, 5)
    for api in sorted(old.versions.keys() & new.versions.keys()):
        first, last = old.versions[api], new.versions[api]
        if first != last:
            yield Change("version", new.client_id, f"{api} version", _listed(first), _listed(last), 3)


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(values)))


def _settings(old: Profile, new: Profile) -> Iterator[Change]:
    for name in sorted(old.settings.keys() & new.settings.keys()):
        first, last = old.settings[name], new.settings[name]
        if _overlap(first, last) < ALIKE:
            before, after = _usual(first), _usual(last)
            yield Change("setting", new.client_id, name, before, after, _doublings(before, after))
    for name in sorted(old.gaps.keys() & new.gaps.keys()):
        was, became = _period(old.gaps[name]), _period(new.gaps[name])
        if was and became and max(was, became) > RATIO * min(was, became):
            before, after = str(_rounded(was / 1e6)), str(_rounded(became / 1e6))
            size = abs(math.log2(became / was))
            yield Change("setting", new.client_id, name, before, after, size, "by the time between requests")
    yield from _batching(old, new)


def _overlap(first: Counter[str], last: Counter[str]) -> float:
    """The overlap of two distributions, 0 to 1."""
    one, other = first.total(), last.total()
    return sum(min(first[value] / one, last[value] / other) for value in first.keys() & last.keys())


def _usual(values: Counter[str]) -> str:
    """The values that make up most of a distribution."""
    most = [value for value, count in values.most_common(3) if count * 5 >= values.total()]
    return ", ".join(most or [values.most_common(1)[0][0]])


def _doublings(before: str, after: str) -> float:
    """How large a change of a setting is: numbers by their ratio, words count as four doublings."""
    if re.fullmatch(r"\d+", before) and re.fullmatch(r"\d+", after) and int(before) and int(after):
        return max(abs(math.log2(int(after) / int(before))), 0.1)
    return 4


def _period(gaps: list[int]) -> float | None:
    """The length (ns) that at least half of the gaps have, roughly; None if they are irregular."""
    ordered = sorted(gap for gap in gaps if gap > 0)
    best = range(0)
    end = 0
    for start, gap in enumerate(ordered):
        while end < len(ordered) and ordered[end] <= gap * STEADY:
            end += 1
        if end - start >= len(best):
            best = range(start, end)
    if len(best) < FEW or len(best) * 2 < len(gaps):
        return None
    return ordered[best[len(best) // 2]]


def _rounded(number: float) -> int:
    """To two digits."""
    if number < 1:
        return 0
    unit: int = 10 ** max(int(math.log10(number)) - 1, 0)
    return round(number / unit) * unit


def _batching(old: Profile, new: Profile) -> Iterator[Change]:
    """Whether linger.ms or batch.size changed, judged by whether time or size closes batches."""
    first, last = old.batches, new.batches
    if len(first.records) < FEW or len(last.records) < FEW:
        return
    full = _full(first), _full(last)
    waited = [_percentile(one.spans, 0.9) for one in (first, last)]
    most = [_percentile(one.sizes, 0.9) for one in (first, last)]
    whom, same_codec = new.client_id, first.codecs.keys() == last.codecs.keys()
    sizes = most if same_codec else [_percentile(one.records, 0.9) for one in (first, last)]
    if max(sizes) < SAME_LENGTH * max(min(sizes), 1):
        return
    longer = max(waited) > SAME_LENGTH * max(min(waited), 1) and max(waited) - min(waited) > 3
    by_size = full[0] if sizes[0] < sizes[1] else full[1]  # the smaller ones' limit is what was moved
    size = abs(math.log2(max(sizes[1], 1) / max(sizes[0], 1)))
    if by_size and same_codec:
        before, after = map(str, sizes)
        yield Change("setting", whom, "batch.size", before, after, size, "by the largest batches")
    elif longer:
        smaller = first if sizes[0] < sizes[1] else last
        either = _alike(smaller) and _percentile(smaller.records, 0.9) > 1
        what = "linger.ms or batch.size" if either else "linger.ms"
        before, after = map(str, waited)
        size = abs(math.log2(max(waited[1], 1) / max(waited[0], 1)))
        yield Change("setting", whom, what, before, after, size, "at least, by the first and last record of batches")
    else:
        before, after = (f"{size:,}" for size in sizes)
        yield Change("rate", whom, f"batch {'bytes' if same_codec else 'records'}", before, after, size)


def _full(batches: BatchProfile) -> bool:
    """Whether batches are closed by their size: they are equally large, and took different times to become so."""
    return _alike(batches) and _uneven(batches.spans)


def _alike(batches: BatchProfile) -> bool:
    """Whether most batches are as large as the largest but for a record."""
    most, least = _percentile(batches.sizes, 0.9), _percentile(batches.sizes, 0.15)
    return (most - least) * _percentile(batches.records, 0.9) <= A_RECORD * most


def _uneven(spans: list[int]) -> bool:
    """Whether batches of one size took different times: no clock closed them."""
    ordered = sorted(spans)
    middle = ordered[len(ordered) // 2]
    return ordered[len(ordered) * 9 // 10] - ordered[len(ordered) // 10] > max(0.3 * middle, 2)


def _percentile(values: Sequence[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0


def _measures(old: Profile, new: Profile) -> Iterator[Change]:
    none = Measure()
    for api in sorted(old.apis.keys() | new.apis.keys()):
        first, last = old.apis.get(api, none), new.apis.get(api, none)
        yield from _rate(new.client_id, api, (first.count, old.seconds), (last.count, new.seconds))
        yield from _latency(new.client_id, api, first, last)
        for code in sorted(first.errors.keys() | last.errors.keys()):
            was, became = first.errors[code], last.errors[code]
            if (not min(was, became) and max(was, became) >= FEW) or _differ(was, first.count, became, last.count):
                before, after = (
                    f"{n:,} of {of:,}" if n else "" for n, of in ((was, first.count), (became, last.count))
                )
                size = abs(math.log2((became + 0.5) / (was + 0.5))) + 1
                yield Change("error", new.client_id, f"{api} {error_name(code)}", before, after, size)


def _rate(whom: str, api: str, first: tuple[int, float], last: tuple[int, float]) -> Iterator[Change]:
    (was, length), (became, later) = first, last
    if min(length, later) <= 0 or not _differ(was, length, became, later):
        return
    rates = was / length, became / later
    ratio = (rates[1] + 1e-9) / (rates[0] + 1e-9)
    if was and became and 1 / RATIO < ratio < RATIO:
        return
    before, after = (f"{rate:,.1f} a second" if rate else "" for rate in rates)
    yield Change("rate", whom, f"{api} requests", before, after, min(abs(math.log2(ratio)), 6))


def _differ(one: int, room: float, other: int, later: float) -> bool:
    """Whether two counts differ by more than chance, in relation to how long each side lasted."""
    both = one + other
    if not both or not room or not later:
        return False
    share = room / (room + later)
    return abs(one - both * share) > CERTAIN * math.sqrt(both * share * (1 - share)) and both > 8


def _latency(whom: str, api: str, first: Measure, last: Measure) -> Iterator[Change]:
    if api in HELD or min(first.latencies.count, last.latencies.count) < MANY:
        return
    for share in (0.5, 0.9):
        was, became = (one.latencies.percentile(share) or 0 for one in (first, last))
        if abs(became - was) > LEAST_LATENCY and max(was, became) > SLOWER * max(min(was, became), 1):
            size = abs(math.log2(max(became, 1) / max(was, 1)))
            yield Change("latency", whom, f"{api} latency, p{share * 100:.0f}", lasted(was), lasted(became), size)
            return


def _advertised(before: Profiles, after: Profiles) -> Iterator[Change]:
    if not before.advertised or not after.advertised:
        return
    names = before.advertised.keys() | after.advertised.keys()
    for api in sorted(names):
        was, became = before.advertised.get(api), after.advertised.get(api)
        if was != became:
            first, last = (f"{one[0]} to {one[1]}" if one else "" for one in (was, became))
            yield Change("version", "", f"brokers' {api}", first, last, 2)


def _findings(before: Sequence[Finding], after: Sequence[Finding], names: dict[str, str]) -> Iterator[Change]:
    """Findings of only one side; numbers in their texts are ignored."""

    def key(finding: Finding, renamed: bool) -> tuple[str, ...]:
        about = {name: str(value) for name, value in finding.about.items() if name in ("client_id", "group", "topic")}
        if renamed and "client_id" in about:
            about["client_id"] = names.get(about["client_id"], about["client_id"])
        return finding.detector, finding.severity, *sorted(_shape(text) for text in about.values())

    was = {key(one, True): one for one in before}
    became = {key(one, False): one for one in after}
    for place, finding in became.items():
        if place not in was:
            yield Change("finding", str(finding.about.get("client_id", "")), finding.detector, "", finding.what,
                         _weight(finding))  # fmt: skip
    for place, finding in was.items():
        if place not in became:
            yield Change("finding", str(finding.about.get("client_id", "")), finding.detector, finding.what, "",
                         _weight(finding) - 1)  # fmt: skip


def _weight(finding: Finding) -> float:
    return (9.0, 7.0, 2.5)[SEVERITIES.index(finding.severity)]


def _together(found: list[Change]) -> list[Change]:
    """Puts changes that a changed setting causes below it."""
    settings = [one for one in found if one.kind == "setting"]
    left = []
    for one in found:
        cause = next((s for s in settings if _brings(s, one)), None) if one.kind in BRINGS else None
        if cause is not None:
            cause.brought.append(one)
        else:
            left.append(one)
    return left


def _brings(setting: Change, measure: Change) -> bool:
    return any(fnmatchcase(measure.what, pattern) for pattern in BROUGHT.get(setting.what, ()))
