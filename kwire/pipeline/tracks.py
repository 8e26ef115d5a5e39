"""The state of each connection while a split is read, up to its part."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID

from kwire.analyze.clients import Clients
from kwire.capture.connection import Connection
from kwire.pipeline.connection_parts import ConnectionPart, exit_at_rest, exit_of, exit_of_twin
from kwire.pipeline.midstream import Half
from kwire.pipeline.survey import Fix
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.resting import Rest


@dataclass(slots=True, eq=False)
class Track:
    """A connection in a split. half: until its beginning is found; then conversation, or rest while it is at rest
    (session/resting.py)."""

    connection: Connection
    block: int
    number: int
    ordinal: int
    conversation: Conversation | None = None
    half: Half | None = None
    rest: Rest | None = None
    part: ConnectionPart | None = None
    fix: Fix | None = None
    turn: int = 0
    spoiled: bool = False
    closed: bool = False
    last_time: int = 0
    seen: int = 0
    clients: Clients | None = None
    kinds: dict[tuple[int, int], int] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)

    def spoil(self) -> None:
        """Leaves it to the stitch."""
        self.spoiled, self.conversation, self.half, self.rest = True, None, None, None
        self.connection.let_go()

    @property
    def info(self) -> ConnectionInfo | None:
        """Its ConnectionInfo, once it is read."""
        if self.conversation is not None:
            return self.conversation.info
        return None if self.rest is None else self.rest.info

    @property
    def ended_at_rest(self) -> bool:
        """Whether it ended regularly, with nothing left to read; then its part is only made if it is asked for."""
        rest, connection = self.rest, self.connection
        if rest is None or self.spoiled or not connection.closed:
            return False
        first, second = connection.streams
        odd = first.held or first.pieces or second.held or second.pieces or rest.info.login.active
        return not odd and not rest.info.twin_of

    def part_of(self) -> ConnectionPart | None:
        """Its part; None when the stitch must read it."""
        conversation, info = self.conversation, self.info
        if self.spoiled or info is None:
            return None
        if info.twin_of:
            exit = exit_of_twin(info)
        elif conversation is not None:
            exit = exit_of(conversation)
        else:
            exit = None if self.rest is None else exit_at_rest(self.rest)
        if exit is None:
            return None
        client, key = info.sides[0], self.connection.key
        part = self.part or ConnectionPart(
            key if client == 0 else (*key[3:], *key[:3]), True, self.block, self.number, (None, None), exit,
            ordinal=self.ordinal,
        )  # fmt: skip
        return replace(
            part, exit=exit, turn=self.turn, kinds=self.kinds, names=self.names,
            clients=self.clients.all if self.clients else [], heads=(info.heads[client], info.heads[1 - client]),
            twin=bool(info.twin_of),
        )  # fmt: skip
