"""Share sessions: which partitions a member reads from this broker, and the epoch that its next request must have.

A ShareFetch with epoch 0 opens a session; each further ShareFetch and ShareAcknowledge has the next epoch, -1 ends it.
Of a later ShareFetch only the changes are told. Rules: ShareSessionCache and SharePartitionManager.newContext.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kwire.coordinator.types import Check
from kwire.schema.codes import (
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    NONE,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)

FIRST, FINAL = 0, -1
LAST_EPOCH: Final = (1 << 31) - 1
Spot = tuple[UUID, int]  # topic id, partition


@dataclass(slots=True)
class ShareSession:
    """epoch: that of the next request. spots: in the order in which they are served; those that last gave records come
    last. new: which of them have not been answered yet. connection: the one that opened it."""

    group: str
    member: str
    epoch: int
    spots: dict[Spot, None] = field(default_factory=dict)
    new: set[Spot] = field(default_factory=set)

    def served(self, spot: Spot) -> None:
        """It gave records: the others come first the next time."""
        if spot in self.spots:
            del self.spots[spot]
            self.spots[spot] = None

    def rotated(self, epoch: int) -> list[Spot]:
        """The partitions, beginning with another one at each epoch."""
        spots = list(self.spots)
        turn = epoch % len(spots) if spots and epoch > 0 else 0
        return spots[turn:] + spots[:turn]


class ShareSessions:
    """most: group.share.max.share.sessions."""

    def __init__(self, most: int = 2_000) -> None:
        self.most = most
        self.open: dict[tuple[str, str], ShareSession] = {}

    def fetch(
        self,
        group: str,
        member: str,
        epoch: int,
        spots: Sequence[Spot],
        forgotten: Iterable[Spot],
        acknowledges: bool,
    ) -> tuple[ShareSession | None, Check]:
        """A ShareFetch comes: its session, None when it is to be answered with the check's error."""
        key = (group, member)
        session = self.open.get(key)
        if epoch == FIRST:
            if acknowledges:
                return None, Check(2, "acknowledgements", INVALID_REQUEST, "epoch 0 and acknowledgements")
            self.open.pop(key, None)
            if len(self.open) >= self.most:
                why = f"{len(self.open):,} sessions are open, group.share.max.share.sessions is {self.most:,}"
                return None, Check(3, "room", SHARE_SESSION_LIMIT_REACHED, why)
            session = self.open[key] = ShareSession(group, member, 1, dict.fromkeys(spots))
            return session, Check(0, "opened", NONE, f"a session of {len(session.spots):,} partitions")
        check = self._found(session, group, member, epoch)
        if session is None or check.error:
            return None, check
        if epoch != FINAL:
            for spot in spots:
                if spot not in session.spots:
                    session.spots[spot] = None
                    session.new.add(spot)
            for spot in forgotten:
                session.spots.pop(spot, None)
                session.new.discard(spot)
            session.epoch = _next(epoch)
        return session, check

    def acknowledge(self, group: str, member: str, epoch: int) -> Check:
        """A ShareAcknowledge comes."""
        if epoch == FIRST:
            return Check(2, "epoch", INVALID_SHARE_SESSION_EPOCH, "epoch 0: only a ShareFetch opens a session")
        session = self.open.get((group, member))
        check = self._found(session, group, member, epoch)
        if session is not None and not check.error and epoch != FINAL:
            session.epoch = _next(epoch)
        return check

    def _found(self, session: ShareSession | None, group: str, member: str, epoch: int) -> Check:
        if session is None:
            return Check(1, "session", SHARE_SESSION_NOT_FOUND, f"{member} of group {group} has no session here")
        if epoch not in (FINAL, session.epoch):
            why = f"session epoch {epoch}, {session.epoch} comes next"
            return Check(2, "epoch", INVALID_SHARE_SESSION_EPOCH, why)
        return Check(2, "epoch", NONE, f"session epoch {epoch} is the next one")

    def close(self, group: str, member: str) -> ShareSession | None:
        """The session ends: what the member holds in its partitions is to be released."""
        return self.open.pop((group, member), None)


def _next(epoch: int) -> int:
    return 1 if epoch == LAST_EPOCH else epoch + 1
