"""Clients that ask for metadata far more often than anything changes.

Sees Metadata requests of which the answer is, throttle time aside, that which the same client got to the same question
before. Usual is one in metadata.max.age.ms (five minutes), some at the start, and a burst when leaders move. A client
also asks after each connection that fails: one that cannot reach a broker gets a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, about
from kwire.analyze.participants import BROKER, Participant
from kwire.counted import counted


class MetadataStorm(Watch):
    def findings(self) -> Iterator[Finding]:
        for (client, host), asking in self.case.cluster.asking.items():
            who = self.case.participants.known.get((client, host)) or Participant(client, host)
            begun, ended = asking.most_from, asking.most_to
            if asking.most < self.limit("per_minute") or who.role == BROKER or begun is None or ended is None:
                continue
            most = sorted(asking.wanted, key=lambda name: -asking.wanted[name])[:3]
            topics = f" about {', '.join(most)}" if most else ""
            missing = [
                one for one in self.case.troubles.of(3, 5, 17, 29, 100)
                if (one.fact.client_id, one.fact.host) == (client, host)
            ]  # fmt: skip
            why = (
                f"; it gets {missing[0].fact.error} for {missing[0].fact.about.get('topic', 'a topic')}"
                if missing
                else ""
            )
            vain = [
                one for one in self.case.attempts.known.values()
                if one.host == host and one.failed and one.first <= ended.time and one.last >= begun.time
            ]  # fmt: skip
            unreached = sum(one.failed for one in vain) * 2 >= asking.most
            if unreached:
                why += f"; it asks after each connection to {vain[0].target} that fails"
            what = f"{who.label} asks for metadata {counted(asking.most, 'time')} within a minute{topics}, "
            what += "and nothing changed"
            advice = (
                "See what it asks for in vain; without errors, a newer client, or one client for the whole process."
            )
            severity = "note" if unreached else "warning"
            yield Finding(
                severity, what + why, (begun, ended), advice, time=begun.time, last=ended.time,
                about=about(client_id=client, address=host), count=asking.unchanged,
                otherwise="many processes share that client id and address",
            )  # fmt: skip


DETECTOR = Detector(
    "metadata asked for again and again",
    watch=MetadataStorm,
    fields="Metadata requests and the bytes of their answers",
    source="metadata.max.age.ms (300,000); KAFKA-10463, librdkafka issues on topic metadata refresh",
    means="A client refreshes its metadata in a loop: an unknown topic, a leader it cannot reach, or a bug.",
    proof="Requests of one client within a minute whose answers are equal to the one before.",
    advice="Cure what makes it ask: unknown topics, rights, unreachable leaders; reuse one client in a process.",
    thresholds={"per_minute": 20},
    needs=("clock",),
)
