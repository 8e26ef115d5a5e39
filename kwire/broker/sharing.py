"""Share groups at the leaders of partitions: the bridge from requests and logs to kwire.coordinator.share.

Each node has a ShareLeader with the sessions and the records in flight of the partitions that it leads. A ShareFetch
that finds too little waits for records to be written, released, or let go by a lock that ends (DelayedShareFetch).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple
from uuid import UUID

from kwire.broker.bridge import Alarm
from kwire.broker.configs import GROUP
from kwire.broker.context import MS, Body, Later, Peer, Request, Timer
from kwire.broker.core import BrokerCore
from kwire.broker.log import Log
from kwire.broker.partition import Partition
from kwire.broker.refused import Refused
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.share.acquiring import Ask, acquire
from kwire.coordinator.share.inflight import Acquired
from kwire.coordinator.share.leader import ShareLeader
from kwire.coordinator.share.partition import SharePartition, ShareRules
from kwire.coordinator.share.reset import milliseconds
from kwire.coordinator.share.sessions import ShareSession, Spot
from kwire.coordinator.share.states import SharePartitionKey
from kwire.coordinator.types import Check
from kwire.records.batch import Header, read_header
from kwire.schema import codes

MAX_BYTES = 16 << 20  # fetch.max.bytes of the broker
DEFAULTS = {"share.auto.offset.reset": "latest", "share.isolation.level": "read_uncommitted"}
numbers = count(-1, -1)  # below those of fetches, beside which they wait
Served = dict[Spot, tuple[SharePartition, Partition]]


class Read(NamedTuple):
    """What a partition's log gave: batches as they are, and each one's header."""

    batches: list[bytes]
    headers: list[Header]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(each.base_offset, each.base_offset + each.last_offset_delta) for each in self.headers]


class Sharing:
    """The share groups of all nodes."""

    def __init__(self, state: BrokerCore, coordinator: Coordinator) -> None:
        self.state, self._coordinator = state, coordinator
        coordinator.log_ends(self._end)
        sessions, states = coordinator.settings.group_share_max_share_sessions, coordinator.share_states
        self.leaders = {node: ShareLeader(states, self.rules, sessions) for node in state.cluster.nodes}
        self.waiting: dict[int, WaitingShareFetch] = {}
        self._opened: dict[Peer, ShareSession] = {}
        self._alarm = Alarm(state.clock, self._tick)
        state.cluster.changed.append(self._topics_changed)

    # ------------------------------------------------------------ configuration

    def config(self, group: str, name: str) -> str:
        """share.auto.offset.reset or share.isolation.level of a group."""
        return self.state.cluster.configs.given.get((GROUP, group), {}).get(name, DEFAULTS[name])

    def rules(self, group: str) -> ShareRules:
        settings = self._coordinator.settings_of(group)
        own = self.state.cluster.configs.given.get((GROUP, group), {})
        return ShareRules(
            settings.group_share_record_lock_duration_ms,
            settings.group_share_delivery_count_limit,
            settings.group_share_partition_max_record_locks,
            own.get("share.renew.acknowledge.enable", "true") == "true",
        )

    # ------------------------------------------------------------ partitions

    def leader(self, node: int) -> ShareLeader:
        """A node's; locks that are due have ended."""
        found = self.leaders.get(node)
        if found is None:
            coordinator = self._coordinator
            sessions = coordinator.settings.group_share_max_share_sessions
            found = self.leaders[node] = ShareLeader(coordinator.share_states, self.rules, sessions)
        found.tick(self.state.clock.now())
        return found

    def serve(self, group: str, spot: Spot, node: int) -> tuple[SharePartition, Partition]:
        """A share partition and the log's partition. Raises Refused."""
        topic = self.state.cluster.by_id.get(spot[0])
        if topic is None:
            raise Refused(codes.UNKNOWN_TOPIC_ID, "no topic has this id")
        partition = self.state.cluster.partition(topic, spot[1], node)
        place = SharePartitionKey(group, *spot)
        found = self.leader(node).partition(place, partition.epoch, lambda: self._begin(group, partition.log))
        if isinstance(found, Check):
            raise Refused(found.error, found.why)
        return found, partition

    def _begin(self, group: str, log: Log) -> int:
        """Where a group begins that has read nothing yet. Raises Refused."""
        reset = self.config(group, "share.auto.offset.reset")
        if reset == "earliest":
            return log.start
        if not reset.startswith("by_duration:"):
            return log.end
        past = milliseconds(reset.partition(":")[2]) or 0
        found = log.first_after(self.state.clock.now() // MS - past)
        if found.offset < 0:
            raise Refused(codes.OFFSET_NOT_AVAILABLE, f"no record is as young as {reset} asks")
        return found.offset

    def _end(self, topic: UUID, index: int) -> int | None:
        found = self.state.cluster.by_id.get(topic)
        return found.partitions[index].log.end if found and 0 <= index < len(found.partitions) else None

    def until(self, group: str, log: Log) -> int:
        """Up to which offset a group may read."""
        return log.stable if self.config(group, "share.isolation.level") == "read_committed" else log.end

    def aborted(self, group: str, offset: int, read: Read, log: Log) -> list[tuple[int, int]]:
        """The batches of aborted transactions, which a group that reads what is committed does not get."""
        if not read.batches or self.config(group, "share.isolation.level") != "read_committed":
            return []
        found = log.aborted(offset, read.batches)
        return [
            ends
            for header, ends in zip(read.headers, read.ranges, strict=True)
            if header.is_transactional
            and not header.is_control
            and any(each.producer == header.producer_id and each.first <= ends[0] <= each.last for each in found)
        ]

    def _topics_changed(self) -> None:
        states = self._coordinator.share_states
        there = self.state.cluster.by_id  # looked up in: it may hold far more than groups share
        gone = [topic for topic in {place.topic for place in states.known} if topic not in there]
        for topic in gone:
            states.forget_topic(topic)
            for leader in self.leaders.values():
                for place in [each for each in leader.partitions if each.topic == topic]:
                    leader.forget(place)

    # ------------------------------------------------------------ connections and time

    def opened(self, session: ShareSession, peer: Peer, node: int) -> None:
        """The session ends with the connection; a connection opens one after the other."""
        if peer not in self._opened:

            def ended() -> None:
                self.leader(node).hung_up(self._opened.pop(peer))
                self.settle()

            peer.ending.append(ended)
        self._opened[peer] = session

    def settle(self) -> None:
        """Lets those look again who wait for what has changed, and sets the next alarm."""
        for leader in self.leaders.values():
            changed, leader.changed = leader.changed, set()
            for waiting in list(self.waiting.values()) if changed else ():
                if not waiting.places.isdisjoint(changed):
                    waiting.call()
        due = min((each.due for each in self.leaders.values() if each.due is not None), default=None)
        self._alarm.set(due)

    def _tick(self) -> None:
        for leader in self.leaders.values():
            leader.tick(self.state.clock.now())
        self.settle()

    def stop(self) -> None:
        self._alarm.cancel()


class WaitingShareFetch:
    """A ShareFetch's partitions until there are MinBytes, or its time is over. then gets rows by spot: bodies without
    their acknowledgements."""

    def __init__(
        self, sharing: Sharing, request: Request, spots: list[Spot], rows: dict[Spot, Body],
        then: Callable[[dict[Spot, Body]], Body],
    ) -> None:  # fmt: skip
        self.sharing, self.request, self.spots, self.rows = sharing, request, spots, rows
        self.then, self.later, self.number = then, Later(), next(numbers)
        body = request.body
        self.group, self.member = body["GroupId"], body["MemberId"]
        self.room = min(body["MaxBytes"], MAX_BYTES)
        self.least = min(body["MinBytes"], self.room)
        self.places = {SharePartitionKey(self.group, *spot) for spot in spots}
        self.logs: set[Log] = set()
        self.called = False
        self.timer: Timer | None = None

    def start(self) -> Body | Later:
        """The answer, or the wait for one."""
        if not self.spots or not self.room or not self.request.body.get("MaxRecords", 1):
            return self.then(self.rows)
        served = self._served()
        order = self._order(served)
        if order is not None or self._hopeless() or self.request.body["MaxWaitMs"] <= 0:
            return self.then(self._read(served, order))
        clock = self.sharing.state.clock
        self.ends = clock.now() + self.request.body["MaxWaitMs"] * MS
        self.timer = clock.after(self.request.body["MaxWaitMs"] * MS, self.call)
        self.request.peer.closing.append(self.forget)
        self.sharing.waiting[self.number] = self
        self.logs = {partition.log for _, partition in served.values()}
        for log in self.logs:
            log.waiting[self.number] = lambda _: self.call()
        self.sharing.settle()
        return self.later

    def _served(self) -> Served:
        """The partitions that can be served; the others get their row."""
        found: Served = {}
        for spot in self.spots:
            try:
                found[spot] = self.sharing.serve(self.group, spot, self.request.node)
            except Refused as refused:
                self.rows[spot] = refused_row(self.sharing.state, spot, refused)
        return found

    def _hopeless(self) -> bool:
        """Whether every partition has an error that will stay. Kafka learns that one was not initialised only while it
        waits already."""
        errors = [self.rows[spot]["ErrorCode"] if spot in self.rows else codes.NONE for spot in self.spots]
        return all(error not in (codes.NONE, codes.UNKNOWN_SERVER_ERROR) for error in errors)

    def call(self) -> None:
        """Something has changed, or the time is over: the connection looks in its own turn."""
        if not self.called:
            self.called = True
            self.request.peer.soon(self.look)

    def look(self) -> None:
        self.called = False
        if self.number not in self.sharing.waiting:
            return
        served = self._served()
        order = self._order(served)
        if order is not None or self._hopeless() or self.sharing.state.clock.now() >= self.ends:
            self.forget()
            self.later.give(self.then(self._read(served, order)))

    def forget(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.sharing.waiting.pop(self.number, None)
        for log in self.logs:
            log.waiting.pop(self.number, None)

    def _order(self, served: Served) -> list[Spot] | None:
        """The partitions to be read, if there is enough in them together; None if not. Those come first of which
        somebody knew already what there is (DelayedShareFetch.combineLogReadResponse)."""
        ready = [spot for spot, (share, _) in served.items() if share.has_room()]
        new, total, enough = [], 0, False
        for spot in ready:
            share, log = served[spot][0], served[spot][1].log
            offset, until = share.next_offset(), self.sharing.until(self.group, log)
            if offset != share.looked_at:
                share.looked_at = offset
                new.append(spot)
            each = self.room // len(ready)
            if log.start <= offset <= until:
                total += min(sum(map(len, log.read(offset, each, whole_first=True, until=until))), each)
            else:
                enough = True
        if not ready or not (enough or total >= self.least):
            return None
        return [spot for spot in ready if spot not in new] + new

    def _read(self, served: Served, order: list[Spot] | None) -> dict[Spot, Body]:
        """Reads and acquires, partition by partition."""
        body, now = self.request.body, self.sharing.state.clock.now()
        if order is None:
            order = [spot for spot, (share, _) in served.items() if share.has_room()]
        most = body.get("MaxRecords", 1 << 31)
        size, odd = divmod(self.room, max(len(order), 1))
        total = 0
        for spot in order:
            share, log = served[spot][0], served[spot][1].log
            offset = share.next_offset()
            row: Body = {"PartitionIndex": spot[1], "ErrorCode": codes.NONE, "Records": b"", "AcquiredRecords": []}
            self.rows[spot] = row
            if not log.start <= offset <= log.end:
                share.log_starts_at(log.start)
                continue
            batches = log.read(offset, size + odd, not total, self.sharing.until(self.group, log))
            odd, total = 0, total + sum(map(len, batches))
            read = Read(batches, [read_header(batch, 0) for batch in batches])
            ask = Ask(self.member, most, body.get("BatchSize", 1 << 31), body.get("ShareAcquireMode", 0))
            aborted = self.sharing.aborted(self.group, offset, read, log)
            acquired = acquire(share, ask, offset, read.ranges, now, aborted)
            most -= sum(each.last - each.first + 1 for each in acquired)
            if acquired:
                row["Records"] = _cut(read, acquired)
                row["AcquiredRecords"] = [
                    {"FirstOffset": first, "LastOffset": last, "DeliveryCount": deliveries}
                    for first, last, deliveries in acquired
                ]
        self.sharing.settle()
        return self.rows


def _cut(read: Read, acquired: list[Acquired]) -> bytes:
    """The batches that hold what was acquired."""
    first, last = acquired[0].first, acquired[-1].last
    pairs = zip(read.batches, read.ranges, strict=True)
    return b"".join(batch for batch, ends in pairs if ends[1] >= first and ends[0] <= last)


def refused_row(state: BrokerCore, spot: Spot, refused: Refused) -> Body:
    """A partition that cannot be served; where it is led by another node, the row says by which."""
    row: Body = {"PartitionIndex": spot[1], "ErrorCode": refused.code, "ErrorMessage": refused.why}
    row |= {"Records": b"", "AcquiredRecords": []}
    topic = state.cluster.by_id.get(spot[0])
    if refused.code == codes.NOT_LEADER_OR_FOLLOWER and topic is not None:
        led = topic.partitions[spot[1]]
        row["CurrentLeader"] = {"LeaderId": led.leader, "LeaderEpoch": led.epoch}
    return row
