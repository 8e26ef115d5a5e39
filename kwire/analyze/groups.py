"""Groups in captures: puts every exchange of the group APIs, in the order in which the broker had them, into histories
by group.

add(exchange) takes a capture's exchanges as they are read, in the order of their requests; answers are inserted where
they belong. After finish(), verdicts.py makes findings of what was collected.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.analyze.activity import Activity
from kwire.analyze.calls import (
    CLASSIC,
    COMMITS,
    CONSUMER_HEARTBEAT,
    DELETE_GROUPS,
    EPOCH_HEARTBEATS,
    FIND_COORDINATOR,
    JOIN,
    SHARE_HEARTBEAT,
    STREAMS_HEARTBEAT,
    Call,
    calls_of,
    is_unread,
)  # fmt: skip
from kwire.analyze.causes import fate
from kwire.analyze.classic import ClassicHistory
from kwire.analyze.epochs import EpochHistory
from kwire.analyze.history import COMMITTED, History, HistoryBudget, LastCommit, Problem
from kwire.analyze.members import TrackedMember
from kwire.analyze.offers import offer_of
from kwire.codec.quality import Quality
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS

if TYPE_CHECKING:
    from kwire.analyze.epoch_replay import EpochReplay
    from kwire.analyze.replay import Replay
    from kwire.session.exchange import Exchange

MOST_GROUPS = 20_000
NEWEST = (4, 3)
ERAS = {  # by the highest JoinGroup version, of brokers that know JoinGroup v0 and v1, as up to 3.9
    0: (0, 9), 1: (0, 10), 2: (0, 11), 3: (2, 0), 4: (2, 2), 5: (2, 3), 6: (2, 4), 7: (2, 7), 8: (3, 2), 9: (3, 2),
}  # fmt: skip
OUT = {  # errors that say that a member is not in the group, or not as it thinks
    codes.ILLEGAL_GENERATION,
    codes.UNKNOWN_MEMBER_ID,
    codes.FENCED_INSTANCE_ID,
    codes.FENCED_MEMBER_EPOCH,
    codes.STALE_MEMBER_EPOCH,
}
# errors that say that the coordinator is elsewhere or not ready
COORDINATOR = {codes.COORDINATOR_LOAD_IN_PROGRESS, codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR}
BENIGN = {0, codes.MEMBER_ID_REQUIRED}


class GroupHistories:
    """histories: by name. wanted(name) says which groups are looked at; unkept counts exchanges of groups beyond
    MOST_GROUPS. replay: whether classic groups are held against the coordinator's model."""

    def __init__(self, wanted: Callable[[str], bool] | None = None, replay: bool = True) -> None:
        self.histories: dict[str, History] = {}
        self.activity = Activity()
        self.unkept = 0
        self._wanted = wanted
        self._waiting: list[tuple[int, int, Call]] = []
        self._count = 0
        self._classic: dict[str, ClassicHistory] = {}
        self._epochs: dict[str, EpochHistory] = {}
        self._replays: dict[str, Replay | EpochReplay] = {}
        self._unread = 0  # requests that could not be read, each of which may have changed any group
        self._known_unread: dict[str, int] = {}  # how many there were when the group's replay was last asked
        self._replay = replay
        self._budget = HistoryBudget()
        self._eras: dict[str, tuple[int, int]] = {}  # by broker

    def add(self, exchange: Exchange) -> None:
        """An exchange, of any API."""
        self.activity.add(exchange)
        self.follow(exchange)

    def follow(self, exchange: Exchange) -> None:
        """Takes an exchange that may be about a group; other exchanges only count as activity."""
        api = exchange.first.api
        if api is not None and api.key == API_VERSIONS:
            self._learn_era(exchange)
        if exchange.first.quality in (Quality.TRUNCATED, Quality.GAP, Quality.MALFORMED) and is_unread(exchange):
            self._unread += 1
        for call in calls_of(exchange):
            if call.group and (self._wanted is None or self._wanted(call.group)):
                self.take(call)

    def take(self, call: Call) -> None:
        """Takes a request about a group, with its answer."""
        self._until(call.asked_at)
        history = self._history(call)
        if history is None:
            self.unkept += 1
            return
        self._asked(history, call)
        if call.answered_at is not None:
            self._count += 1
            heapq.heappush(self._waiting, (call.answered_at, self._count, call))
        elif call.ending is not None:
            self._unanswered(history, call)

    def _learn_era(self, exchange: Exchange) -> None:
        """Learns a broker's release, and so its rules, from the versions that it offers."""
        broker = exchange.connection.ends[1]
        if broker in self._eras or len(self._eras) >= 1000 or exchange.response is None:
            return
        offer = offer_of(exchange.response)
        if offer is not None and JOIN in offer.ranges:
            low, high = offer.ranges[JOIN]
            self._eras[broker] = ERAS.get(high, NEWEST) if low < 2 else NEWEST

    def finish(self) -> None:
        """Ends the histories."""
        self._until(None)
        end = self.activity.last_time
        for name in self.histories:
            if name in self._classic:
                self._classic[name].finish(end)
            if name in self._epochs:
                self._epochs[name].finish()

    def _until(self, time: int | None) -> None:
        """The answers up to a time, ns."""
        waiting = self._waiting
        while waiting and (time is None or waiting[0][0] <= time):
            call = heapq.heappop(waiting)[2]
            self._answered(self.histories[call.group], call)

    def _history(self, call: Call) -> History | None:
        known = self.histories.get(call.group)
        if known is None:
            if len(self.histories) >= MOST_GROUPS:
                return None
            known = self.histories[call.group] = History(call.group, call.asked_at, self._budget)
        return known

    def _asked(self, history: History, call: Call) -> None:
        history.calls += 1
        history.last = max(history.last, call.answered_at or call.asked_at)
        if call.key != FIND_COORDINATOR:
            history.coordinators[call.broker] += 1
        if call.key in EPOCH_HEARTBEATS:
            history.kinds[EPOCH_HEARTBEATS[call.key]] += 1
            if self._replay and call.key == CONSUMER_HEARTBEAT:
                self._replayed(history, call).asked(call)
            self._epoch(history).asked(call)
        elif call.key in CLASSIC:
            history.kinds["classic"] += 1
            tracker = self._classic.get(history.name)
            if tracker is None:
                tracker = self._classic[history.name] = ClassicHistory(history)
            if self._replay:
                self._replayed(history, call).asked(call)
            tracker.asked(call)
        elif call.key in COMMITS and (replay := self._replay_of(history)) is not None:
            replay.asked(call)

    def _epoch(self, history: History) -> EpochHistory:
        tracker = self._epochs.get(history.name)
        if tracker is None:
            tracker = self._epochs[history.name] = EpochHistory(history)
        return tracker

    def _replayed(self, history: History, call: Call) -> Replay | EpochReplay:
        replay = self._replay_of(history)
        if replay is None:
            from kwire.analyze.epoch_replay import EpochReplay  # with the coordinator's whole model
            from kwire.analyze.replay import Replay

            era = self._eras.get(call.broker, NEWEST)
            replay = EpochReplay(history, era) if call.key == CONSUMER_HEARTBEAT else Replay(history, era)
            self._replays[history.name], self._known_unread[history.name] = replay, self._unread
        return replay

    def _replay_of(self, history: History) -> Replay | EpochReplay | None:
        """The group's, which no longer knows the group when something could not be read since it was last asked."""
        replay = self._replays.get(history.name)
        if replay is not None and self._known_unread[history.name] < self._unread:
            replay.give_up()
            self._known_unread[history.name] = self._unread
        return replay

    def _answered(self, history: History, call: Call) -> None:
        history.answers += 1
        if call.error and call.error not in BENIGN:
            history.errors[call.error] += 1
            self._wrong(history, call)
        elif call.fine:
            self._solve(history, call)
        if (replay := self._replay_of(history)) is not None:
            replay.answered(call)
        if history.name in self._classic:
            self._classic[history.name].answered(call)
        if history.name in self._epochs:
            self._epochs[history.name].answered(call)
        if call.key in COMMITS and call.member in history.members:
            history.members[call.member].polled = call.asked_at
        if call.key in COMMITS:
            self._committed(history, call)
        elif call.key == DELETE_GROUPS and call.fine:
            history.deleted = call.proof

    def _label(self, history: History, call: Call) -> tuple[str, TrackedMember | None]:
        member = history.members.get(call.member) if call.member else None
        if member is not None:
            return member.label, member
        seat = history.seats.on(call.client_id, call.instance, call.connection)
        if seat is None:
            return call.instance or call.client_id or "(no client id)", None
        last = seat.ids[-1] if call.key not in (JOIN, FIND_COORDINATOR) and not call.member and seat.ids else ""
        return seat.label, history.members.get(last)  # a client that has given up its id asks with an empty one

    def _wrong(self, history: History, call: Call) -> None:
        """Keeps an error with what was known when it came."""
        label, member = self._label(history, call)
        current = history.current
        problem = Problem(call.slim(), label, member, None, current)
        if call.key in COMMITS:
            refused = {topic: parts for topic, parts in committed_in(call, refused=True).items() if parts}
            problem.unstored = sum(map(len, refused.values())), tuple(refused)[:3]
        if member is not None:
            member.seat.errors.append((problem.time, call.error))
            del member.seat.errors[:-200]
            problem.contact = member.contact
            if call.error in OUT:
                out = current if current is not None and member.id not in current.members else None
                problem.gone = fate(member, call.asked_at, out)
                if problem.gone is not None and problem.gone.kind in ("evicted", "expelled"):
                    history.part(member, problem.gone)
        if call.instance:
            problem.taker = history.instances.get(call.instance)
        history.keep(problem)

    def _unanswered(self, history: History, call: Call) -> None:
        label, member = self._label(history, call)
        if call.key == JOIN and call.generation is None:
            return  # a rebalance that is not over; the tracker knows of it
        history.keep(Problem(call.slim(), label, member, None, history.current))

    def _solve(self, history: History, call: Call) -> None:
        """Ends the earlier failures of a client whose request succeeded."""
        if not history.open:
            return
        label, _ = self._label(history, call)
        for name in {label, call.instance or label}:  # an instance id, before it had a member
            problems = history.open.get(name)
            if not problems:
                continue
            for problem in problems:
                if _solves(call, problem.call):
                    problem.solved, problem.solved_at = call.proof, call.answered_at
            history.open[name] = [problem for problem in problems if problem.solved is None]

    def _committed(self, history: History, call: Call) -> None:
        """Keeps the offsets that a commit stored, in full or in part."""
        stored = committed_in(call, refused=False)
        if not any(stored.values()):
            return
        label, _ = self._label(history, call)
        history.commits[label] += 1
        if not history.kinds:
            history.kinds["offsets only"] += 1
        for name, parts in stored.items():
            for part, offset in parts:
                key = name, part
                if key in history.committed or len(history.committed) < COMMITTED:
                    history.committed[key] = LastCommit(offset, call.asked_at, label, call.asked)


def committed_in(call: Call, refused: bool) -> dict[str, list[tuple[int, int]]]:
    """The partitions of a commit by topic, with their offsets: those that were refused, or those that were stored. An
    error belongs to the partition that carries it; of an answer that cannot be read, all were refused or none."""

    def name_of(topic: dict[str, Any]) -> str:
        return str(topic["Name"]) if "Name" in topic else call.topic(topic["TopicId"])

    codes = {
        (name_of(topic), part["PartitionIndex"]): part["ErrorCode"]
        for topic in (call.answer or {}).get("Topics") or () for part in topic["Partitions"]
    }  # fmt: skip
    out: dict[str, list[tuple[int, int]]] = {}
    for topic in call.body["Topics"]:
        name = name_of(topic)
        found = out.setdefault(name, [])
        for part in topic["Partitions"]:
            failed = call.answered_at is None or codes.get((name, part["PartitionIndex"]), call.error) != 0
            if failed == refused:
                found.append((part["PartitionIndex"], part["CommittedOffset"]))
    return out


def _solves(call: Call, wrong: Call) -> bool:
    """Whether a successful request achieved what a failed one wanted."""
    if wrong.key in COMMITS:
        return call.key in COMMITS
    if wrong.error == codes.UNRELEASED_INSTANCE_ID:  # not a heartbeat of the one that holds the instance id
        return call.member == wrong.member or call.generation == 0
    if wrong.error in COORDINATOR or wrong.key not in (*CLASSIC, *EPOCH_HEARTBEATS):
        return call.key == wrong.key
    return call.key in (JOIN, CONSUMER_HEARTBEAT, SHARE_HEARTBEAT, STREAMS_HEARTBEAT)
