"""The data exchanged between survey, stitch and reading of a split."""

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
from kwire.session.broker_ids import BrokerIds


class Fix(NamedTuple):
    """The final names and numbers for a part's rows. bases, indexes: positions and frame indexes of the client's and
    the broker's stream, from connection_parts.join; packets: number before the split; final: of a FinalConnections
    entry."""

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
    """Packets that are read together. now: time of the last segment, joined: of the last one reassembled from
    fragments, ns; None if there is none."""

    window: int
    now: int | None = None
    joined: int | None = None


@dataclass(slots=True)
class Survey:
    """The survey of a split. error: why it could not be read; rows: whether its rows were made. final: connections
    complete in it, with, for all of them, kinds and brokers (by first block), topic names and clients."""

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
    firsts: set[int] = field(default_factory=set)  # sequence numbers at which streams begin that the stitch reads
    error: str | None = None
    rows: bool = False
    final: FinalConnections = field(default_factory=FinalConnections)
    kinds: dict[tuple[int, int], int] = field(default_factory=dict)
    brokers: dict[Endpoint, int] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)
    broker_ids: BrokerIds = field(default_factory=BrokerIds)  # of all its connections
    clients: list[Client] = field(default_factory=list)
    secrets: list[bytes] = field(default_factory=list)  # TLS key logs among the packets


class SurveyNames(NamedTuple):
    """What a survey also collects: topic names, clients, node ids of brokers."""

    names: bool = False
    clients: bool = False
    broker_ids: bool = False

    @property
    def scans(self) -> bool:
        """Whether bodies must be walked over."""
        return self.clients or self.broker_ids


@dataclass(frozen=True, slots=True)
class LearnedNames:
    """What all splits together tell: topic names by id, node ids of brokers by address."""

    topics: dict[UUID, str] = field(default_factory=dict)
    broker_ids: BrokerIds = field(default_factory=BrokerIds)
