"""What is found out about a split, and what it must be told: the shapes that go between survey, stitch and reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kwire.analyze.client import Client
from kwire.capture.connection import Endpoint
from kwire.capture.tcp import Key
from kwire.pipeline.connection_parts import ConnectionPart
from kwire.pipeline.final_connections import FinalConnections
from kwire.pipeline.leftover_segments import LeftoverSegments
from kwire.pipeline.splits import Split


class Fix(NamedTuple):
    """What a split must know of a part to name its rows: positions and indexes of the client's and of the broker's
    stream as parts.join gives them; packets: how many there are before the split; final: as FinalConnections are."""

    capture: str
    connection: str
    epoch: int
    bases: tuple[int, int]
    indexes: tuple[int, int]
    identity: tuple[str | None, ...]
    packets: int = 0
    final: bool = False


@dataclass(slots=True)
class SurveyBlock:
    """Packets that are read together. now: the time of the last segment; joined: of the last that was made of
    fragments; None when there is none."""

    window: int
    now: int | None = None
    joined: int | None = None


@dataclass(slots=True)
class Survey:
    """What a split holds. error: why it could not be read; rows: whether rows were made of it on the way. final:
    connections that are over in it; what they ask and where their brokers are, with the block in which first; the
    topics' names and the clients that they tell."""

    split: Split
    begin: int = 0
    reached: int = 0
    odd: str | None = None
    packets: int = 0
    first_time: int = 0
    last_time: int = 0
    notes: list[str] = field(default_factory=list)
    drops: dict[int, int] = field(default_factory=dict)
    dropped: int = 0
    unread: dict[str, int] = field(default_factory=dict)
    blocks: list[SurveyBlock] = field(default_factory=list)
    parts: list[ConnectionPart] = field(default_factory=list)
    leftover: list[LeftoverSegments] = field(default_factory=list)
    again: set[Key] = field(default_factory=set)
    error: str | None = None
    rows: bool = False
    final: FinalConnections = field(default_factory=FinalConnections)
    kinds: dict[tuple[int, int], int] = field(default_factory=dict)
    brokers: dict[Endpoint, int] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    secrets: list[bytes] = field(default_factory=list)  # key logs of TLS that stood among the packets


class SurveyNames(NamedTuple):
    """What the survey collects beside the seams: topic names, clients."""

    names: bool = False
    clients: bool = False
