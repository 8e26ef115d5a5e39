"""The tables findings and audit: what kwire doctor and kwire audit say, as rows.

Both judge a whole capture: they need its batches in time order, in one process, and have rows only at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from kwire.analyze.audit import COMING, Audit, ClientVerdict
from kwire.analyze.doctor import Doctor
from kwire.analyze.findings import ABOUT, Finding
from kwire.analyze.offers import Release, known_releases
from kwire.session.batch import ExchangeBatch
from kwire.session.connection_info import ConnectionInfo

Row = dict[str, Any]


class Judgements:
    """Call add(batch) and close(connection), as for Doctor, then rows(). names: which of the two tables."""

    def __init__(self, names: Collection[str]) -> None:
        self._doctor = Doctor() if "findings" in names else None
        self._audit = Audit() if "audit" in names else None

    def add(self, batch: ExchangeBatch) -> None:
        """Adds exchanges."""
        if self._doctor is not None:
            self._doctor.add(batch)
        if self._audit is not None:
            self._audit.add(batch)

    def close(self, connection: ConnectionInfo) -> None:
        """Adds a connection that has ended."""
        if self._doctor is not None:
            self._doctor.close(connection)

    def rows(self) -> Iterator[tuple[str, Row]]:
        """(table name, row) of all rows, after everything was read."""
        if self._doctor is not None:
            for finding in self._doctor.diagnose().gathered().findings:
                yield "findings", finding_row(finding)
        if self._audit is not None:
            for release in (one for one in known_releases() if one >= COMING):
                for verdict in self._audit.verdicts(release):
                    yield "audit", audit_row(verdict, release)


def finding_row(finding: Finding) -> Row:
    """A row of the table findings."""
    row = finding.record()
    about = row.pop("about")
    broker = about.get("broker")
    about |= {} if broker is None else {"broker": str(broker)}
    among = [{"name": name, "values": list(map(str, values))} for name, values in row["among"].items()]
    return row | {"among": among} | {f"about_{name}": about.get(name) for name in ABOUT}


def audit_row(verdict: ClientVerdict, release: Release) -> Row:
    """A row of the table audit: how brokers of a release treat a client."""
    row = verdict.row()
    blocked = row.pop("blocked_by")
    return row | {
        "release": ".".join(map(str, release)),
        "blocked_by": [{"api": one["api"], "versions": one["versions"]} for one in blocked if one["versions"]],
        "negotiated": [{"api": one["api"], "versions": one["versions"]} for one in row["negotiated"]],
        "blocked_magic": sorted({magic for one in blocked for magic in one.get("magic", ())}),
        "packets": list(dict.fromkeys(packet for one in blocked for packet in one["packets"])),
        "why": row["why"] or None,
    }  # fmt: skip
