"""Everything that detectors need, collected in one pass over a capture's batches and connections."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.calls import KEYS as GROUP_KEYS
from kwire.analyze.cluster import KEYS as CLUSTER_KEYS
from kwire.analyze.cluster import ClusterHistory
from kwire.analyze.connect_attempts import ConnectAttempts
from kwire.analyze.coverage import Coverage
from kwire.analyze.facts import Fact, Troubles
from kwire.analyze.findings import SEVERITIES, Finding, TimeFormat
from kwire.analyze.groups import GroupHistories
from kwire.analyze.participants import Participants
from kwire.analyze.revocations import HEARTBEATS, Revocations
from kwire.analyze.verdicts import Judgement, VerdictLimits, judge
from kwire.analyze.work import Works
from kwire.codec.quality import QUALITY_CODES, Quality
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, LIST_OFFSETS
from kwire.session.equal_bodies import EqualBodies

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo

OF_GROUPS = frozenset({*GROUP_KEYS, API_VERSIONS})
KEYS = OF_GROUPS | {*CLUSTER_KEYS}
KEPT = KEYS | {LIST_OFFSETS}  # of which detectors ask for every exchange too, and whose answers are short
MOST_PACKETS = 12  # of several findings that are told as one
SOON = 5_000_000_000  # ns before the end of a capture in which nothing need have followed


class Case:
    """add(batch) in the order of time, close(connection), then finish(). start and end: of the exchanges, ns.
    time_of_day: how moments are told, else as seconds from the start; replay: as GroupHistories has it."""

    def __init__(self, time_of_day: bool = False, replay: bool = False) -> None:
        self.time_of_day = time_of_day
        self.coverage = Coverage()
        self.troubles = Troubles()
        self.attempts = ConnectAttempts()
        self.cluster = ClusterHistory()
        self.participants = Participants()
        self.groups = GroupHistories(replay=replay)
        self.revocations = Revocations()
        self.works = Works()
        self.bodies = EqualBodies()
        self.group_findings: list[Finding] = []
        self.limits = VerdictLimits()  # limits for the histories of groups; detectors set theirs
        self.judgement: Judgement | None = None
        self.start: int | None = None
        self.end = 0
        self.messages = 0

    def add(self, batch: ExchangeBatch) -> list[Fact]:
        """Adds a batch; returns its failures."""
        if not len(batch):
            return []
        request, response = batch.request, batch.response
        first = int(batch.time.min())
        self.start = first if self.start is None else min(self.start, first)
        self.end = max(self.end, int(request.last_time.max()), int(response.last_time.max()))
        self.messages += int(request.there.sum()) + int(response.there.sum())
        latency = batch.latency
        self.coverage.negative += int((latency < 0).sum())
        self.coverage.most_negative = min(self.coverage.most_negative, int(latency.min()))
        self.coverage.cut += cut_by_snaplen(batch)
        batch.keep(rows_of(batch, KEPT), self.bodies)
        self.participants.add(batch)
        facts = self.troubles.add(batch)
        refused = deque(fact for fact in facts if fact.code == codes.NOT_LEADER_OR_FOLLOWER)
        self.groups.activity.add_batch(batch)
        for row in rows_of(batch, KEYS):
            exchange = batch[row]
            kind = exchange.first.api
            if kind is not None and kind.key in CLUSTER_KEYS:
                self._refused(refused, exchange.time)
                self.cluster.exchange(exchange)
            if kind is not None and kind.key in OF_GROUPS:
                self.groups.follow(exchange)
            if kind is not None and kind.key in HEARTBEATS:
                self.revocations.exchange(exchange)
        self._refused(refused, self.end)
        return facts

    def _refused(self, facts: deque[Fact], until: int) -> None:
        """Notes the leaders that other brokers named when they refused requests, up to a time (ns)."""
        while facts and facts[0].time <= until:
            exchange = facts.popleft().exchange
            if exchange is not None:
                self.cluster.refused(exchange)

    def close(self, connection: ConnectionInfo) -> ConnectionCoverage:
        """Adds a connection that has ended."""
        coverage = self.coverage.close(connection)
        if not connection.twin_of:
            self.attempts.close(connection)
            self.groups.activity.close(connection, coverage)
        if not connection.resumed:
            self.start = min(self.start or connection.tcp.first_time, connection.tcp.first_time)
        self.end = max(self.end, connection.tcp.last_time)
        return coverage

    def finish(self) -> None:
        """Ends the collection."""
        self.groups.finish()
        self.judgement = judge(self.groups, self.clock, self.limits, self.coverage)
        self.group_findings = [one for _, _, found in self.judgement.groups for one in found]

    def of_groups(self, detector: str) -> list[Finding]:
        """The findings that a detector gets from the histories of groups; those that differ only in time as one."""
        together: dict[tuple[tuple[str, str | int], ...], list[Finding]] = {}
        for one in self.group_findings:
            if one.detector == detector:
                together.setdefault(tuple(one.about.items()), []).append(one)
        return [_merged(found) for found in together.values()]

    @property
    def clock(self) -> TimeFormat:
        """Times count from the first packet that was read, or are of the day."""
        return TimeFormat(None if self.time_of_day else self.start or 0)

    def shows_after(self, time: int) -> bool:
        """Whether the capture lasts long enough after a time (ns) to show what should have followed."""
        return self.end - time > SOON


def cut_by_snaplen(batch: ExchangeBatch) -> int:
    """How many exchanges have a message that is cut, on connections of which the snaplen cut packets: a close in the
    midst of a message cuts it too."""
    code = QUALITY_CODES[Quality.TRUNCATED]
    rows = np.flatnonzero((batch.request.quality == code) | (batch.response.quality == code))
    short = [any(stream.cut for stream in connection.tcp.streams) for connection in batch.connections]
    return int(np.array(short, bool)[batch.connection[rows]].sum()) if len(rows) else 0


def _merged(found: list[Finding]) -> Finding:
    """Merges findings about the same thing: text of the worst, packets of all."""
    if len(found) == 1:
        return found[0]
    found = sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.time))
    last = max(one.time if one.last is None else one.last for one in found)
    evidence = tuple(dict.fromkeys(ref for one in found for ref in one.evidence))[:MOST_PACKETS]
    more = "; and once more" if len(found) == 2 else f"; and {len(found) - 1:,} times more"
    return replace(found[0], what=found[0].what + more, time=min(one.time for one in found), last=last,
                   count=sum(one.count for one in found), evidence=evidence)  # fmt: skip


def rows_of(batch: ExchangeBatch, keys: set[int] | frozenset[int]) -> list[int]:
    """The rows of these API keys."""
    wanted = np.array([kind is not None and kind.key in keys for kind in batch.kinds], bool)
    rows: list[int] = np.flatnonzero(wanted[batch.kind]).tolist() if wanted.any() else []
    return rows
