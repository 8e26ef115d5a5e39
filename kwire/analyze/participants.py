"""Who takes part in a capture, by client id and address: what each asks for tells what it is, and so by which rules it
is judged. Counted in columns, with no object for an exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import callers
from kwire.analyze.calls import EPOCH_HEARTBEATS
from kwire.analyze.client import BROKERS
from kwire.schema import keys

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.wire.columns import Ints

MOST = 50_000
READS = {keys.FETCH, keys.SHARE_FETCH}
GROUPS = {keys.JOIN_GROUP, keys.SYNC_GROUP, keys.HEARTBEAT, *EPOCH_HEARTBEATS}  # admin clients ask LeaveGroup too
CONTROL = {  # what only brokers and controllers ask: of each other, and of the quorum
    keys.LEADER_AND_ISR, keys.STOP_REPLICA, keys.UPDATE_METADATA, keys.CONTROLLED_SHUTDOWN, keys.WRITE_TXN_MARKERS,
    keys.VOTE, keys.BEGIN_QUORUM_EPOCH, keys.END_QUORUM_EPOCH, keys.ALTER_PARTITION, keys.ENVELOPE,
    keys.FETCH_SNAPSHOT, keys.BROKER_REGISTRATION, keys.BROKER_HEARTBEAT, keys.ALLOCATE_PRODUCER_IDS,
    keys.CONTROLLER_REGISTRATION, keys.ASSIGN_REPLICAS_TO_DIRS, keys.UPDATE_RAFT_VOTER,
    keys.INITIALIZE_SHARE_GROUP_STATE, keys.READ_SHARE_GROUP_STATE, keys.WRITE_SHARE_GROUP_STATE,
    keys.DELETE_SHARE_GROUP_STATE, keys.READ_SHARE_GROUP_STATE_SUMMARY,
}  # fmt: skip
BROKER, CONSUMER, PRODUCER, ADMIN = "broker", "consumer", "producer", "admin"


def role_of(client_id: str, asked: Set[int]) -> str:
    """The role of a client that asks for these API keys: broker (or controller, or follower), consumer, producer, else
    admin client."""
    if asked & CONTROL or (client_id and BROKERS.search(client_id)):
        return BROKER
    if asked & (READS | GROUPS):
        return CONSUMER
    return PRODUCER if asked & {keys.PRODUCE, keys.INIT_PRODUCER_ID} else ADMIN


@dataclass(slots=True)
class Participant:
    """keys: how often it asked for each API; first and last: when it asked, ns; brokers: the addresses it asked."""

    client_id: str
    host: str
    keys: Counter[int] = field(default_factory=Counter)
    first: int = 0
    last: int = 0
    brokers: set[str] = field(default_factory=set)
    software: str = ""
    principal: str = ""

    @property
    def role(self) -> str:
        """What it is."""
        return role_of(self.client_id, self.keys.keys())

    @property
    def label(self) -> str:
        """As people know it."""
        return self.client_id or f"(no client id) at {self.host}"


class Participants:
    """add(batch) counts; known: by client id and host."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Participant] = {}
        self.brokers: Counter[str] = Counter()  # exchanges by address

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        rows = np.flatnonzero(batch.request.there & ~batch.token)
        if not len(rows):
            return
        people, which = callers(batch)
        kinds = len(batch.kinds)
        asks = which[rows] * kinds + batch.kind[rows]
        groups, of_row, counts = np.unique(asks, return_inverse=True, return_counts=True)
        time = batch.request.time[rows]
        first, last = np.full(len(groups), np.iinfo(np.int64).max), np.zeros(len(groups), np.int64)
        np.minimum.at(first, of_row, time)
        np.maximum.at(last, of_row, time)
        columns = (groups, counts, first, last)
        for group, count, begin, end in zip(*(column.tolist() for column in columns), strict=True):
            who, kind_at = divmod(group, kinds)
            caller, kind = people[who], batch.kinds[kind_at]
            known = None if kind is None else self._of(*caller.client)
            if known is None or kind is None:
                continue
            known.keys[kind.key] += count
            known.first = min(known.first or begin, begin)
            known.last = max(known.last, end)
            self.brokers[caller.broker] += count
            if len(known.brokers) < 1000:
                known.brokers.add(caller.broker)
        self._names(batch, rows)

    def _names(self, batch: ExchangeBatch, rows: Ints) -> None:
        """Takes the software and the principals that clients gave on their connections."""
        people, which = callers(batch)
        for pair in np.unique(batch.connection[rows] * len(people) + which[rows]).tolist():
            at, who = divmod(pair, len(people))
            identity = batch.connections[at].identity
            known = self.known.get(people[who].client) if identity.software or identity.principal else None
            if known is not None:
                if identity.software and not known.software:
                    known.software = " ".join(filter(None, (identity.software, identity.software_version)))
                known.principal = known.principal or identity.principal or ""

    def _of(self, client_id: str, host: str) -> Participant | None:
        known = self.known.get((client_id, host))
        if known is None and len(self.known) < MOST:
            known = self.known[client_id, host] = Participant(client_id, host)
        return known

    def role_of(self, client_id: str, host: str) -> str:
        """What a client is; empty when it is not known."""
        known = self.known.get((client_id, host))
        return known.role if known else ""
