"""Leaders that moved from one broker to another, told once with what followed: who failed for how long.

Sees LeaderId and LeaderEpoch of Metadata answers, CurrentLeader beside a refused Produce or Fetch (KIP-951), and
NOT_LEADER_OR_FOLLOWER (6), LEADER_NOT_AVAILABLE (5), FENCED_LEADER_EPOCH (74), KAFKA_STORAGE_ERROR (56) on these
partitions afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.cluster import NodeRole
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.facts import Trouble
from kwire.analyze.findings import Finding, about, lasted
from kwire.counted import counted
from kwire.schema import codes

HURT = (codes.LEADER_NOT_AVAILABLE, codes.NOT_LEADER_OR_FOLLOWER, codes.KAFKA_STORAGE_ERROR, codes.FENCED_LEADER_EPOCH)
TOGETHER = 10_000_000_000  # ns within which moves from one broker are one event
Move = tuple[str, int, NodeRole, NodeRole]  # topic, partition, before, after


class MovedLeaders(Watch):
    def findings(self) -> Iterator[Finding]:
        events: dict[tuple[str, int], list[list[Move]]] = {}
        for cluster, topic, partition, before, after in self.case.cluster.moves():
            if before.node < 0 and after.node < 0:
                continue
            groups = events.setdefault((cluster, before.node), [])
            if not groups or after.time - groups[-1][-1][3].time > TOGETHER:
                groups.append([])
            groups[-1].append((topic, partition, before, after))
        for (cluster, node), groups in events.items():
            for moves in groups:
                if node >= 0:
                    yield self._finding(cluster, node, moves)

    def _finding(self, cluster: str, node: int, moves: list[Move]) -> Finding:
        clock = self.case.clock
        first = min(after.time for _, _, _, after in moves)
        last = max(after.time for _, _, _, after in moves)
        targets = sorted({after.node for _, _, _, after in moves})
        to = " and ".join("nobody" if one < 0 else f"node {one}" for one in targets)
        parts = {(topic, partition) for topic, partition, _, _ in moves}
        what = f"{counted(len(parts), 'partition')} moved from node {node} to {to} at {clock(first)}"
        hurt = [one for one in self.case.troubles.of(*HURT) if self._follows(one, parts, first)]
        clients = {(one.fact.client_id, one.fact.host) for one in hurt}
        longest = max((one.lasted for one in hurt), default=0)
        if hurt:
            errors = ", ".join(dict.fromkeys(one.fact.error for one in hurt))
            what += (
                f"; {counted(len(clients), 'client')} got {errors} {counted(sum(one.count for one in hurt), 'time')}"
            )
            what += f", for {lasted(longest)} at the longest" if longest else ""
        lost = -1 in targets and all(after.node < 0 for _, _, _, after in moves)
        still = [one for one in hurt if one.over is None and self.case.shows_after(one.last.time)]
        severity = "warning" if lost or longest > self.limit("seconds") * 1_000_000_000 or still else "note"
        topics = {topic for topic, _ in parts}
        of = about(broker=str(node), topic=next(iter(topics)) if len(topics) == 1 else "")
        if len(parts) == 1:
            of["partition"] = next(iter(parts))[1]
        evidence = (moves[0][2].proof, moves[0][3].proof, *(one.fact.proof for one in hurt[:4]))
        advice = "See why that broker gave them up: a restart, an election, a failure. Clients retry by themselves."
        return Finding(severity, what, evidence, advice, time=first, last=last, about=of, count=len(moves),
                       otherwise="brokers answered that had not learned of the change yet",
                       brokers=self.case.cluster.names_of_node(cluster, node))  # fmt: skip

    @staticmethod
    def _follows(trouble: Trouble, parts: set[tuple[str, int]], time: int) -> bool:
        element = trouble.fact.about
        topic, partition = element.get("topic"), element.get("partition")
        fits = any(name == topic and partition in (None, number) for name, number in parts)
        return fits and trouble.last.time > time - TOGETHER


DETECTOR = Detector(
    "partitions whose leaders moved, and what followed",
    watch=MovedLeaders,
    fields="LeaderId and LeaderEpoch of Metadata, CurrentLeader of Produce and Fetch; error codes 5, 6, 56, 74",
    source="KIP-320, KIP-951; org.apache.kafka.metadata.LeaderAndIsr",
    means="A broker led partitions and another one does now: it was restarted, failed, or leaders were elected anew.",
    proof="Two answers that name different leaders, the second with a higher leader epoch where it has one.",
    advice="Nothing, if it was meant. Otherwise look at the broker that lost them.",
    thresholds={"seconds": 10},
    event=3,
)
