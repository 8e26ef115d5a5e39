"""What all handlers work with: groups, waiting requests, delayed operations, and what goes out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from kwire.coordinator.bodies import Body, shape
from kwire.coordinator.committed_offsets import Offsets
from kwire.coordinator.group import Group
from kwire.coordinator.heartbeat_rules import HeartbeatRule
from kwire.coordinator.preconditions import Precondition
from kwire.coordinator.purgatory import Purgatory
from kwire.coordinator.share.states import ShareStates
from kwire.coordinator.types import MS, Answer, Check, ClientIdentity, Event, GroupSettings, KnownTopic, NewTopic

MOST_EVENTS = 1 << 18  # that wait for someone to ask; beyond that the oldest are lost
Topics = Callable[[], Mapping[str, KnownTopic]]


class CoordinatorRequest(NamedTuple):
    """A request, and the ticket under which it is answered."""

    ticket: int
    api: str
    version: int
    body: Mapping[str, Any]
    caller: ClientIdentity
    barred: Check | None = None  # why a transaction coordinator does not let these offsets in


class Reply(NamedTuple):
    """What a handler answers at once; fields that the version lacks do no harm."""

    body: Body
    check: Check | None = None


def anyone(caller: ClientIdentity, group: str) -> bool:  # noqa: ARG001
    """Everybody may."""
    return True


def everything(group: str) -> bool:  # noqa: ARG001
    """This broker coordinates every group."""
    return True


def unconfigured(group: str) -> Mapping[str, str]:  # noqa: ARG001
    """No group has configuration of its own."""
    return {}


def endless(topic: UUID, partition: int) -> int | None:  # noqa: ARG001
    """Nobody knows where logs end."""
    return None


def none_made(topics: Sequence[NewTopic]) -> None:
    """Nobody makes topics here."""


@dataclass(slots=True)
class Context:
    """State that the handlers share. topics: None when nobody knows which topics there are; then any will do.
    configs: a group's own configuration, by its names there. ends: the offset behind a partition's last
    record. new_topics: makes those that a streams group needs."""

    settings: GroupSettings
    new_id: Callable[[str], str]
    topics: Topics | None
    offsets: Offsets
    preconditions: tuple[Precondition, ...]
    heartbeat_rules: tuple[HeartbeatRule, ...]
    now: int = 0
    groups: dict[str, Any] = field(default_factory=dict)  # a Group, or another kind's
    purgatory: Purgatory = field(default_factory=Purgatory)
    waiting: dict[int, CoordinatorRequest] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    active: bool = True
    owns: Callable[[str], bool] = everything
    loading: set[str] = field(default_factory=set)
    may: Callable[[ClientIdentity, str], bool] = anyone
    configs: Callable[[str], Mapping[str, str]] = unconfigured
    share_states: ShareStates = field(default_factory=ShareStates)
    ends: Callable[[UUID, int], int | None] = endless
    new_topics: Callable[[Sequence[NewTopic]], None] = none_made

    def settings_of(self, group: str) -> GroupSettings:
        """The configuration that counts for a group."""
        own = self.configs(group)
        return self.settings.of_group(own) if own else self.settings

    def all_topics(self) -> Mapping[str, KnownTopic]:
        """The topics there are; none when nobody knows."""
        return {} if self.topics is None else self.topics()

    def since(self, *release: int) -> bool:
        """Whether the rules are those of this release or a later one."""
        return self.settings.era >= release

    def answer(self, request: CoordinatorRequest, body: Body, check: Check | None = None) -> None:
        """Sends an answer, shaped for the request's version."""
        shaped = shape(request.api + "Response", request.version, body)
        self.answers.append(Answer(request.ticket, request.api, request.version, shaped, self.now, check))

    def wait(self, request: CoordinatorRequest) -> int:
        """The request's answer comes later. Returns its ticket."""
        self.waiting[request.ticket] = request
        return request.ticket

    def drop(self, ticket: int | None) -> bool:
        """Forgets a request that waited: no answer will come. False if it did not wait (any more)."""
        return ticket is not None and self.waiting.pop(ticket, None) is not None

    def release(self, ticket: int | None, body: Body, check: Check | None = None) -> None:
        """Answers a request that waited, unless who asked is gone."""
        request = None if ticket is None else self.waiting.pop(ticket, None)
        if request is not None:
            self.answer(request, body, check)

    def tell(
        self, group: Group, kind: str, why: str = "", member: str | None = None, facts: dict[str, Any] | None = None
    ) -> None:
        """Something happened to a classic group."""
        self.tell_of(group.id, kind, why, member, group.generation, facts)

    def tell_of(
        self,
        group: str,
        kind: str,
        why: str = "",
        member: str | None = None,
        generation: int | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Something happened to a group of any kind."""
        self.events.append(Event(self.now, group, kind, member, generation, why, facts or {}))


def counted(number: int, word: str) -> str:
    """ "1 member", "2 members"."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def shown_ms(ms: float) -> str:
    """ "6,000 ms"."""
    return f"{ms:,.0f} ms"


def elapsed(since: int, now: int) -> str:
    """The time between, in ms."""
    return shown_ms((now - since) / MS)
