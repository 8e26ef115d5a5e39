"""Members that do as they like with a share partition, and what must hold whatever they do.

A record that was acknowledged is never delivered again; a record is in one member's hands at a time; nothing is
delivered more often than the limit; the start moves forward only, over nothing but what is decided.
"""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire.coordinator.share.acquiring import Ask, acquire
from kwire.coordinator.share.inflight import RecordState
from kwire.coordinator.share.leader import ShareLeader
from kwire.coordinator.share.partition import ACCEPT, REJECT, RELEASE, RENEW, Ack, SharePartition, ShareRules
from kwire.coordinator.share.states import SharePartitionKey, ShareStates
from kwire.coordinator.types import MS

PLACE = SharePartitionKey("g", UUID(int=1), 0)
SPOT = (PLACE.topic, 0)
LOCK_MS = 1_000
members = st.sampled_from("abc")


class Sharing(RuleBasedStateMachine):
    """held: by offset, who has it and until when, as its client sees it; deliveries: how often it was delivered."""

    @initialize(limit=st.integers(2, 5), room=st.sampled_from((5, 12, 100)))
    def begin(self, limit: int, room: int) -> None:
        self.limits = ShareRules(LOCK_MS, limit, room)
        self.states = ShareStates()
        self.states.initialise(PLACE, 1, 0)
        self.leader = ShareLeader(self.states, lambda _: self.limits)
        self.batches: list[tuple[int, int]] = []
        self.held: dict[int, tuple[str, int]] = {}
        self.deliveries: dict[int, int] = {}
        self.over: set[int] = set()
        self.log_start = self.now = self.last_start = 0

    @property
    def share(self) -> SharePartition:
        found = self.leader.partition(PLACE, 0, lambda: 0)
        assert isinstance(found, SharePartition)
        return found

    @rule(size=st.integers(1, 6))
    def write(self, size: int) -> None:
        first = self.batches[-1][1] + 1 if self.batches else 0
        self.batches.append((first, first + size - 1))

    @rule(
        member=members,
        most=st.integers(1, 20),
        pieces=st.integers(1, 9),
        mode=st.integers(0, 1),
        bytes_=st.integers(1, 4),
    )
    def fetch(self, member: str, most: int, pieces: int, mode: int, bytes_: int) -> None:
        offset = self.share.next_offset()
        if offset < self.log_start:
            self.share.log_starts_at(self.log_start)
            return
        found = [each for each in self.batches if each[1] >= offset][:bytes_]
        got = (
            acquire(self.share, Ask(member, most, pieces, mode), offset, found, self.now * MS)
            if self.share.has_room()
            else []
        )
        for first, last, deliveries in got:
            for each in range(first, last + 1):
                assert each not in self.over, "an acknowledged record was delivered again"
                assert each not in self.held, f"{each} is in the hands of {self.held[each][0]}"
                self.held[each] = (member, self.now + LOCK_MS)
                self.deliveries[each] = self.deliveries.get(each, 0) + 1
                assert self.deliveries[each] == deliveries <= self.limits.delivery_count_limit
        if mode == 1:
            assert sum(last - first + 1 for first, last, _ in got) <= most

    @precondition(lambda self: self.held)
    @rule(data=st.data(), kind=st.sampled_from((ACCEPT, ACCEPT, RELEASE, REJECT, RENEW)), right=st.booleans())
    def acknowledge(self, data: st.DataObject, kind: int, right: bool) -> None:
        first = data.draw(st.sampled_from(sorted(self.held)))
        member = self.held[first][0] if right else data.draw(members)
        last = first
        while last + 1 in self.held and self.held[last + 1][0] == member and data.draw(st.booleans()):
            last += 1
        mine = all(self.held[each][0] == member for each in range(first, last + 1))
        (check,) = self.leader.acknowledge("g", member, {SPOT: [Ack(first, last, [kind])]}, self.now * MS).values()
        self.leader.finish()
        assert (check.error == 0) == (mine or last < self.share.start)
        if check.error or not mine:
            return
        for each in range(first, last + 1):
            if kind == RENEW:
                self.held[each] = (member, self.now + LOCK_MS)
                continue
            del self.held[each]
            if kind in (ACCEPT, REJECT):
                self.over.add(each)

    @rule(ms=st.sampled_from((1, 300, 999, 1_000)))
    def wait(self, ms: int) -> None:
        self.now += ms
        self.leader.tick(self.now * MS)
        self.held = {each: held for each, held in self.held.items() if held[1] > self.now}

    @rule(member=members)
    def close(self, member: str) -> None:
        self.share.release(member)
        self.held = {each: held for each, held in self.held.items() if held[0] != member}

    @rule()
    def move(self) -> None:
        """The last connection goes; later somebody reads again."""
        for member in "abc":
            self.close(member)
        self.leader.forget(PLACE)
        self.last_start = self.states.known[PLACE].start  # what the log has lost shows at the next fetch

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """The log's beginning goes; what was in flight there is nobody's concern any more."""
        batch = data.draw(st.sampled_from(self.batches))
        self.log_start = max(self.log_start, batch[0])
        self.batches = [each for each in self.batches if each[1] >= self.log_start] or self.batches[-1:]
        self.share.log_starts_at(self.log_start)
        self.held = {each: held for each, held in self.held.items() if each >= self.log_start}

    @invariant()
    def the_window_is_of_one_piece(self) -> None:
        if not hasattr(self, "leader"):
            return
        share = self.share
        assert share.start >= self.last_start
        self.last_start = share.start
        given = set(self.deliveries)
        for each in given:
            if self.log_start <= each < share.start:
                assert each in self.over or self.deliveries[each] >= self.limits.delivery_count_limit
        pieces = [piece for batch in share.window for piece in batch.pieces()]
        assert all(one[1] < two[0] for one, two in pairwise(pieces))
        for first, last, state in pieces:
            assert state.deliveries <= self.limits.delivery_count_limit
            if state.state is RecordState.ACQUIRED and first >= share.start:
                assert all(self.held[each][0] == state.member for each in range(first, last + 1))
        final = sum(max(last - max(first, share.start) + 1, 0) for first, last, state in pieces if state.state.final)
        assert share.complete == final


Sharing.TestCase.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSharing = Sharing.TestCase
