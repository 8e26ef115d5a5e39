"""Sequences that dice make: two producers, at times of one transactional id, doing whatever they like."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transaction_lab import Producer, TxnLab

WALKS, STEPS = 8, 45


def _walk(seed: int) -> Callable[[TxnLab], Awaitable[None]]:
    async def walk(lab: TxnLab) -> None:
        """Dice choose what two producers do."""
        dice = Random(seed)
        shared = seed % 2 == 0
        both = [lab.producer("a"), lab.producer("b", "" if shared else "-2")]
        for one in both:
            await lab.init(one)
        for _ in range(STEPS):
            await _step(lab, dice, dice.choice(both), seed)
        for partition in (0, 1):
            await lab.fetch(0, partition)
        await lab.look(0, 1)
        await lab.fetch_offsets()

    walk.__name__ = f"walk_{seed:02}"
    return walk


async def _step(lab: TxnLab, dice: Random, one: Producer, seed: int) -> None:
    new = lab.new and seed % 4 < 2
    produce, commit, end = (12, 5, 5) if new else (11, 3, 4)
    partition = dice.randrange(2)
    wrong = {} if dice.random() < 0.85 else {"epoch": max(one.epoch + dice.choice((-1, 1)), 0)}
    match dice.choice(["init", "add", "produce", "produce", "produce", "commit", "abort", "offsets", "look", "again"]):
        case "init":
            await lab.init(one, None, again=dice.random() < 0.5)
        case "add":
            await lab.add(one, partition)
        case "produce":
            await lab.produce(one, partition, version=produce, count=dice.randint(1, 3), **wrong)
        case "commit":
            await lab.end(one, version=end)
        case "abort":
            await lab.end(one, version=end, commit=False)
        case "offsets":
            if not new:
                await lab.add_offsets(one)
            await lab.commit_offsets(one, dice.randrange(100), commit)
        case "again":
            await lab.produce(one, partition, version=produce, sequence=dice.randrange(3))
        case _:
            await lab.fetch(0, partition)
            await lab.look(partition)


SCRIPTS = {f"walk-{seed:02}": _walk(seed) for seed in range(WALKS)}
