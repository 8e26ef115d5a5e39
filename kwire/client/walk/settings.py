"""What walk is to do, as its options say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kwire.client.address import Address
from kwire.client.consumer import ConsumerConfig
from kwire.client.security import Security
from kwire.codec.library import Library


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """What to walk. protocol: classic or consumer (KIP-848). beats: heartbeats, interval_ms apart; stop: then fall
    silent past the session timeout and beat again. retry: how often all addresses are tried again. records: shown of
    each partition. busy: join though the group has members. timeout: seconds."""

    addresses: Sequence[Address]
    group: str
    topic: str
    options: ConsumerConfig = field(default_factory=ConsumerConfig)
    protocol: str = "classic"
    era: str | None = None
    interval_ms: int = 3_000
    beats: int = 2
    stop: bool = False
    retry: int = 0
    records: int = 3
    busy: bool = False
    client_id: str = "kwire"
    timeout: float = 10.0
    security: Security = field(default_factory=Security)
    library: Library | None = None
