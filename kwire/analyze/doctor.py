"""Runs all detectors over captures in one pass: what they found, worst first, and what they looked for and did not
find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.alike import gathered
from kwire.analyze.case import Case, rows_of
from kwire.analyze.consequences import with_causes
from kwire.analyze.coverage import STEP
from kwire.analyze.detectors import Detector, Watch, detector, names
from kwire.analyze.findings import SEVERITIES, Finding, TimeFormat
from kwire.errors import UnknownDetector
from kwire.session.decoded import Decoded

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo

LACKING = {  # what a detector needs of a capture, and what is said where it lacks that
    "requests": "the capture holds no client's packets", "answers": "the capture holds no broker's packets",
    "readable": "nothing but TLS that cannot be read",
}  # fmt: skip
CLOCK = "clock"  # what detectors need whose findings are lengths of time or rates, from the first time to the last
SHARE = 10  # a clock that was set back by less than so large a part of a length leaves it about as long
Limits = Mapping[str, Mapping[str, float]]  # thresholds by detector


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """findings: worst first, then by time; quiet: detectors that found nothing; blind: those that the capture gave too
    little to judge, with the reason."""

    case: Case
    findings: list[Finding]
    quiet: list[str]
    blind: list[tuple[str, str]]

    @property
    def clock(self) -> TimeFormat:
        return self.case.clock

    def gathered(self) -> Diagnosis:
        """The same, findings that are alike as one."""
        return replace(self, findings=in_order(gathered(self.findings)))

    @property
    def grave(self) -> bool:
        """Whether a finding is an error."""
        return any(one.severity == SEVERITIES[0] for one in self.findings)


class Doctor:
    """add(batch) in the order of time, close(connection) of each connection that is over, then diagnose(). time_of_day:
    how moments are told, else as seconds from the first packet; replay: as Groups has it."""

    def __init__(
        self, chosen: Iterable[str] | None = None, limits: Limits | None = None, time_of_day: bool = False,
        replay: bool = False,
    ) -> None:  # fmt: skip
        self.case = Case(time_of_day, replay)
        self.watches: dict[str, tuple[Detector, Watch]] = {}
        for name in chosen if chosen is not None else names():
            found = detector(name)
            given = (limits or {}).get(name, {})
            self.watches[name] = found, found.watch(self.case, {**found.thresholds, **given})
        watches = list(self.watches.values())
        self._connections = [watch.connection for found, watch in watches if found.connections]
        self._batches = [watch.batch for found, watch in watches if found.batches]
        self._exchanges = [(frozenset(found.exchanges), watch.exchange) for found, watch in watches if found.exchanges]
        self._bodies = [(frozenset(found.bodies), watch.columns) for found, watch in watches if found.bodies]

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        if not len(batch):
            return
        self.case.add(batch)
        for take in self._batches:
            take(batch)
        for keys, each in self._exchanges:
            for row in rows_of(batch, keys):
                each(batch[row])
        if self._bodies:
            self._decode(batch)

    def _decode(self, batch: ExchangeBatch) -> None:
        decoded = Decoded(batch)
        there = np.unique(batch.kind).tolist()
        for number in there:
            kind = batch.kinds[number]
            if kind is None or not kind.supported:
                continue
            takers: list[Callable[[Decoded, int], None]] = [take for keys, take in self._bodies if kind.key in keys]
            for take in takers:
                take(decoded, number)

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over."""
        coverage = self.case.close(connection)
        if connection.twin_of:
            return
        for take in self._connections:
            take(connection, coverage)

    def diagnose(self) -> Diagnosis:
        """All is read."""
        self.case.finish()
        found: list[Finding] = []
        quiet, blind = [], []
        for name, (of, watch) in self.watches.items():
            lack = next((LACKING[need] for need in of.needs if need in LACKING and not self._holds(need)), None)
            mine = [replace(one, detector=name) for one in watch.findings()] if lack is None else []
            if CLOCK in of.needs:
                told = {id(one): self._stepped(one) for one in mine}
                lack = next((why for why in told.values() if why), None) if all(told.values()) else None
                mine = [one for one in mine if not told[id(one)]]
            found += mine
            if lack is not None:
                blind.append((name, lack))
            elif not mine:
                quiet.append(name)
        return Diagnosis(self.case, in_order(with_causes(found)), quiet, blind)

    def _stepped(self, one: Finding) -> str:
        """Where the capture's clock was set back so far that the finding's length of time is not known; or empty."""
        last = one.time if one.last is None else one.last
        found = self.case.coverage.stepped(one.time, last, max(STEP, (last - one.time) // SHARE))
        return "" if found is None else found[0]

    def _holds(self, need: str) -> bool:
        coverage = self.case.coverage
        if need == "readable":
            return not coverage.encrypted or coverage.encrypted < coverage.connections
        return coverage.one_sided != {"requests": "broker only", "answers": "client only"}[need]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Worst first, then by time."""
    return sorted(findings, key=lambda one: (SEVERITIES.index(one.severity), one.time, one.detector))


def chosen(only: Iterable[str], skipped: Iterable[str]) -> list[str]:
    """The detectors to run: only these, or all, without the skipped ones. Raises UnknownDetector."""
    wanted, without = list(only), list(skipped)
    for name in (*wanted, *without):
        check(name)
    return [name for name in names() if (not wanted or name in wanted) and name not in without]


def limits_of(settings: Iterable[str]) -> dict[str, dict[str, float]]:
    """Parses thresholds written as NAME.threshold=VALUE. Raises UnknownDetector."""
    out: dict[str, dict[str, float]] = {}
    for setting in settings:
        path, _, value = setting.partition("=")
        name, _, threshold = path.partition(".")
        check(name)
        there = detector(name).thresholds
        if threshold not in there:
            known = ", ".join(f"{name}.{one}" for one in there) or "none"
            raise UnknownDetector(f"no threshold {path or setting}; {name} has {known}")
        try:
            out.setdefault(name, {})[threshold] = float(value)
        except ValueError:
            raise UnknownDetector(f"{path} is a number, and not {value or 'nothing'}") from None
    return out


def check(name: str) -> None:
    """Raises UnknownDetector, with the nearest names, for an unknown name."""
    if name not in names():
        import difflib

        near = difflib.get_close_matches(name, names(), 2, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else " (kwire doctor --list names all)"
        raise UnknownDetector(f"no detector {name}{hint}")
