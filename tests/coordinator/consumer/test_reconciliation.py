"""A member's way to its target, step by step."""

from __future__ import annotations

from uuid import UUID

import pytest

from kwire.coordinator.consumer.reconciliation import Hold, MemberState, MustRejoin, Partition, Target, reconcile

A, B = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
UNRELEASED, UNKNOWN = MemberState.UNRELEASED_PARTITIONS, MemberState.UNKNOWN
OLD, NEW = (4, 1), (4, 3)


def parts(topic: UUID, *numbers: int) -> list[Partition]:
    return [(topic, number) for number in numbers]


def at(epoch: int, *numbers: int, topic: UUID = A) -> dict[Partition, int]:
    return dict.fromkeys(parts(topic, *numbers), epoch)


CASES = {
    "a newcomer gets what is free": (
        Hold(),
        Target(2, parts(A, 0, 1), {A}),
        [],
        set(),
        Hold(STABLE, 2, 0, at(2, 0, 1)),
    ),
    "a newcomer waits for all of it": (
        Hold(),
        Target(2, parts(A, 0), {A}),
        [],
        {(A, 0)},
        Hold(UNRELEASED, 2, 0),
    ),
    "a newcomer gets some and waits for the rest": (
        Hold(),
        Target(2, parts(A, 0, 1), {A}),
        [],
        {(A, 1)},
        Hold(UNRELEASED, 2, 0, at(2, 0)),
    ),
    "the rest comes when it is free": (
        Hold(UNRELEASED, 2, 2, at(2, 0)),
        Target(2, parts(A, 0, 1), {A}),
        None,
        set(),
        Hold(STABLE, 2, 2, at(2, 0, 1)),
    ),
    "what is too much must go first, the epoch stays": (
        Hold(STABLE, 2, 0, at(2, 0, 1, 2)),
        Target(3, parts(A, 0, 1), {A}),
        None,
        set(),
        Hold(UNREVOKED, 2, 2, at(2, 0, 1), at(2, 2)),
    ),
    "a heartbeat that says nothing of partitions changes nothing": (
        Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1)),
        Target(3, parts(A, 0), {A}),
        None,
        set(),
        Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1)),
    ),
    "so does one that still owns them": (
        Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1)),
        Target(3, parts(A, 0), {A}),
        parts(A, 0, 1),
        set(),
        Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1)),
    ),
    "given up, it goes to the target's epoch": (
        Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1)),
        Target(5, parts(A, 0), {A}),
        parts(A, 0),
        set(),
        Hold(STABLE, 5, 2, at(2, 0)),
    ),
    "gone already when the target comes: no step between": (
        Hold(STABLE, 2, 0, at(2, 0, 1)),
        Target(3, parts(A, 0), {A}),
        parts(A, 0),
        set(),
        Hold(STABLE, 3, 2, at(2, 0)),
    ),
    "given up, and yet more must go": (
        Hold(UNREVOKED, 2, 2, at(2, 0, 1), at(2, 2)),
        Target(4, parts(A, 0), {A}),
        parts(A, 0, 1),
        set(),
        Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1)),
    ),
    "a stable member at the target stays": (
        Hold(STABLE, 3, 2, at(2, 0)),
        Target(3, parts(A, 0), {A}),
        None,
        set(),
        Hold(STABLE, 3, 2, at(2, 0)),
    ),
    "what is no longer subscribed is not given": (
        Hold(STABLE, 2, 0),
        Target(3, [*parts(A, 0), *parts(B, 0)], {B}),
        [],
        set(),
        Hold(STABLE, 3, 2, at(3, 0, topic=B)),
    ),
    "an unknown state starts anew with nothing": (
        Hold(UNKNOWN, 2, 1),
        Target(3, parts(A, 0), {A}),
        [],
        set(),
        Hold(STABLE, 3, 2, at(3, 0)),
    ),
}


@pytest.mark.parametrize(("hold", "target", "owned", "taken", "after"), CASES.values(), ids=CASES)
def test_the_next_hold(
    hold: Hold, target: Target, owned: list[Partition] | None, taken: set[Partition], after: Hold
) -> None:
    assert reconcile(hold, target, owned, lambda each: each not in taken) == after


@pytest.mark.parametrize(
    ("hold", "owned", "after"),
    [
        (Hold(STABLE, 2, 0, at(2, 0)), None, Hold(UNREVOKED, 2, 2, {}, at(2, 0))),
        (Hold(STABLE, 2, 0, at(2, 0)), [], Hold(STABLE, 2, 2)),
        (Hold(STABLE, 2, 0, at(2, 0, topic=B)), None, Hold(STABLE, 2, 0, at(2, 0, topic=B))),
        (
            Hold(UNREVOKED, 2, 2, at(2, 0), at(2, 1, topic=B)),
            None,
            Hold(UNREVOKED, 2, 2, {}, at(2, 1, topic=B) | at(2, 0)),
        ),
    ],
)
def test_a_lost_subscription_takes_its_topics_at_once(hold: Hold, owned: list[Partition] | None, after: Hold) -> None:
    target = Target(2, parts(A, 0), {B})
    assert reconcile(hold, target, owned, lambda _: True, subscription_changed=True) == after
    assert reconcile(hold, target, None, lambda _: True, subscription_changed=True, era=OLD) == hold


def test_before_4_2_a_member_that_gave_up_went_to_its_next_epoch_first() -> None:
    hold = Hold(UNREVOKED, 2, 2, at(2, 0, 1), at(2, 2))
    target = Target(5, parts(A, 0), {A})
    assert reconcile(hold, target, parts(A, 0, 1), lambda _: True, era=OLD).epoch == 3
    assert reconcile(hold, target, parts(A, 0, 1), lambda _: True, era=NEW).epoch == 2


@pytest.mark.parametrize("owned", [None, parts(A, 0)])
def test_an_unknown_state_with_partitions_must_rejoin(owned: list[Partition] | None) -> None:
    with pytest.raises(MustRejoin):
        reconcile(Hold(UNKNOWN, 2, 1), Target(3, [], set()), owned, lambda _: True)
