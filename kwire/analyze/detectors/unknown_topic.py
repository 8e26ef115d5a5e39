"""Clients that ask again and again for a topic or partition that the cluster does not have; internal topics too.

Sees UNKNOWN_TOPIC_OR_PARTITION (3), UNKNOWN_TOPIC_ID (100) and INVALID_TOPIC_EXCEPTION (17) of any answer. A topic that
is made while it is asked for (auto.create.topics.enable) answers so once or twice: that is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, about, lasted
from kwire.counted import counted
from kwire.schema import codes

SECOND = 1_000_000_000


class Unknown(Watch):
    def findings(self) -> Iterator[Finding]:
        together: dict[tuple[str, str, str], list[Trouble]] = {}
        for trouble in self.case.troubles.of(
            codes.UNKNOWN_TOPIC_OR_PARTITION, codes.INVALID_TOPIC_EXCEPTION, codes.UNKNOWN_TOPIC_ID
        ):
            fact = trouble.fact
            together.setdefault((fact.client_id, fact.host, str(fact.about.get("topic", ""))), []).append(trouble)
        for (client, host, topic), troubles in together.items():
            worst = max(troubles, key=lambda one: one.most)
            if (
                worst.most < self.limit("least")
                or max(worst.lasted, self._since(worst)) < self.limit("seconds") * SECOND
            ):
                continue
            yield self._finding(client, host, topic, troubles)

    def _since(self, trouble: Trouble) -> int:
        """For how many ns a client that gave up at once had not got an answer without the error; 0 where it got one, or
        the capture may lack one."""
        if trouble.over is not None or self.case.coverage.incomplete:
            return 0
        return self.case.end - trouble.fact.time

    def _finding(self, client: str, host: str, topic: str, troubles: list[Trouble]) -> Finding:
        count = sum(one.count for one in troubles)
        first, last = min(one.fact.time for one in troubles), max(one.last.time for one in troubles)
        fact = max(troubles, key=lambda one: one.count).fact
        apis = ", ".join(dict.fromkeys(one.fact.api for one in troubles))
        over = all(one.over is not None for one in troubles)
        old = fact.code == codes.UNKNOWN_TOPIC_ID
        name = f"topic {topic}" if topic else "a topic"
        lacks = "by an id that the cluster does not know" if old else "which the cluster does not have"
        what = f"{client or host} asks for {name}{'' if old else ','} {lacks}: {fact.error} "
        what += f"{counted(count, 'time')} in {lasted(last - first)} ({apis})"
        if over:
            what += f"; it is there from {self.case.clock(max(one.over or 0 for one in troubles))} on"
        advice = "Create it, or correct the name"
        if old:
            advice = (
                "The topic was deleted, or made anew: a client that does not ask for its metadata again is restarted"
            )
        if topic.startswith("__"):
            advice = "An internal topic is missing: the brokers make it when it is first needed; see their logs"
        return Finding(
            "warning" if over else "error", what, tuple(ref for one in troubles for ref in one.samples)[:8],
            f"{advice}.", time=first, last=last,
            about=about(client_id=client, address=host, topic=topic), count=count, words=fact.words,
            otherwise="an answer about the topic is without the error: it was being made, or Describe is denied on it",
        )  # fmt: skip


DETECTOR = Detector(
    "topics that are asked for and do not exist",
    watch=Unknown,
    fields="error codes 3, 17 and 100 of any answer, by topic",
    source="org.apache.kafka.common.protocol.Errors; KIP-516 for ids",
    means="The client works with a topic that this cluster does not have, or not any more.",
    proof="Answers whose element for that topic carries the error, with no answer without it between.",
    advice="Create the topic, correct the name, or point the client at the right cluster.",
    thresholds={"least": 3, "seconds": 1},
)
