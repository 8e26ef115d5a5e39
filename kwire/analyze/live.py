"""A doctor of traffic that goes on: what it finds as it becomes certain, in memory that is bounded for days.

A look judges all that was seen so far as if the capture ended there, in a copy, so that what follows is judged as if
nobody had looked. What two looks in a row find is certain enough to be told. After AGE, or when it keeps more than
MOST_BYTES, the doctor begins anew: facts from before are let go, connections that go on count as begun before, and what
was found stays for the summary.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

from kwire.analyze.alike import gathered
from kwire.analyze.case import MOST_PACKETS, Case
from kwire.analyze.detectors import Detector
from kwire.analyze.doctor import Diagnosis, Doctor, Limits
from kwire.analyze.findings import SECOND, SEVERITIES, Finding, worst_first
from kwire.session.batch import ExchangeBatch
from kwire.session.connection_info import ConnectionInfo
from kwire.session.exchange import Exchange

AGE = 3600 * SECOND  # ns after which facts are let go
MOST_BYTES = 64 << 20  # of what a doctor keeps, as pickle writes it
MOST_FOUND = 5_000  # findings that are kept for the summary
AGAIN = 60 * SECOND  # ns after which a count that grew is said again
SHARED = (ConnectionInfo, Exchange, ExchangeBatch, Detector)  # what a copy of a doctor has in common with it
Key = tuple[str, tuple[tuple[str, str | int], ...], int]


class ToldFinding(NamedTuple):
    """A finding to be shown. before: as it was told last, None of a new one; gone: what followed shows that it is not
    so."""

    finding: Finding
    before: Finding | None = None
    gone: bool = False


def gathered_news(told: Iterable[ToldFinding]) -> list[ToldFinding]:
    """For a person to read: new findings that are alike as one, then what became of others."""
    told = list(told)
    new = [one.finding for one in told if one.before is None and not one.gone]
    return [*map(ToldFinding, gathered(new)), *(one for one in told if one.before is not None or one.gone)]


class LiveDoctor:
    """add(batch) and close(connection) as Doctor has them; look(open) from time to time; diagnose(open) at the end.

    open: connections that are not over. cost: bytes that the doctor keeps, as of the last look; aged: up to when facts
    were let go, ns, None as long as all are there.
    """

    def __init__(self, chosen: Iterable[str] | None = None, limits: Limits | None = None, age: int = AGE) -> None:
        self._given = (None if chosen is None else list(chosen), limits)
        self._age = age
        self._doctor = Doctor(*self._given, time_of_day=True)
        self._found: dict[Key, Finding] = {}  # by doctors before this one
        self._told: dict[Key, Finding] = {}
        self._past: Case | None = None  # what was seen by doctors before, summed up
        self._likely: set[Key] = set()  # what the last look found
        self._fresh = False  # whether anything came since the last look
        self.cost = 0
        self.aged: int | None = None
        self.unkept = 0  # findings for which there was no room
        self.untold: list[Finding] = []  # of a diagnosis, what no look told like that

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        self._doctor.add(batch)
        self._fresh = self._fresh or len(batch) > 0

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over."""
        self._doctor.close(connection)
        self._fresh = True

    def look(self, open_: Iterable[ConnectionInfo]) -> list[ToldFinding]:
        """What is new, worse, better or more often by now."""
        if not self._fresh:
            return []
        self._fresh = False
        open_ = list(open_)
        found = self._keyed(self._judged(self._copy(), open_))
        told = list(self._news(found))
        start, end = self._doctor.case.start, self._doctor.case.end
        if self.cost > MOST_BYTES or (start is not None and end - start > self._age):
            self._renew(open_)
        return told

    def diagnose(self, open_: Iterable[ConnectionInfo]) -> Diagnosis:
        """All that was found. The doctor is not to be used any more."""
        diagnosis = self._judged(self._doctor, open_)
        found = self._keyed(diagnosis)
        self._sum_up(diagnosis.case)
        whole = self._found | found
        self.untold = [one for key, one in whole.items() if self._told.get(key) != one]
        findings = worst_first(whole.values())
        names = {one.detector for one in findings}
        quiet = [name for name in diagnosis.quiet if name not in names]
        return Diagnosis(diagnosis.case, findings, quiet, [one for one in diagnosis.blind if one[0] not in names])

    def _copy(self) -> Doctor:
        data = BytesIO()
        pickler = _Pickler(data)
        pickler.dump(self._doctor)
        self.cost = data.tell()
        data.seek(0)
        made = _Unpickler(data, pickler.shared).load()
        assert isinstance(made, Doctor)
        return made

    @staticmethod
    def _judged(doctor: Doctor, open_: Iterable[ConnectionInfo]) -> Diagnosis:
        for connection in open_:
            doctor.close(connection)
        return doctor.diagnose()

    def _keyed(self, diagnosis: Diagnosis) -> dict[Key, Finding]:
        """Findings by what they are about, each with what doctors before found of the same."""
        seen: Counter[tuple[str, tuple[tuple[str, str | int], ...]]] = Counter()
        out: dict[Key, Finding] = {}
        for one in diagnosis.findings:
            about = one.detector, tuple(sorted(one.about.items()))
            key = *about, seen[about]
            seen[about] += 1
            before = self._found.get(key)
            out[key] = one if before is None else joined(before, one)
        return out

    def _news(self, found: dict[Key, Finding]) -> Iterator[ToldFinding]:
        likely, self._likely = self._likely, set(found)
        for key, one in found.items():
            before = self._told.get(key)
            if before is None and key not in likely:
                continue
            if before is not None and before.severity == one.severity:
                since = last_of(one) - last_of(before)
                if one.count < 2 * before.count and (one.count <= before.count or since < AGAIN):
                    continue
            self._told[key] = one
            yield ToldFinding(one, before)
        for key in [key for key in self._told if key not in found and key not in self._found]:
            yield ToldFinding(self._told.pop(key), gone=True)

    def _renew(self, open_: list[ConnectionInfo]) -> None:
        diagnosis = self._judged(self._doctor, open_)
        self._found |= self._keyed(diagnosis)
        rest = sorted(self._found.items(), key=lambda item: (SEVERITIES.index(item[1].severity), -last_of(item[1])))
        self.unkept += max(len(rest) - MOST_FOUND, 0)
        self._found = dict(rest[:MOST_FOUND])
        self._told = {key: one for key, one in self._told.items() if key in self._found}
        self._sum_up(diagnosis.case)
        self._past = diagnosis.case
        self.aged = diagnosis.case.end
        for connection in open_:
            connection.resumed = True
        self._doctor = Doctor(*self._given, time_of_day=True)

    def _sum_up(self, case: Case) -> None:
        """Adds what was seen before to what the first line of a diagnosis says."""
        past, seen = self._past, case.coverage
        if past is None:
            return
        case.start = past.start if case.start is None else min(case.start, past.start or case.start)
        case.end = max(case.end, past.end)
        case.messages += past.messages
        seen.connections += past.coverage.connections
        seen.midstream += past.coverage.midstream


def joined(before: Finding, now: Finding) -> Finding:
    """The same, found earlier and now, as one: the newer tells, the counts are added up."""
    evidence = tuple(dict.fromkeys((*before.evidence, *now.evidence)))[:MOST_PACKETS]
    return replace(now, time=min(before.time, now.time), last=max(last_of(before), last_of(now)), evidence=evidence,
                   count=before.count + now.count)  # fmt: skip


def last_of(finding: Finding) -> int:
    """When it was seen last, ns."""
    return finding.time if finding.last is None else finding.last


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.shared: list[Any] = []

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, SHARED):
            return None
        self.shared.append(obj)
        return len(self.shared) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: Any) -> Any:
        return self._shared[number]
