"""Fetch sessions that do not last: the broker has more readers than sessions to keep.

Sees FETCH_SESSION_ID_NOT_FOUND (70), INVALID_FETCH_SESSION_EPOCH (71) and FETCH_SESSION_TOPIC_ID_ERROR (106) in answers
to Fetch (KIP-227). A client then fetches all its partitions anew; one of them after a broker's restart is usual."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, lasted
from kwire.counted import counted
from kwire.schema import codes

LOST = (codes.FETCH_SESSION_ID_NOT_FOUND, codes.INVALID_FETCH_SESSION_EPOCH, codes.FETCH_SESSION_TOPIC_ID_ERROR)
MINUTE = 60_000_000_000


class Thrash(Watch):
    def findings(self) -> Iterator[Finding]:
        by_broker: dict[str, list[Trouble]] = {}
        for trouble in self.case.troubles.of(*LOST):
            by_broker.setdefault(trouble.fact.broker, []).append(trouble)
        for broker, troubles in by_broker.items():
            count = sum(one.count for one in troubles)
            first, last = min(one.fact.time for one in troubles), max(one.last.time for one in troubles)
            clients = {(one.fact.client_id, one.fact.host) for one in troubles}
            minutes = max((last - first) / MINUTE, 1)
            if count / minutes < self.limit("least") * len(clients):
                continue
            errors = sorted({one.fact.error for one in troubles})
            what = f"broker {broker} lost fetch sessions {counted(count, 'time')} in {lasted(last - first)}, of "
            what += f"{counted(len(clients), 'client')}: {' and '.join(errors)}"
            advice = (
                "More readers than max.incremental.fetch.session.cache.slots (1,000): raise it on the brokers. Each "
            )
            advice += "loss costs a full fetch of all partitions."
            about: dict[str, str | int] = {"broker": broker, "api": "Fetch"}
            if len(clients) == 1:
                about |= {"client_id": troubles[0].fact.client_id, "address": troubles[0].fact.host}
            proofs = sorted((proof for one in troubles for proof in one.samples), key=lambda proof: proof.time)
            yield Finding(
                "warning",
                what,
                tuple(proofs[:8]),
                advice,
                time=first,
                last=last,
                about=about,
                count=count,
                otherwise="the broker was restarted again and again, which loses each session once",
            )


DETECTOR = Detector(
    "fetch sessions that brokers forget",
    watch=Thrash,
    fields="Fetch: ErrorCode 70, 71, 106",
    source="KIP-227; max.incremental.fetch.session.cache.slots=1000, FetchManager",
    means="A broker drops clients' fetch sessions to make room for others, so that they fetch everything anew.",
    proof="Answers to Fetch with the error, of the same clients again and again.",
    advice="Raise max.incremental.fetch.session.cache.slots.",
    thresholds={"least": 3},
    needs=("clock",),
)
