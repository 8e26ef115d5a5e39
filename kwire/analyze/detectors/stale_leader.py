"""Clients that go on asking a broker that leads a partition no longer, though they were told who does.

Sees NOT_LEADER_OR_FOLLOWER (6) and FENCED_LEADER_EPOCH (74) of one partition, again and again, after an answer of the
cluster that names another leader. A client learns of a new leader by Metadata, or from the answer itself (KIP-951).
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, lasted
from kwire.counted import counted
from kwire.schema import codes

SECOND = 1_000_000_000


class Stale(Watch):
    def findings(self) -> Iterator[Finding]:
        cluster = self.case.cluster
        for trouble in self.case.troubles.of(codes.NOT_LEADER_OR_FOLLOWER, codes.FENCED_LEADER_EPOCH):
            about, last = trouble.fact.about, trouble.last
            if trouble.most < self.limit("least") or "partition" not in about:
                continue
            topic, partition = str(about["topic"]), int(about["partition"])
            told = cluster.leader_at(cluster.cluster_of(last.broker), topic, partition, last.time)
            if told is None or told.node < 0 or told.node == cluster.node_at(last.broker):
                continue
            if last.time - max(told.time, trouble.fact.time) >= self.limit("seconds") * SECOND:
                yield self._finding(trouble, f"{topic}-{partition}", told.node, told.time)

    def _finding(self, trouble: Trouble, partition: str, node: int, since: int) -> Finding:
        fact, clock = trouble.fact, self.case.clock
        who = fact.client_id or f"a client at {fact.host}"
        known = self.case.participants.known.get((fact.client_id, fact.host))
        software = f" ({known.software})" if known and known.software else ""
        what = f"{who}{software} asks {trouble.last.broker} for {partition}, of which an answer told at "
        what += f"{clock(since)} that node {node} leads it: {fact.error} {counted(trouble.count, 'time')} in "
        what += lasted(trouble.last.time - fact.time)
        what += f"; over at {clock(trouble.over)}" if trouble.over else ""
        return Finding(
            "warning" if trouble.over else "error", what, tuple(trouble.samples),
            "The client does not take up the new leader: upgrade it, and restart it for now.", time=fact.time,
            last=trouble.last.time, count=trouble.count, about=trouble.about | {"broker": trouble.last.broker},
            otherwise="Metadata of another broker still named the old leader",
            brokers=self.case.cluster.names_of(trouble.last.broker),
        )  # fmt: skip


DETECTOR = Detector(
    "clients that stay with a leader that is none any more",
    watch=Stale,
    fields="error codes 6 and 74 by partition; LeaderId and LeaderEpoch of Metadata",
    source="KIP-320, KIP-951; org.apache.kafka.clients.Metadata",
    means="A client keeps sending to the old leader of a partition though an answer named the new one.",
    proof="Answers with the error for one partition, later than one that names another leader.",
    advice="Upgrade the client. Until then a restart makes it ask anew.",
    thresholds={"least": 3, "seconds": 1},
)
