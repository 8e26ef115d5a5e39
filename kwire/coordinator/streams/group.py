"""A streams group (KIP-1071) as its coordinator keeps it: members, the topology that they share, tasks. No I/O.

    group = StreamsGroup(name, settings, topics)
    body, check, new = group.heartbeat(body, caller, now)   # new: internal topics that are to be created
    group.tick(now); group.due
    group.topics_changed(); group.expire(member, now); group.offset_check(...)
    group.describe(version); group.state; group.events()

The first member brings the topology. As long as topics are missing for it, nobody has a task and the answers' status
says what is missing. A change of what a member says of itself, of topics or of the configuration grows the group epoch;
the next target is computed for it, and each member moves there in its own heartbeats. Rules: streamsGroupHeartbeat of
Kafka's GroupMetadataManager, StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kwire.coordinator.consumer.bodies import refusal
from kwire.coordinator.consumer.checks import JOIN, LEAVE
from kwire.coordinator.consumer.members import walk_order
from kwire.coordinator.consumer.topics import hash_of
from kwire.coordinator.streams import assignor, bodies, checks, tasks
from kwire.coordinator.streams.tasks import StreamsMember, Tasks, TaskState
from kwire.coordinator.streams.topology import (
    DELAYED,
    SHUTDOWN,
    STALE,
    ConfiguredTopology,
    StreamsTopology,
    configure,
)  # fmt: skip
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.types import MS, Check, ClientIdentity, Event, GroupSettings, KnownTopic, NewTopic
from kwire.schema import codes

SESSION, REBALANCE, INITIAL = "session", "rebalance", "initial"
Answer = tuple[dict[str, Any], Check, tuple[NewTopic, ...]]


class StreamsGroup:
    """One group. members: by id. epoch: the group epoch; target_epoch: the one its target was computed for;
    validated_epoch: the topology's, -1 while topics are missing for it."""

    type: Final = "streams"
    protocol_type: Final = "streams"
    lapses: Final = True
    makes_way: Final = True

    def __init__(self, name: str, settings: GroupSettings, topics: Callable[[], Mapping[str, KnownTopic]]) -> None:
        self.name = name
        self.epoch = self.target_epoch = 1
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, Tasks] = {}
        self.topology: StreamsTopology | None = None
        self.configured: ConfiguredTopology | None = None
        self.validated_epoch = 0
        self.endpoint_epoch = 0
        self.fresh = True
        self.settings, self._all_topics = settings, topics
        self.topics_hash = 0  # of the topics that the topology needs, as they were when last looked at
        self._stale = False
        self.standbys: int | None = None  # as the last target had them
        self._shutdown: str | None = None  # the member that asked for the end of the application
        self.target_time: int | None = None
        self.timers = Timers()
        self._slots = 2  # of Kafka's table of members
        self._events: list[Event] = []

    def configure(self, settings: GroupSettings) -> None:
        """The configuration that counts for this group from now on."""
        self.settings = settings

    # What it says of itself

    @property
    def state(self) -> str:
        """Empty, NotReady, Assigning, Reconciling or Stable."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return "NotReady"
        if self.epoch > self.target_epoch:
            return "Assigning"
        there = all(member.is_at(self.target_epoch) for member in self.members.values())
        return "Stable" if there else "Reconciling"

    @property
    def due(self) -> int | None:
        return self.timers.due

    def events(self) -> list[Event]:
        """What happened since it was last asked."""
        drained, self._events = self._events, []
        return drained

    def subscribes(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.required

    def describe(self, version: int) -> dict[str, Any]:  # noqa: ARG002
        """A DescribedGroup of StreamsGroupDescribe."""
        ready = self.configured is not None and self.configured.ready
        topology = self.configured.topology if ready and self.configured is not None else self.topology
        return {
            "ErrorCode": codes.NONE,
            "ErrorMessage": None,
            "GroupId": self.name,
            "GroupState": self.state,
            "GroupEpoch": self.epoch,
            "AssignmentEpoch": self.target_epoch,
            "Topology": None if topology is None else topology.described(),
            "Members": [
                bodies.described(member, self.targets.get(member.id, Tasks())) for member in self.members.values()
            ],
            "AuthorizedOperations": -(2**31),
        }

    # Offsets

    def offset_check(
        self,
        member_id: str | None,
        epoch: int,
        commit: bool,
        version: int = 9,
        partition: tuple[str, int] | None = None,
    ) -> Check:
        """Whether offsets may be committed or fetched. partition: topic name and number, asked once more for each of a
        commit that comes with an older epoch (KIP-1251)."""
        if epoch < 0 and (not self.members if commit else member_id is None):
            return Check(0, "no member", codes.NONE, "asked without being a member")
        if commit and version < 9:
            why = f"OffsetCommit v{version} to a streams group, which needs v9"
            return Check(0, "version", codes.UNSUPPORTED_VERSION, why)
        member = self.members.get(member_id or "")
        if member is None:
            return checks.unknown_member(self.name, repr(member_id or ""))
        if epoch == member.epoch:
            return Check(5, "epoch", codes.NONE, f"member epoch {epoch} stands")
        behind = f"member epoch {epoch} is not {member.epoch}, which the coordinator knows"
        if not commit or epoch > member.epoch:
            return Check(5, "epoch", codes.STALE_MEMBER_EPOCH, behind)
        if partition is None:
            return Check(5, "epoch", codes.NONE, "an older epoch will do for tasks held since")
        subs = self.topology.subtopologies if self.topology else ()
        sub = next((each.id for each in subs if partition[0] in each.inputs), None)
        since = member.since.get((sub, partition[1])) if sub is not None else None
        if since is None or epoch < since:
            return Check(5, "epoch", codes.STALE_MEMBER_EPOCH, f"{behind}, and the task is not held since then")
        return Check(5, "epoch", codes.NONE, f"the task is held since epoch {since}")

    # Time and the world outside

    def tick(self, now: int) -> None:
        """Removes members whose session ended or who did not give up tasks in time; computes a target that was held
        back."""
        while (expired := self.timers.pop(now)) is not None:
            key, deadline = expired
            if key.kind == INITIAL:
                if self.members and self.configured is not None:
                    self._compute_target(deadline)
                continue
            member = self.members[key.member]
            if key.kind == SESSION:
                timeout = self.settings.group_streams_session_timeout_ms
                why, kind = f"no heartbeat for {timeout:,} ms (streams session timeout)", "evicted"
            else:
                timeout, kind = member.rebalance_timeout_ms, "fenced"
                why = f"did not give up its tasks at epoch {member.epoch} within {timeout:,} ms (RebalanceTimeoutMs)"
            self._remove(member, deadline, kind, why, {"last_heartbeat": member.heard, "deadline": deadline})

    def expire(self, member_id: str, now: int) -> bool:
        """Ends a member's session now; says whether there was such a member."""
        member = self.members.get(member_id)
        if member is not None:
            self._remove(member, now, "evicted", "its session was ended", {"last_heartbeat": member.heard})
        return member is not None

    def topics_changed(self) -> None:
        """Topics came, went or grew: the next heartbeat of any member looks again."""
        self._stale = True

    # The heartbeat

    def heartbeat(self, body: Mapping[str, Any], caller: ClientIdentity, now: int) -> Answer:
        """The answer to a StreamsGroupHeartbeat, the check that decided it, and the internal topics to be created."""
        self.tick(now)
        owned = tasks.read(body)
        refused, topology = self._refusal(body, owned)
        if refused is not None:
            return refusal(refused), refused, ()
        if body["MemberEpoch"] == LEAVE:
            return self._leave(body, now)
        return self._accept(body, owned, topology, caller, now)

    def _refusal(self, body: Mapping[str, Any], owned: Tasks | None) -> tuple[Check | None, StreamsTopology | None]:
        refused = checks.check_request(body)
        if refused is not None:
            return refused, None
        epoch, member = body["MemberEpoch"], self.members.get(body["MemberId"])
        topology = None if body.get("Topology") is None else StreamsTopology.read(body["Topology"])
        if isinstance(topology, Check):
            return topology, None
        if epoch != JOIN and self.fresh:
            why = f"there is no streams group {self.name}, and MemberEpoch is {epoch}"
            return Check(2, "group", codes.GROUP_ID_NOT_FOUND, why), None
        most = self.settings.group_streams_max_size
        if epoch == JOIN and len(self.members) >= most:
            why = f"{len(self.members):,} members, group.streams.max.size is {most:,}"
            return Check(3, "size", codes.GROUP_MAX_SIZE_REACHED, why), None
        if member is None and epoch != JOIN:
            return checks.unknown_member(self.name, body["MemberId"]), None
        if member is not None and epoch >= 0 and (refused := checks.check_epoch(member, epoch, owned)) is not None:
            return refused, None
        known = self.topology
        if topology is not None and known is not None and known.epoch <= topology.epoch and known != topology:
            why = f"another topology than the group's, of epoch {known.epoch}: topologies cannot change yet"
            return Check(6, "topology", codes.INVALID_REQUEST, why), None
        if self.configured is not None and self.configured.ready and not self._stale and epoch >= 0:
            return checks.check_tasks(owned, self.configured.tasks or {}), topology
        return None, topology

    def _accept(
        self,
        body: Mapping[str, Any],
        owned: Tasks | None,
        topology: StreamsTopology | None,
        caller: ClientIdentity,
        now: int,
    ) -> Answer:
        settings, epoch, was_empty, was_fresh = self.settings, body["MemberEpoch"], not self.members, self.fresh
        member, reasons = self._seat(body, caller, now)
        known, before = member.epoch, member.assigned
        self.topology = self.topology or topology
        assert self.topology is not None
        status: list[dict[str, Any]] = []
        if member.topology_epoch < self.topology.epoch:
            why = f"The member's topology epoch {member.topology_epoch} is behind the group's {self.topology.epoch}."
            status.append({"StatusCode": STALE, "StatusDetail": why})
        if self._look():
            reasons.append("topics changed")
        assert self.configured is not None
        validated = self.topology.epoch if self.configured.ready else -1
        if validated != self.validated_epoch:
            reasons.append(f"the topology is {'ready' if validated >= 0 else 'not ready'}")
        if settings.group_streams_num_standby_replicas != self.standbys:
            reasons.append("the number of standbys changed")
        if reasons:
            self.validated_epoch, self.standbys = validated, settings.group_streams_num_standby_replicas
            self._bump(now, f"{member.id}: {', '.join(reasons)}", member.id)
        initial, delay = Key(INITIAL, self.name), settings.group_streams_initial_rebalance_delay_ms
        if was_empty and delay > 0 and initial not in self.timers:
            self.timers.set(initial, now + delay * MS)
        delayed = self._delayed(now)
        if delayed is not None:
            status.append({"StatusCode": DELAYED, "StatusDetail": delayed})
        else:
            self._compute_target(now, member.id if known == 0 else None)
        target = Tasks() if initial in self.timers else self.targets.get(member.id, Tasks())
        self._reconcile(member, target, owned, now)
        member.heard = now
        self.timers.set(Key(SESSION, self.name, member.id), now + settings.group_streams_session_timeout_ms * MS)
        if body.get("ShutdownApplication"):
            self._shutdown = self._shutdown or member.id
        told = epoch == JOIN or member.assigned != before
        if told and member.endpoint is not None:
            self.endpoint_epoch += 1
        answer = bodies.answer(member, told, settings.group_streams_heartbeat_interval_ms)
        if self.endpoint_epoch != body.get("EndpointInformationEpoch", 0):
            subs = self.configured.topology.subtopologies
            answer["PartitionsByUserEndpoint"] = bodies.endpoints(self.members.values(), subs, self._all_topics())
        answer |= {"EndpointInformationEpoch": 0 if was_fresh else self.endpoint_epoch, "Status": status}
        if self.configured.status is not None:
            code, detail = self.configured.status
            status.append({"StatusCode": code, "StatusDetail": detail})
        if self._shutdown is not None:
            status.append({"StatusCode": SHUTDOWN, "StatusDetail": bodies.SHUTDOWN_WHY.format(self._shutdown)})
        why, new = f"member epoch {epoch} accepted, {known} was known, {member.epoch} is now", self.configured.to_create
        if was_fresh:  # Kafka keeps of the heartbeat that made the group only what is in records
            self.endpoint_epoch, self.configured, self._shutdown = 0, None, None
        return answer, Check(8, "accepted", codes.NONE, why), new

    def _seat(self, body: Mapping[str, Any], caller: ClientIdentity, now: int) -> tuple[StreamsMember, list[str]]:
        """The member, new if it joins; and why the group epoch must grow."""
        self.fresh = False
        member = self.members.get(body["MemberId"])
        if member is None:
            member = self.members[body["MemberId"]] = StreamsMember(body["MemberId"])
            member.client_id = caller.client_id
            self._event(now, "joined", member, "a new member", {})
            before: tuple[Any, ...] = ()
        else:
            before = member.said()
            if body["MemberEpoch"] == JOIN:
                self._event(now, "rejoined", member, f"joins again, at epoch {member.epoch}", {})
        if body.get("RackId") is not None:
            member.rack = body["RackId"]
        if body.get("RebalanceTimeoutMs", -1) != -1:
            member.rebalance_timeout_ms = body["RebalanceTimeoutMs"]
        if body.get("Topology") is not None:
            member.topology_epoch = body["Topology"]["Epoch"]
        if body.get("ProcessId") is not None:
            member.process = body["ProcessId"]
        if body.get("ClientTags") is not None:
            member.tags = tuple(sorted((row["Key"], row["Value"]) for row in body["ClientTags"]))
        if body.get("UserEndpoint") is not None:
            member.endpoint = (body["UserEndpoint"]["Host"], body["UserEndpoint"]["Port"])
        member.client_id, member.client_host = caller.client_id, caller.host
        return member, ["the member is new, or not what it was"] if member.said() != before else []

    def _look(self) -> bool:
        """Looks at the topics again if there is a reason; says whether those needed are others than before."""
        assert self.topology is not None
        if self.configured is not None and not self._stale:
            return False
        self._stale = False
        there = self._all_topics()
        found = hash_of({name: there[name] for name in self.topology.required if name in there})
        changed = found != self.topics_hash
        if changed or self.configured is None:
            self.topics_hash, self.configured = found, configure(self.topology, there)
        return changed

    # The target

    def _bump(self, now: int, why: str, member: str | None = None) -> None:
        self.epoch += 1
        self._events.append(Event(now, self.name, "epoch", member, self.epoch, why, {"epoch": self.epoch}))

    def _delayed(self, now: int) -> str | None:
        """Why no target is computed yet."""
        if Key(INITIAL, self.name) in self.timers:
            return "Assignment delayed due to the configured initial rebalance delay."
        interval = self.settings.group_streams_assignment_interval_ms * MS
        waits = self.target_time is not None and interval and now < self.target_time + interval
        return (
            "Assignment delayed due to the configured assignment interval."
            if waits and self.epoch > self.target_epoch
            else None
        )

    def _compute_target(self, now: int, new: str | None = None) -> None:
        """new: the member that joins with the heartbeat under way, which comes last."""
        if self.epoch <= self.target_epoch or self.configured is None:
            return
        order, self._slots = walk_order([each for each in self.members if each != new], self._slots)
        members = [self.members[each] for each in (*order, *([] if new is None else [new]))]
        workers = [assignor.Worker(m.id, m.process, self.targets.get(m.id, Tasks())) for m in members]
        if self.configured.ready:
            stateful = {sub.id for sub in self.configured.topology.subtopologies if sub.changelogs}
            self.targets = assignor.assign(workers, self.configured.tasks or {}, stateful, self.standbys or 0)
        else:
            self.targets = {worker.id: Tasks() for worker in workers}
        self.target_epoch, self.target_time = self.epoch, now
        facts = {"epoch": self.epoch, "assignor": assignor.NAME, "members": len(self.members)}
        why = f"{assignor.NAME} assignor, {len(self.members):,} members"
        self._events.append(Event(now, self.name, "target", None, self.epoch, why, facts))

    def _reconcile(self, member: StreamsMember, target: Tasks, owned: Tasks | None, now: int) -> None:
        epoch = member.epoch
        if not tasks.reconcile(member, target, self.target_epoch, owned, tasks.holders(self.members.values())):
            return
        key = Key(REBALANCE, self.name, member.id)
        if member.state is TaskState.UNREVOKED:
            self.timers.set(key, now + max(member.rebalance_timeout_ms, 0) * MS)
        else:
            self.timers.discard(key)
        facts = {
            "state": member.state.value, "epoch": member.epoch, "assigned": tasks.rows(member.assigned.active),
            "revoking": tasks.rows(member.revoking.active),
        }  # fmt: skip
        self._event(now, "reconciled", member, f"epoch {epoch} to {member.epoch}, {member.state.value}", facts)

    # Leaving

    def _leave(self, body: Mapping[str, Any], now: int) -> Answer:
        member = self.members[body["MemberId"]]
        if body.get("ShutdownApplication"):
            self._shutdown = self._shutdown or member.id
        self._remove(member, now, "left", f"MemberEpoch {LEAVE}", {})
        answer = {"ErrorCode": codes.NONE, "MemberId": member.id, "MemberEpoch": LEAVE, "Status": []}
        return answer, Check(4, "left", codes.NONE, f"{member.id} was a member and has left"), ()

    def _remove(self, member: StreamsMember, time: int, kind: str, why: str, facts: Mapping[str, Any]) -> None:
        del self.members[member.id]
        self.targets.pop(member.id, None)
        for timer in (SESSION, REBALANCE):
            self.timers.discard(Key(timer, self.name, member.id))
        self._event(time, kind, member, why, facts)
        self._bump(time, f"{member.id} {kind}", member.id)
        if not self.members:
            self._shutdown = None
            self._events.append(Event(time, self.name, "empty", None, self.epoch, "the last member is gone"))

    def _event(self, time: int, kind: str, member: StreamsMember, why: str, facts: Mapping[str, Any]) -> None:
        told = {"client_id": member.client_id, **facts}
        self._events.append(Event(time, self.name, kind, member.id, member.epoch, why, told))
