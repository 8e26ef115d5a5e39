"""Detectors: each turns what a capture shows into findings of one kind. A file a detector; adding one touches nothing
else.

A detector's file is named as the detector, with _ for -: login_fails.py is login-fails. Its opening paragraph says what
it sees, on which fields, by whose rule. It holds one DETECTOR, and a Watch that judges when the capture is read:

    class Denied(Watch):
        def findings(self) -> Iterator[Finding]:
            for trouble in self.case.troubles.of(29, 30, 31):          # facts, grouped: see analyze/facts.py
                if trouble.count >= self.limit("least"):
                    yield Finding("error", "…", tuple(trouble.samples), "…", about=trouble.about, …)

    DETECTOR = Detector("clients without a right", watch=Denied, thresholds={"least": 1}, …)

What all detectors have, in self.case (analyze/case.py): coverage (what the capture can have seen: ask before saying
"never"), troubles (errors by element, with how long and whether they were over), attempts (to connect), cluster
(addresses, leaders, coordinators that answers told), participants (who is a consumer, an admin client, a
broker), groups (group_findings), start and end.

What a detector needs besides it gets while the capture is read, once, in the order of time, by naming it:

- exchanges=(METADATA, …): exchange(exchange) for each exchange of these API keys (schema/keys.py). Objects: only for
  APIs that are seldom.
- bodies=(PRODUCE, FETCH): columns(decoded, number) for each batch and kind of these keys: decoded.requests(number)
  and decoded.responses(number) have the bodies of all exchanges as columns (see session/decoded.py).
- batches=True: batch(batch) for every batch: its columns without bodies (times, sizes, kinds, latency).
- connections=True: connection(connection, coverage) for each connection when it is over.

A Watch keeps what it needs within bounds: counts by client, topic or group, never a list of all that came. A Finding
names its element in about, holds in evidence packets that show the fact, says in otherwise what would prove it wrong
(a clause that follows "not so if").
Severity follows from what came next: error: it does not work; warning: it works badly, or will not; note: good to know.
needs says what the capture must hold for the detector to judge: requests, answers, readable ones; and clock, where
findings are lengths of time or rates: those are not told between whose times the capture's clock was set back.
event is for events of the cluster, from which other findings follow: the lower, the nearer to the root, 0 for all else.
What follows from events names the brokers on which it depends (analyze/consequences.py).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.analyze.findings import Finding
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange


class Watch:
    """What a detector keeps while a capture is read, and what it makes of it. limits: its thresholds."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        self.case, self._limits = case, limits

    def limit(self, name: str) -> float:
        """A threshold."""
        return self._limits[name]

    def exchange(self, exchange: Exchange) -> None:
        """An exchange of the APIs in exchanges."""

    def columns(self, decoded: Decoded, number: int) -> None:
        """A batch's exchanges of a kind, by its number there."""

    def batch(self, batch: ExchangeBatch) -> None:
        """All exchanges of a batch."""

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        """A connection that is over, or was open when the capture ended."""

    def findings(self) -> Iterable[Finding]:
        """All is read."""
        return ()


@dataclass(frozen=True, slots=True)
class Detector:
    """looks_for: in a few words, as they stand in the list of what was looked for; fields: on which fields; source: a
    KIP, a class, a documented default; means, proof, advice: for kwire explain. The rest: see above."""

    looks_for: str
    watch: Callable[[Case, Mapping[str, float]], Watch]
    fields: str
    source: str
    means: str
    proof: str
    advice: str
    thresholds: Mapping[str, float] = field(default_factory=dict)
    exchanges: tuple[int, ...] = ()
    bodies: tuple[int, ...] = ()
    batches: bool = False
    connections: bool = False
    needs: tuple[str, ...] = ()
    event: int = 0


@cache
def names() -> tuple[str, ...]:
    """All detectors' names. Imports none of them."""
    return tuple(sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__)))


@cache
def detector(name: str) -> Detector:
    """A detector by its name. Raises KeyError."""
    if name not in names():
        raise KeyError(name)
    found = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").DETECTOR
    assert isinstance(found, Detector)
    return found
