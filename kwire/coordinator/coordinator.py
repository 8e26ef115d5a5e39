"""The group coordinator: a table of APIs in front of the groups. No I/O; whoever asks brings the time.

    coordinator = Coordinator(settings, new_id=lambda client_id: ..., topics=lambda: {name: Topic})
    ticket = coordinator.ask("JoinGroup", 9, body, caller, now)
    coordinator.answers()      # what is ready; a JoinGroup's answer may come much later
    coordinator.tick(now)      # when coordinator.due has come

After GroupCoordinatorService and CoordinatorRuntime (group-coordinator), GroupCoordinator.scala before 4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from kwire.coordinator import classic, describe, heartbeat, heartbeat_rules, joins, modern, offsets, preconditions
from kwire.coordinator.bodies import Body
from kwire.coordinator.committed_offsets import Offsets
from kwire.coordinator.consumer import context as consumer_groups
from kwire.coordinator.consumer import migration
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context, CoordinatorRequest, Reply, Topics
from kwire.coordinator.group_kinds import kind_of
from kwire.coordinator.share import context as share_groups
from kwire.coordinator.share import offsets as share_offsets
from kwire.coordinator.share.states import ShareStates
from kwire.coordinator.stored import StoredKind
from kwire.coordinator.stored_records import Rows
from kwire.coordinator.streams import context as streams_groups
from kwire.coordinator.types import Answer, Check, ClientIdentity, Event, GroupSettings, NewTopic
from kwire.errors import UnknownName

NOBODY = ClientIdentity()


class CoordinatorApi(NamedTuple):
    """handle answers, or returns None when the answer comes later. gated: the request names one group, in GroupId, and
    the preconditions are asked about it; refuse: the body when one of them stops it."""

    handle: Callable[[Context, CoordinatorRequest], Reply | None]
    gated: bool
    refuse: Callable[[CoordinatorRequest, Check], Body]


def _top(request: CoordinatorRequest, check: Check) -> Body:  # noqa: ARG001
    return {"ErrorCode": check.error}


def _join(request: CoordinatorRequest, check: Check) -> Body:
    return classic.unjoined_body(check.error, request.body["MemberId"])


def _message(request: CoordinatorRequest, check: Check) -> Body:  # noqa: ARG001
    return {"ErrorCode": check.error, "ErrorMessage": check.why}


APIS: dict[str, CoordinatorApi] = {
    "JoinGroup": CoordinatorApi(joins.join, True, _join),
    "SyncGroup": CoordinatorApi(joins.sync, True, _top),
    "Heartbeat": CoordinatorApi(heartbeat.heartbeat, True, _top),
    "LeaveGroup": CoordinatorApi(joins.leave, True, _top),
    "OffsetCommit": CoordinatorApi(offsets.commit, True, offsets.refused),
    "TxnOffsetCommit": CoordinatorApi(offsets.commit, True, offsets.refused),
    "OffsetFetch": CoordinatorApi(offsets.fetch, False, _top),
    "OffsetDelete": CoordinatorApi(offsets.delete, True, _top),
    "ListGroups": CoordinatorApi(describe.list_groups, False, _top),
    "DescribeGroups": CoordinatorApi(describe.describe_groups, False, _top),
    "DeleteGroups": CoordinatorApi(describe.delete_groups, False, _top),
    "ConsumerGroupHeartbeat": CoordinatorApi(consumer_groups.heartbeat, True, _message),
    "ConsumerGroupDescribe": CoordinatorApi(describe.describe_consumer_groups, False, _top),
    "ShareGroupHeartbeat": CoordinatorApi(share_groups.heartbeat, True, _message),
    "ShareGroupDescribe": CoordinatorApi(describe.describe_share_groups, False, _top),
    "StreamsGroupHeartbeat": CoordinatorApi(streams_groups.heartbeat, True, _message),
    "StreamsGroupDescribe": CoordinatorApi(describe.describe_streams_groups, False, _top),
    "DescribeShareGroupOffsets": CoordinatorApi(share_offsets.describe, False, _top),
    "AlterShareGroupOffsets": CoordinatorApi(share_offsets.alter, True, _message),
    "DeleteShareGroupOffsets": CoordinatorApi(share_offsets.delete, True, _message),
}


def settled(context: Context, group: modern.ModernGroup) -> None:
    """What follows when something has happened to a group of any kind but the classic."""
    if isinstance(group, ConsumerGroup):
        migration.settle(context, group)
    else:
        modern.settle(context, group)


def random_id(prefix: str) -> str:
    """A member id as Kafka makes them: the client id, or the instance id, and a random UUID."""
    return f"{prefix}-{uuid4()}"


class Coordinator:
    """Groups, their members and offsets. Times are ns; one that lies before the last is taken for the last."""

    def __init__(
        self,
        settings: GroupSettings | None = None,
        new_id: Callable[[str], str] = random_id,
        topics: Topics | None = None,
    ) -> None:
        chosen = settings or GroupSettings()
        rules = heartbeat_rules.of_era(chosen.era)
        self._context = Context(chosen, new_id, topics, Offsets(), preconditions.of_era(chosen.era), rules)
        self._context.purgatory.kinds |= classic.kinds(self._context) | modern.kinds(self._context, settled)
        self._tickets = 0

    # requests and answers

    def ask(
        self,
        api: str,
        version: int,
        body: Mapping[str, Any],
        caller: ClientIdentity = NOBODY,
        now: int = 0,
        barred: Check | None = None,
    ) -> int:
        """Takes a request in; answers() has its answer under the ticket that this returns, at once or later. barred:
        what the transaction coordinator has against a TxnOffsetCommit.

        Raises UnknownName for an API that a group coordinator does not answer, or a version that the API lacks.
        """
        entry = APIS.get(api)
        if entry is None:
            raise UnknownName("group coordinator API", api, tuple(APIS))
        self.tick(now)
        self._tickets += 1
        request = CoordinatorRequest(self._tickets, api, version, body, caller, barred)
        reply = self._stopped(entry, request) or entry.handle(self._context, request)
        if reply is not None:
            self._context.answer(request, reply.body, reply.check)
        return request.ticket

    def _stopped(self, entry: CoordinatorApi, request: CoordinatorRequest) -> Reply | None:
        if not entry.gated:
            return None
        context = self._context
        check = preconditions.stopped(
            context, context.preconditions, request.api, request.caller, request.body["GroupId"]
        )
        if check is None:
            return None
        if request.api == "Heartbeat" and check.name == preconditions.LOADED.name:
            return heartbeat.blind(check)
        return Reply(entry.refuse(request, check), check)

    def answers(self) -> list[Answer]:
        """Drains the answers that are ready, in the order in which they were given."""
        ready, self._context.answers = self._context.answers, []
        return ready

    def events(self) -> list[Event]:
        """Drains what happened; beyond 262,144 events the oldest are lost."""
        happened = list(self._context.events)
        self._context.events.clear()
        return happened

    def gone(self, ticket: int) -> None:
        """Who asked has hung up: no answer will be given. Its member stays, as in Kafka."""
        self._context.drop(ticket)

    @property
    def waiting(self) -> int:
        """How many requests wait for their answer."""
        return len(self._context.waiting)

    # time

    def tick(self, now: int) -> None:
        """Expires what is due, each operation as of its own deadline."""
        self._context.purgatory.tick(now)
        self._context.now = max(self._context.now, now)

    @property
    def due(self) -> int | None:
        """When tick must be called next; None when nothing waits."""
        return self._context.purgatory.due

    # what may be seen and switched

    @property
    def settings(self) -> GroupSettings:
        return self._context.settings

    @property
    def groups(self) -> dict[str, Any]:
        """By id: Group, ConsumerGroup, ShareGroup or StreamsGroup."""
        return self._context.groups

    @property
    def offsets(self) -> Offsets:
        """Committed offsets, and those of open transactions."""
        return self._context.offsets

    @property
    def share_states(self) -> ShareStates:
        """What is stored of share groups' partitions."""
        return self._context.share_states

    @property
    def configs(self) -> Callable[[str], Mapping[str, str]]:
        """A group's own configuration, by its names there: share.record.lock.duration.ms."""
        return self._context.configs

    @configs.setter
    def configs(self, configs: Callable[[str], Mapping[str, str]]) -> None:
        self._context.configs = configs

    def settings_of(self, group: str) -> GroupSettings:
        """The configuration that counts for a group."""
        return self._context.settings_of(group)

    def log_ends(self, ends: Callable[[UUID, int], int | None]) -> None:
        """Who knows where logs end, for the lag of share groups: by topic id and partition, None for no such log."""
        self._context.ends = ends

    def make_topics(self, make: Callable[[Sequence[NewTopic]], None]) -> None:
        """Who makes the internal topics of streams groups."""
        self._context.new_topics = make

    @property
    def active(self) -> bool:
        """False: every request is answered with COORDINATOR_NOT_AVAILABLE."""
        return self._context.active

    @active.setter
    def active(self, active: bool) -> None:
        self._context.active = active

    @property
    def owns(self) -> Callable[[str], bool]:
        """Whether this coordinator is that group's; else NOT_COORDINATOR."""
        return self._context.owns

    @owns.setter
    def owns(self, owns: Callable[[str], bool]) -> None:
        self._context.owns = owns

    @property
    def loading(self) -> set[str]:
        """Groups that are being loaded: COORDINATOR_LOAD_IN_PROGRESS, and NONE to classic heartbeats."""
        return self._context.loading

    @loading.setter
    def loading(self, groups: set[str]) -> None:
        self._context.loading = groups

    @property
    def may(self) -> Callable[[ClientIdentity, str], bool]:
        """Whether the caller may use that group; else GROUP_AUTHORIZATION_FAILED."""
        return self._context.may

    @may.setter
    def may(self, may: Callable[[ClientIdentity, str], bool]) -> None:
        self._context.may = may

    def revive(self, group: str, now: int) -> None:
        """An empty classic group, for offsets that are there again after a restart."""
        if group not in self._context.groups:
            self.tick(now)
            classic.clean_up_later(self._context, classic.new_group(self._context, group))

    def revive_stored(self, kind: StoredKind, group: str, found: Mapping[str, Rows], now: int) -> None:
        """A group with its members, from its records."""
        self.tick(now)
        kind.revive(self._context, group, found)

    def forget(self, group: str) -> bool:
        """Drops a group as if another broker took it over: whoever waits gets NOT_COORDINATOR. Offsets stay."""
        found = self._context.groups.get(group)
        if found is not None:
            kind_of(found).end(self._context, found, "the coordinator gave it up")
        return found is not None

    def expire(self, group: str, member: str, now: int) -> bool:
        """Ends a member's session; says whether there was such a member."""
        self.tick(now)
        found = self._context.groups.get(group)
        if found is None:
            return False
        expired = kind_of(found).expire(self._context, found, member)
        served = modern.modern(found)
        if served is not None:
            settled(self._context, served)
        return expired

    def end_transaction(self, producer: int, commit: bool) -> None:
        """A transaction ended: its offsets become the groups', or vanish."""
        self._context.offsets.end_transaction(producer, commit)

    def topics_changed(self, now: int) -> None:
        """Topics came, went or grew."""
        self.tick(now)
        for group in [modern.modern(each) for each in self._context.groups.values()]:
            if group is not None:
                group.topics_changed()
                settled(self._context, group)
