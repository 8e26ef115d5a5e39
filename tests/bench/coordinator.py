"""100,000 members that beat every 3 s: what the coordinator does in a second, and which timers serve it.

    python tests/bench/coordinator.py [--members N] [--rounds N]

First the timers alone: Kafka's hierarchical timing wheel (kafka.utils.timer.TimingWheel, as SystemTimer sets it up) and
the heap that is corrected when it is looked at (kwire/coordinator/timers.py), with the same deadlines moved in the same
order. Then the whole coordinator, request body to answer. Every figure is printed with what the load needs.
"""

# mypy: disable-error-code="list-item"

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from time import process_time
from typing import Protocol

from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.types import MS, ClientIdentity, GroupSettings

INTERVAL_MS, SESSION_MS = 3_000, 45_000
GROUP_SIZE = 100
TICK_MS = 100  # how often the server looks for what is due


class AnyTimers(Protocol):
    def set(self, key: Key, deadline: int) -> None: ...
    def pop(self, now: int) -> tuple[Key, int] | None: ...


class Wheel:
    """Kafka's: 20 slots of 1 ms; a wheel above it turns once a slot, made when a deadline lies beyond."""

    SLOTS = 20

    def __init__(self, tick: int = MS, start: int = 0) -> None:
        self.tick, self.span = tick, tick * self.SLOTS
        self.now = start - start % tick
        self.slots: list[dict[Key, int]] = [{} for _ in range(self.SLOTS)]
        self.above: Wheel | None = None
        self.where: dict[Key, dict[Key, int]] = {}
        self.ready: list[tuple[Key, int]] = []

    def set(self, key: Key, deadline: int) -> None:
        old = self.where.pop(key, None)
        if old is not None:
            del old[key]
        self._put(key, deadline, self.where)

    def _put(self, key: Key, deadline: int, where: dict[Key, dict[Key, int]]) -> None:
        wheel = self
        while deadline >= wheel.now + wheel.span:
            if wheel.above is None:
                wheel.above = Wheel(wheel.span, wheel.now)
            wheel = wheel.above
        slot = wheel.slots[deadline // wheel.tick % self.SLOTS]
        slot[key] = deadline
        where[key] = slot

    def pop(self, now: int) -> tuple[Key, int] | None:
        while not self.ready and self.now + self.tick <= now:
            self._advance()
        return self.ready.pop() if self.ready else None

    def _advance(self) -> None:
        self.now += self.tick
        wheel: Wheel | None = self
        while wheel is not None and wheel.above is not None and self.now % wheel.span == 0:
            above = wheel.above
            above.now = self.now
            slot = above.slots[self.now // above.tick % self.SLOTS]
            moved = list(slot.items())
            slot.clear()
            for key, deadline in moved:
                self._put(key, deadline, self.where)
            wheel = above
        slot = self.slots[self.now // self.tick % self.SLOTS]
        for key, deadline in list(slot.items()):
            del self.where[key]
            self.ready.append((key, deadline))
        slot.clear()


def beats(members: int, rounds: int) -> list[tuple[int, int]]:
    """(time ns, member): every member beats each interval at its own moment, a few ms early or late."""
    random = Random(7)
    phase = [random.randrange(INTERVAL_MS * MS) for _ in range(members)]
    jitter = 20 * MS
    return sorted(
        (turn * INTERVAL_MS * MS + phase[member] + random.randrange(jitter), member)
        for turn in range(rounds)
        for member in range(members)
    )


def timers_alone(timers: AnyTimers, schedule: list[tuple[int, int]], keys: list[Key]) -> float:
    """Operations a second: every beat moves a deadline; every 100 ms somebody looks."""
    began, look = process_time(), 0
    for time, member in schedule:
        if time >= look:
            while timers.pop(time) is not None:
                raise AssertionError("nobody was late")
            look = time + TICK_MS * MS
        timers.set(keys[member], time + SESSION_MS * MS)
    return len(schedule) / (process_time() - began)


def whole(members: int, schedule: list[tuple[int, int]]) -> tuple[float, int]:
    """Heartbeats a second through the coordinator, and how many were answered with anything but NONE."""
    coordinator = Coordinator(GroupSettings(group_initial_rebalance_delay_ms=0))
    bodies = []
    for first in range(0, members, GROUP_SIZE):
        bodies += populate(coordinator, f"group-{first // GROUP_SIZE}", min(GROUP_SIZE, members - first))
    caller = ClientIdentity("bench")
    refused, look = 0, 0
    ask, answers = coordinator.ask, coordinator.answers
    began = process_time()
    for time, member in schedule:
        ask("Heartbeat", 4, bodies[member], caller, time)
        if time >= look:
            refused += sum(answer.body["ErrorCode"] != 0 for answer in answers())
            look = time + TICK_MS * MS
    took = process_time() - began
    refused += sum(answer.body["ErrorCode"] != 0 for answer in answers())
    return len(schedule) / took, refused


def populate(coordinator: Coordinator, group: str, size: int) -> list[dict[str, object]]:
    """A stable group; the bodies of its members' heartbeats."""
    join = {
        "GroupId": group,
        "SessionTimeoutMs": SESSION_MS,
        "RebalanceTimeoutMs": 300_000,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": bytes(14)}],
    }
    for _ in range(size):
        coordinator.ask("JoinGroup", 9, {**join, "MemberId": ""}, ClientIdentity("bench"), 0)
    ids = [answer.body["MemberId"] for answer in coordinator.answers()]
    for member in ids:
        coordinator.ask("JoinGroup", 9, {**join, "MemberId": member}, ClientIdentity("bench"), 0)
    joined = coordinator.answers()
    if len(joined) < size:  # the first came alone, and rejoins with the others
        coordinator.ask("JoinGroup", 9, {**join, "MemberId": ids[0]}, ClientIdentity("bench"), 0)
        joined = coordinator.answers()
    stay = {"GroupId": group, "GenerationId": coordinator.groups[group].generation}
    for member in ids:
        sync = {**stay, "MemberId": member, "ProtocolType": "consumer", "ProtocolName": "range", "Assignments": []}
        coordinator.ask("SyncGroup", 5, sync, ClientIdentity("bench"), 0)
    coordinator.answers()
    coordinator.events()
    return [{**stay, "MemberId": member, "GroupInstanceId": None} for member in ids]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    needed = args.members / (INTERVAL_MS / 1000)
    schedule = beats(args.members, args.rounds)
    keys = [Key("heartbeat", f"group-{member // GROUP_SIZE}", f"member-{member}") for member in range(args.members)]
    print(f"{args.members:,} members, a heartbeat each {INTERVAL_MS:,} ms: {needed:,.0f} heartbeats/s needed")
    kinds: list[tuple[str, Callable[[], AnyTimers]]] = [("wheel", Wheel), ("heap", Timers)]
    rates = {}
    for name, make in kinds:
        rates[name] = timers_alone(make(), schedule, keys)
        print(f"  timers alone, {name:5}  {rates[name]:>11,.0f} moves/s       {rates[name] / needed:6.1f} times")
    print(f"  heap against wheel   {rates['heap'] / rates['wheel']:.2f}")
    rate, refused = whole(args.members, schedule)
    print(f"  the whole coordinator {rate:>11,.0f} heartbeats/s  {rate / needed:6.1f} times; {refused} were refused")


if __name__ == "__main__":
    main()
