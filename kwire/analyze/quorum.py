"""The history of KRaft quorums: leaders and their epochs, votes, resignations, and the offsets of replicas.

Only changes are kept. A quorum counts as without a leader from the old leader's last answer as leader until the new one
is first named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kwire.analyze.findings import Reference
from kwire.schema import keys
from kwire.session.quorum import METADATA_TOPIC, NOBODY, RAFT, QuorumFacts, said_of

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.exchange import Exchange

MOST_MOMENTS, MOST_QUORUMS, MOST_NODES = 5_000, 100, 1_000
VOTERS = {keys.ADD_RAFT_VOTER: "joins the voters", keys.REMOVE_RAFT_VOTER: "leaves the voters"}
LEADER, VOTE, PRE_VOTE, ENDS, CHANGES = "leader", "vote", "pre-vote", "ends", "voters"


@dataclass(slots=True)
class QuorumChange:
    """A change. node: the leader, the candidate, who gives up. granted, refused, asked: voters, by their answers;
    preferred: whom a leader that gives up names; without: how long there was no leader before, ns."""

    what: str
    time: int
    epoch: int | None
    node: int
    proof: Reference
    granted: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    preferred: tuple[int, ...] = ()
    without: int | None = None
    words: str = ""

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "what": self.what, "time": self.time, "epoch": self.epoch, "node": self.node, "granted_by": self.granted,
            "refused_by": self.refused, "not_answered_by": self.asked, "preferred": list(self.preferred),
            "without_leader_ns": self.without, "words": self.words or None, "packet": str(self.proof),
        }  # fmt: skip


@dataclass(slots=True)
class Quorum:
    """One cluster's. voters, observers: as DescribeQuorum told last; replicas: from which offset each fetched last, and
    when, ns; unkept: changes beyond MOST_MOMENTS."""

    cluster: str
    moments: list[QuorumChange] = field(default_factory=list)
    epoch: int = -1
    leader: int = NOBODY
    voters: tuple[int, ...] = ()
    observers: tuple[int, ...] = ()
    replicas: dict[int, tuple[int, int]] = field(default_factory=dict)
    led: int | None = None  # when the leader was last told by who led, or followed it, ns
    unkept: int = 0

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "cluster_id": self.cluster or None, "epoch": self.epoch, "leader": self.leader,
            "voters": list(self.voters), "observers": list(self.observers),
            "replicas": [{"node": node, "offset": at, "time": time} for node, (at, time) in self.replicas.items()],
            "moments": [one.row() for one in self.moments],
        }  # fmt: skip


class Quorums:
    """add(batch) in the order of time. known: by cluster id, empty where nobody told it."""

    def __init__(self) -> None:
        self.known: dict[str, Quorum] = {}
        self._of_node: dict[str, str] = {}  # the cluster's id by the controller's address

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        chosen = {*RAFT, *VOTERS, keys.FETCH}
        wanted = np.array([kind is not None and kind.key in chosen for kind in batch.kinds], bool)
        for row in np.flatnonzero(wanted[batch.kind] & batch.request.there).tolist() if wanted.any() else ():
            kind = batch.kinds[batch.kind[row]]
            if kind is not None and (kind.key != keys.FETCH or METADATA_TOPIC in batch[row].about.topics):
                self.exchange(batch[row])

    def exchange(self, exchange: Exchange) -> None:
        """A message of the quorum, with its answer."""
        request, response = exchange.request, exchange.response
        kind, body = (None, None) if request is None else (request.api, request.body())
        if request is None or kind is None or body is None:
            return
        quorum = self._quorum(body.get("ClusterId"), exchange.connection.ends[1])
        if quorum is None:
            return
        if kind.key in VOTERS:
            words = f"{VOTERS[kind.key]}{' (refused)' if response is not None and response.errors else ''}"
            node = body.get("VoterId", NOBODY)
            _note(quorum, QuorumChange(CHANGES, request.time, None, node, Reference.of(request), words=words))
            return
        said = said_of(kind, body, exchange.answer())
        if kind.key == keys.VOTE:
            _vote(quorum, said, request.time, Reference.of(request))
        elif kind.key == keys.END_QUORUM_EPOCH:
            _ends(quorum, said, request.time, Reference.of(request))
        else:
            told = request if kind.key == keys.BEGIN_QUORUM_EPOCH or response is None else response
            _leads(quorum, said, told.time, Reference.of(told))
            _follows(quorum, said, request.time)
            if said.voters:
                quorum.voters, quorum.observers = said.voters, said.observers

    def _quorum(self, cluster: str | None, node: str) -> Quorum | None:
        if cluster and len(self._of_node) < MOST_NODES:
            self._of_node[node] = cluster
        name = cluster or self._of_node.get(node, "")
        known = self.known.get(name)
        if known is None and len(self.known) < MOST_QUORUMS:
            known = self.known[name] = Quorum(name)
        return known


def quorums_of(quorums: Iterable[Quorum]) -> list[Quorum]:
    """The quorums with anything to show."""
    return [one for one in quorums if one.moments or one.replicas]


def _note(quorum: Quorum, moment: QuorumChange) -> None:
    if len(quorum.moments) < MOST_MOMENTS:
        quorum.moments.append(moment)
    else:
        quorum.unkept += 1


def _vote(quorum: Quorum, said: QuorumFacts, time: int, proof: Reference) -> None:
    what, voter = PRE_VOTE if said.pre_vote else VOTE, said.voter if said.voter is not None else NOBODY
    same = (one for one in reversed(quorum.moments[-20:]) if (one.what, one.epoch, one.node) == (
        what, said.epoch, said.candidate))  # fmt: skip
    known = next(same, None)
    if known is None:
        known = QuorumChange(what, time, said.epoch, NOBODY if said.candidate is None else said.candidate, proof)
        _note(quorum, known)
    answers = {None: known.asked, True: known.granted, False: known.refused}[said.granted]
    if voter not in answers and len(answers) < MOST_NODES:
        answers.append(voter)


def _ends(quorum: Quorum, said: QuorumFacts, time: int, proof: Reference) -> None:
    last = next((one for one in reversed(quorum.moments[-20:]) if one.what == ENDS), None)
    if last is None or (last.epoch, last.node) != (said.epoch, said.leader):
        node = NOBODY if said.leader is None else said.leader
        _note(quorum, QuorumChange(ENDS, time, said.epoch, node, proof, preferred=said.preferred))


def _follows(quorum: Quorum, said: QuorumFacts, time: int) -> None:
    if said.replica is None or said.at is None or said.replica < 0:
        return
    if said.replica in quorum.replicas or len(quorum.replicas) < MOST_NODES:
        quorum.replicas[said.replica] = said.at, time


def _leads(quorum: Quorum, said: QuorumFacts, time: int, proof: Reference) -> None:
    if said.epoch is None or said.leader is None or said.leader == NOBODY:
        return
    if (said.epoch, said.leader) == (quorum.epoch, quorum.leader):
        if not said.error:
            quorum.led = time
        return
    if said.epoch < quorum.epoch:
        return
    without = time - quorum.led if quorum.led is not None else None
    _note(quorum, QuorumChange(LEADER, time, said.epoch, said.leader, proof, without=without))
    quorum.epoch, quorum.leader, quorum.led = said.epoch, said.leader, time
