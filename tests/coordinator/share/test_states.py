"""What is stored of share partitions."""

from __future__ import annotations

from uuid import UUID

from kwire.coordinator.share.inflight import RecordState
from kwire.coordinator.share.states import SharePartitionKey, ShareStates, StateBatch, combined

AVAILABLE, DONE = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED
T, U = UUID(int=1), UUID(int=2)


def test_new_batches_lie_over_old_ones() -> None:
    old = [StateBatch(0, 9, AVAILABLE, 1)]
    new = [StateBatch(3, 4, DONE, 1), StateBatch(8, 12, AVAILABLE, 2)]
    assert combined(old, new, 0) == [
        (0, 2, AVAILABLE, 1), (3, 4, DONE, 1), (5, 7, AVAILABLE, 1), (8, 12, AVAILABLE, 2),
    ]  # fmt: skip


def test_neighbours_alike_are_joined_and_the_past_is_cut_off() -> None:
    batches = [StateBatch(offset, offset, DONE, 1) for offset in range(5)]
    assert combined([], batches, 2) == [(2, 4, DONE, 1)]
    assert combined([StateBatch(0, 1, DONE, 1)], [StateBatch(4, 4, DONE, 1)], 2) == [(4, 4, DONE, 1)]


def test_what_is_forgotten() -> None:
    states = ShareStates()
    for place in (SharePartitionKey("g", T, 0), SharePartitionKey("g", U, 0), SharePartitionKey("h", T, 0)):
        states.initialise(place, 1, 0)
    assert states.forget("g", T) == [SharePartitionKey("g", T, 0)]
    refused = states.write(SharePartitionKey("g", T, 0), 1, 0, 0, [])
    assert refused is not None
    assert refused.name == "initialised"
    states.forget_topic(T)
    assert list(states.known) == [SharePartitionKey("g", U, 0)]
    assert states.read(SharePartitionKey("h", T, 0), 3) is None
