"""What goes into the coordinator and comes out: callers, answers with the check that decided, events, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple
from uuid import UUID

MS = 1_000_000  # ns; times are ns, timeouts ms as in Kafka's protocol and configuration


class ClientIdentity(NamedTuple):
    """Who asks. principal: None when nobody logged in."""

    client_id: str = ""
    host: str = "/127.0.0.1"
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """The rule that decided an answer. name: a short slug, as "generation"; number: its place in the coordinator's own
    order (0 where there is none); error: the error code that it gives; why: a sentence with the values compared."""

    number: int
    name: str
    error: int
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to what ask() gave a ticket for. body: official field names, ready to be encoded at that version."""

    ticket: int
    api: str
    version: int
    body: dict[str, Any]
    time: int
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a group. kind: joined, rejoined, left, evicted, fenced, id handed out, rebalance,
    generation, stable, empty, dead, committed, epoch, target, reconciled. member and generation (or epoch) where they
    apply; why: in words, with the values that decided; facts: the same for programs."""

    time: int
    group: str
    kind: str
    member: str | None = None
    generation: int | None = None
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class KnownTopic(NamedTuple):
    """What a coordinator must know of a topic."""

    name: str
    id: UUID
    partitions: int


class NewTopic(NamedTuple):
    """A topic that a group needs. replication: 0 for the broker's default."""

    name: str
    partitions: int
    replication: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The broker's configuration that groups depend on, by its names there, ms; defaults are those of 4.x.

    era: the release whose rules hold, as (major, minor).
    """

    era: tuple[int, int] = (4, 3)
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignment_interval_ms: int | None = None  # None: 1,000 from 4.3 on, 0 before
    group_consumer_migration_policy: str = "bidirectional"
    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_max_size: int = 200
    group_share_assignment_interval_ms: int = 1_000
    group_share_record_lock_duration_ms: int = 30_000
    group_share_delivery_count_limit: int = 5
    group_share_partition_max_record_locks: int = 2_000
    group_share_max_share_sessions: int = 2_000
    group_streams_session_timeout_ms: int = 45_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_max_size: int = 2**31 - 1
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_num_standby_replicas: int = 0

    def of_group(self, configs: Mapping[str, str]) -> GroupSettings:
        """With the configuration that a group has of its own, by its names there: share.session.timeout.ms."""
        given = {f"group_{name.replace('.', '_')}": value for name, value in configs.items()}
        own = {name: int(value) for name, value in given.items() if name in OWN and value.isdecimal()}
        return replace(self, **own) if own else self  # type: ignore[arg-type]


OF_GROUPS = ("group_consumer_", "group_share_", "group_streams_")
OWN = {each.name for each in fields(GroupSettings) if each.name.startswith(OF_GROUPS)} - {
    "group_consumer_migration_policy"
}


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The broker's configuration that transactions depend on, by its names there, ms; defaults are those of 4.x.

    transaction_version: the feature's level, None for that of the era's release. most_ids, most_places: how many
    transactional ids are remembered, and how many partitions of all open transactions together.
    """

    era: tuple[int, int] = (4, 3)
    transaction_version: int | None = None
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_two_phase_commit_enable: bool = False
    offsets_topic_num_partitions: int = 50
    most_ids: int = 10_000
    most_places: int = 1_000_000

    @property
    def level(self) -> int:
        """The transaction.version in force."""
        if self.transaction_version is not None:
            return self.transaction_version
        return 2 if self.era >= (4, 0) else 0
