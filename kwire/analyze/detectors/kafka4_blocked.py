"""Clients that brokers of Kafka 4 refuse: what kwire audit says, in one finding.

Sees the versions of all requests and the magic of produced batches against what 4.0 takes (KIP-896, KIP-724). It is a
note as long as the upgrade is far, and a warning where the brokers are 3.9, after which the next release is the one
that refuses, or 4.x already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.audit import BLOCKED, Audit, ClientVerdict
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding
from kwire.analyze.offers import FOUR, Release, known_releases
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch

LAST_BEFORE = (3, 9)
SHOWN = 3


class Blocked(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.audit = Audit()

    def batch(self, batch: ExchangeBatch) -> None:
        self.audit.add(batch)

    def findings(self) -> Iterator[Finding]:
        releases = [found for broker in self.audit.offered if (found := self.audit.release_of(broker))]
        blocked = self._blocked(max([FOUR, *releases]))  # what brokers of 4.x take that are there is not asked of 4.0
        if not releases:  # a client may speak to 4.x already: what is too new for 4.0 is not too old
            still = {id(one.speaker) for one in self._blocked(known_releases()[-1])}
            blocked = [one for one in blocked if id(one.speaker) in still]
        if not blocked:
            return
        near = bool(releases) and max(releases) >= LAST_BEFORE
        first = min(blocked, key=lambda one: one.speaker.first).speaker
        named = ", ".join(one.speaker.client_id or "a client without an id" for one in blocked[:SHOWN])
        named += f" and {len(blocked) - SHOWN:,} more" if len(blocked) > SHOWN else ""
        what = (
            f"{counted(len(blocked), 'client')} speak{'s' if len(blocked) == 1 else ''} versions that Kafka 4 refuses: "
        )
        what += f"{named} ({blocked[0].by[0].words()})"
        if near:
            what += f"; the brokers offer what {max(releases)[0]}.{max(releases)[1]} does"
        about: dict[str, str | int] = {}
        if len(blocked) == 1:
            about = {"client_id": first.client_id, "address": min(first.addresses)}
            about |= {"api": blocked[0].by[0].api}
        cures = dict.fromkeys(one.cure for one in blocked)
        cure = f"; here {next(iter(cures))}" if len(cures) == 1 else ""
        proofs = [proof for one in blocked for block in one.by for proof in block.proofs[:1]]
        yield Finding(
            "warning" if near else "note", what, tuple(dict.fromkeys(proofs))[:8],
            f"kwire audit names each with what cures it{cure}.", time=first.first,
            last=max(one.speaker.last for one in blocked), count=len(blocked),
            about={name: value for name, value in about.items() if value},
            otherwise="these clients go before the brokers are upgraded",
        )  # fmt: skip

    def _blocked(self, release: Release) -> list[ClientVerdict]:
        return [one for one in self.audit.verdicts(release) if one.verdict == BLOCKED]


DETECTOR = Detector(
    "clients that Kafka 4 refuses",
    watch=Blocked,
    fields="API keys and versions of all requests; magic of produced batches; ApiVersions: ApiKeys",
    source="KIP-896, KIP-724; the ranges of Kafka 4.0's message definitions",
    means="The client asks for versions that Kafka 4 takes no more: its connections will be closed without an answer.",
    proof="A request of that version, which is the newest that the client has or is pinned to.",
    advice="Upgrade the client's library before the brokers; see kwire audit.",
    batches=True,
    needs=("requests",),
)
