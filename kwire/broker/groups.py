"""Groups: the bridge from requests to the coordinator, which knows neither sockets nor timers.

One coordinator serves all nodes; each node owns the groups that the cluster's hash gives it, and answers
NOT_COORDINATOR for the others. Answers that come later find their request by the ticket.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kwire.broker.bridge import Alarm, load, move
from kwire.broker.configs import TOPIC
from kwire.broker.context import Body, Later, Request
from kwire.broker.core import LONGEST, BrokerCore
from kwire.broker.memory import weigh
from kwire.broker.refused import Refused
from kwire.broker.shape import refusal
from kwire.codec.library import builtin_library
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.types import Answer, Check, ClientIdentity, Event, NewTopic
from kwire.schema import codes

HEAVY = 10_000  # bytes of an event that is kept whole
LOOKS_AT_TOPICS = (
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
)


class Groups:
    """The groups of all nodes."""

    def __init__(self, state: BrokerCore) -> None:
        self.state = state
        settings = replace(state.settings.groups, era=state.settings.era or state.settings.groups.era)
        self.coordinator = Coordinator(settings, topics=state.cluster.group_topics)
        self.coordinator.configs = state.cluster.configs.of_group
        self.coordinator.make_topics(self._make)
        self._waiting: dict[int, tuple[Request, Later]] = {}
        self._alarm = Alarm(state.clock, self._tick)
        self._topics_changed = False
        state.cluster.changed.append(self._note)

    def ask(self, request: Request, barred: Check | None = None) -> Body | Later:
        """A group request's answer, maybe later. barred: why a transaction's offsets may not come in."""
        peer, cluster = request.peer, self.state.cluster
        caller = ClientIdentity(request.client_id or "", f"/{peer.host}", peer.principal)
        self.coordinator.owns = lambda group: cluster.coordinator(group) == request.node
        later = Later()
        if self._topics_changed and request.api in LOOKS_AT_TOPICS:
            self._topics_changed = False
            self.coordinator.topics_changed(request.time)
        ticket = self.coordinator.ask(request.api, request.version, request.body, caller, request.time, barred)
        self._waiting[ticket] = (request, later)
        self._drain()
        if not later.given:
            peer.closing.append(lambda: self._gone(ticket))
        return later

    @property
    def remembered(self) -> Any:
        """All that stays of groups and of requests that wait, to be weighed."""
        known = self.coordinator
        return (known.groups, known.offsets, known.share_states.known, self._waiting)

    @property
    def full(self) -> bool:
        """No further group has room."""
        return len(self.coordinator.groups) >= self.state.settings.limits.groups

    def act(self, what: str, group: str, member: str | None, value: int = 0) -> None:
        """A fault: forget, expire, move, or loading, for value ns."""
        now = self.state.clock.now()
        if what == "forget":
            self.coordinator.forget(group)
        elif what == "expire" and member:
            self.coordinator.expire(group, member, now)
        elif what == "move":
            self.move(group)
        elif what == "loading":
            load(self.state, self.coordinator.loading, group, value)
        self._drain()

    def move(self, group: str, node: int | None = None) -> None:
        """A node coordinates the group from now on; None: all coordinators move on."""
        move(self.state, group, node)
        self._abandon()

    def stop(self) -> None:
        self._alarm.cancel()

    def _abandon(self) -> None:
        """The coordinator has moved: whoever waits is told so, as when Kafka unloads a group."""
        library = builtin_library()
        for ticket, (request, later) in list(self._waiting.items()):
            if later.given or self.state.cluster.coordinator(request.body.get("GroupId", "")) == request.node:
                continue
            del self._waiting[ticket]
            self.coordinator.gone(ticket)
            plans = [library.plan(f"{request.api}{kind}", request.version).root for kind in ("Response", "Request")]
            later.give(refusal(plans[0], plans[1], request.body, codes.NOT_COORDINATOR))

    def _gone(self, ticket: int) -> None:
        if self._waiting.pop(ticket, None) is not None:
            self.coordinator.gone(ticket)
            self._drain()

    def _make(self, topics: Sequence[NewTopic]) -> None:
        """Internal topics of a streams group; one that cannot be made is missed again in the next heartbeat."""
        for topic in topics:
            with suppress(Refused):
                self.state.create(topic.name, topic.partitions)
                self.state.cluster.configs.replace(TOPIC, topic.name, dict(topic.configs))

    def _note(self) -> None:
        """Topics changed; members learn of it in their next heartbeats, so that then is early enough to look."""
        self._topics_changed = True

    def _tick(self) -> None:
        self.coordinator.tick(self.state.clock.now())
        self._drain()

    def _drain(self) -> None:
        """Gives out what is ready, tells what happened, and sets the next alarm."""
        for event in self.coordinator.events():
            self._tell(event)
        for answer in self.coordinator.answers():
            self._give(answer)
        self._alarm.set(self.coordinator.due)

    def _give(self, answer: Answer) -> None:
        waiting = self._waiting.pop(answer.ticket, None)
        if waiting is not None:
            waiting[1].give(answer.body)

    def _tell(self, event: Event) -> None:
        said = "" if event.generation is None else f"generation {event.generation}"
        words = [word for word in (event.member, said) if word and word not in event.why]
        if weigh(event, HEAVY) >= HEAVY:  # the happenings of a while are kept: clients choose names of any length
            member = event.member and event.member[:LONGEST]
            event = replace(event, facts={}, group=event.group[:LONGEST], member=member, why=event.why[:LONGEST])
        self.state.tell(event.kind, event.group, ", ".join([*words, event.why] if event.why else words), event=event)
