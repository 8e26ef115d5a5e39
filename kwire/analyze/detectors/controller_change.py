"""Another controller: elections of the KRaft quorum, and of ZooKeeper's time.

Sees leader and epoch in Vote, BeginQuorumEpoch, EndQuorumEpoch and DescribeQuorum (KIP-595), ControllerEpoch of
LeaderAndIsr, UpdateMetadata and StopReplica. ControllerId in Metadata is any broker where KRaft runs: it tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kwire.analyze.cluster import node_name
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference
from kwire.capture.ip import endpoint
from kwire.counted import counted
from kwire.schema import keys

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.exchange import Exchange

RAFT = (keys.VOTE, keys.BEGIN_QUORUM_EPOCH, keys.END_QUORUM_EPOCH, keys.DESCRIBE_QUORUM)
ZOOKEEPER = (keys.LEADER_AND_ISR, keys.UPDATE_METADATA, keys.STOP_REPLICA)
MOST = 1000


class Controllers(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.leaders: list[tuple[int, int, Reference]] = []  # epoch, leader, proof
        self.votes = 0
        self.addresses: dict[int, set[str]] = {}  # of controllers, as they name each other
        self.cluster = ""

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        kind = request.api if request is not None else None
        if request is None or kind is None:
            return
        body = request.body() or {}
        if kind.key in ZOOKEEPER:
            self._note(body.get("ControllerEpoch", -1), body.get("ControllerId", -1), Reference.of(request))
            return
        self.votes += kind.key == keys.VOTE
        self.cluster = body.get("ClusterId") or self.cluster
        answer = (response.body() if response is not None else None) or {}
        for node in answer.get("NodeEndpoints") or ():
            if len(self.addresses) < MOST:
                self.addresses.setdefault(node["NodeId"], set()).add(endpoint(node["Host"], node["Port"]))
        for source, message in ((body, request), (answer, response)):
            for part in _partitions(source):
                if message is not None and not part.get("ErrorCode"):
                    self._note(part.get("LeaderEpoch", -1), part.get("LeaderId", -1), Reference.of(message))

    def _note(self, epoch: int, leader: int, proof: Reference) -> None:
        if epoch >= 0 and leader >= 0 and len(self.leaders) < MOST and not any(one[0] == epoch for one in self.leaders):
            self.leaders.append((epoch, leader, proof))

    def findings(self) -> Iterator[Finding]:
        known = sorted(self.leaders, key=lambda one: one[0])
        if len(known) < 2:
            return
        clock = self.case.clock
        told = ", ".join(f"{leader} (epoch {epoch}, {clock(proof.time)})" for epoch, leader, proof in known[:6])
        what = f"the controller changed {counted(len(known) - 1, 'time')}: node {told}{', …' if len(known) > 6 else ''}"
        what += f"; {counted(self.votes, 'vote')} asked for" if self.votes else ""
        often = len(known) - 1 >= self.limit("changes")
        yield Finding(
            "warning" if often else "note", what, tuple(proof for _, _, proof in known[:8]),
            "See the controllers' logs for why they lost each other: pauses, network, restarts." if often
            else "kwire stats --quorum has it over time.",
            time=known[1][2].time, last=known[-1][2].time, count=len(known) - 1, about={"broker": str(known[-1][1])},
            otherwise="the capture has quorums of several clusters",
            brokers=self._names({node for _, node, _ in known[:-1]}),
        )  # fmt: skip

    def _names(self, nodes: set[int]) -> frozenset[str]:
        """Of the controllers before."""
        told = {name for node in nodes for name in self.addresses.get(node, ())}
        return frozenset({*told, *(node_name(self.cluster, node) for node in nodes)})


def _partitions(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those of the quorum."""
    for topic in body.get("Topics") or ():
        yield from topic.get("Partitions") or ()


DETECTOR = Detector(
    "another controller",
    watch=Controllers,
    fields="LeaderId and LeaderEpoch of the quorum's messages; ControllerEpoch of LeaderAndIsr and its kin",
    source="KIP-595, KIP-500",
    means="The cluster elected another controller; while it does, no leader is elected and no topic made.",
    proof="Messages with different leaders under rising epochs.",
    advice="Nothing, if a controller was restarted. Otherwise look for pauses and network trouble between controllers.",
    thresholds={"changes": 3},
    event=2,
    exchanges=(*RAFT, *ZOOKEEPER),
)
