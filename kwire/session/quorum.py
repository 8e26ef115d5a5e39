"""Epoch, leader and votes of a KRaft quorum, read from a request and its response together (KIP-595, KIP-630, KIP-996).
A quorum has one partition, that of its metadata topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.schema.keys import (
    BEGIN_QUORUM_EPOCH,
    DESCRIBE_QUORUM,
    END_QUORUM_EPOCH,
    FETCH,
    FETCH_SNAPSHOT,
    VOTE,
)  # fmt: skip

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind

METADATA_TOPIC = "__cluster_metadata"
RAFT = frozenset({VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, DESCRIBE_QUORUM, FETCH_SNAPSHOT})
NOBODY = -1
Body = dict[str, Any]


class QuorumFacts(NamedTuple):
    """The quorum's fields in an exchange; None: not given. leader: a node id, -1 nobody. candidate, voter, pre_vote,
    granted: of a Vote; granted is None without a response. replica: who fetches; at: from which offset. preferred:
    successors named by a leader that resigns. voters, observers: of DescribeQuorum. error: the partition's error code.
    """

    epoch: int | None = None
    leader: int | None = None
    candidate: int | None = None
    voter: int | None = None
    pre_vote: bool = False
    granted: bool | None = None
    replica: int | None = None
    at: int | None = None
    preferred: tuple[int, ...] = ()
    voters: tuple[int, ...] = ()
    observers: tuple[int, ...] = ()
    error: int = 0


def said_of(kind: Kind, body: Body, answer: Body | None) -> QuorumFacts:
    """The facts of an exchange of a RAFT API, or of a Fetch of the metadata topic."""
    asked, told = _partition(body), _partition(answer or {})
    current = told.get("CurrentLeader") or told
    error = told.get("ErrorCode", 0)
    epoch, leader = _number(current, "LeaderEpoch"), _number(current, "LeaderId")
    if kind.key == VOTE:
        candidate = asked.get("ReplicaId", asked.get("CandidateId"))
        return QuorumFacts(
            asked.get("ReplicaEpoch", asked.get("CandidateEpoch")), leader, candidate, body.get("VoterId", NOBODY),
            bool(asked.get("PreVote")), told.get("VoteGranted"), error=error,
        )  # fmt: skip
    if kind.key in (BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH):
        preferred = tuple(one["CandidateId"] for one in asked.get("PreferredCandidates") or ())
        preferred = preferred or tuple(asked.get("PreferredSuccessors") or ())
        voter = body.get("VoterId") if kind.key == BEGIN_QUORUM_EPOCH else None
        return QuorumFacts(
            asked.get("LeaderEpoch"), asked.get("LeaderId"), voter=voter, preferred=preferred, error=error
        )
    if kind.key == DESCRIBE_QUORUM:
        voters, observers = (
            tuple(one["ReplicaId"] for one in told.get(name) or ()) for name in ("CurrentVoters", "Observers")
        )
        return QuorumFacts(epoch, leader, voters=voters, observers=observers, error=error)
    replica = body.get("ReplicaId", (body.get("ReplicaState") or {}).get("ReplicaId"))
    mine = _number(asked, "CurrentLeaderEpoch")
    at = asked.get("FetchOffset", asked.get("Position"))
    return QuorumFacts(mine if epoch is None else epoch, leader, replica=replica, at=at, error=error)


def words_of(kind: Kind, body: Body, answer: Body | None) -> str:
    """The same facts as text: "leader 2 epoch 1, replica 3 at 38"."""
    said = said_of(kind, body, answer)
    if kind.key == VOTE:
        what = "pre-vote" if said.pre_vote else "vote"
        outcome = {None: "asked of", True: "granted by", False: "refused by"}[said.granted]
        voter = "" if said.voter == NOBODY else f": {outcome} {said.voter}"
        leader = f", leader {said.leader}" if said.leader not in (None, NOBODY) else ""
        return f"{what} for {said.candidate} epoch {said.epoch}{voter}{leader}"
    if kind.key == END_QUORUM_EPOCH:
        after = f", prefers {_numbers(said.preferred)}" if said.preferred else ""
        return f"leader {said.leader} ends epoch {said.epoch}{after}"
    leads = [] if said.leader is None else ["no leader in" if said.leader == NOBODY else f"leader {said.leader}"]
    leads += [] if said.epoch is None else [f"epoch {said.epoch}"]
    parts = [" ".join(leads)] if leads else []
    parts += [f"voters {_numbers(said.voters)}"] if said.voters else []
    parts += [f"observers {_numbers(said.observers)}"] if said.observers else []
    parts += [f"told to {said.voter}"] if said.voter not in (None, NOBODY) else []
    if kind.key in (FETCH, FETCH_SNAPSHOT) and said.at is not None:
        who = f"replica {said.replica} " if said.replica not in (None, NOBODY) else ""
        parts.append(f"{who}{'in the snapshot ' if kind.key == FETCH_SNAPSHOT else ''}at {said.at:,}")
    return ", ".join(parts)


def _numbers(nodes: tuple[int, ...]) -> str:
    return " ".join(map(str, nodes))


def _partition(body: Body) -> Body:
    """The first partition of the metadata topic in a request or response; {} when there is none."""
    for topic in body.get("Topics") or body.get("Responses") or ():
        for partition in topic.get("Partitions") or ():
            return dict(partition)
    return {}


def _number(values: Body, name: str) -> int | None:
    """An epoch or a node id; None where it is not given."""
    value = values.get(name)
    if not isinstance(value, int) or (value < 0 and name != "LeaderId"):
        return None
    return value
