"""Whatever a client writes into a request, the coordinator answers it or keeps it waiting, and every answer encodes."""

from random import Random
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.codec.library import builtin_library
from kwire.codec.plan import Slot, StructPlan
from kwire.coordinator.coordinator import APIS, Coordinator
from kwire.coordinator.types import MS, ClientIdentity, GroupSettings, KnownTopic

POOLS: dict[str, tuple[Any, ...]] = {
    "string": ("", "g", "h", "m-1", "m-2", "range", "consumer", "orders", "i", "\x00\udcff", "(["),
    "bytes": (b"", bytes(2), bytes.fromhex("0000 00000001 0006 6f7264657273 ffffffff"), b"\xff" * 9),
    "uuid": (UUID(int=0), UUID(int=1), UUID(int=2)),
    "bool": (False, True),
    "int8": (-1, 0, 1),
    "int16": (-1, 0, 1),
    "uint16": (0, 1, 9092, 2**16 - 1),
    "int32": (-(2**31), -2, -1, 0, 1, 2, 6_000, 10_000, 2**31 - 1),
    "int64": (-(2**63), -1, 0, 1, 2**63 - 1),
}
TOPICS = {"orders": KnownTopic("orders", UUID(int=1), 4)}


def anything(random: Random, struct: StructPlan) -> dict[str, Any]:
    return {slot.name: value(random, slot) for slot in struct.slots}


def value(random: Random, slot: Slot) -> Any:
    if slot.nullable and random.random() < 0.2:
        return None
    if slot.array:
        return [one(random, slot) for _ in range(random.randrange(3))]
    return one(random, slot)


def one(random: Random, slot: Slot) -> Any:
    return anything(random, slot.struct) if slot.struct else random.choice(POOLS[slot.type])


@pytest.mark.parametrize("era", [(4, 3), (3, 9), (2, 3), (0, 10), (0, 9)])
@pytest.mark.parametrize("seed", range(4))
def test_any_body_is_answered(seed: int, era: tuple[int, int]) -> None:
    random = Random(seed)
    numbers = iter(range(1, 1_000_000))
    settings = GroupSettings(era=era, group_initial_rebalance_delay_ms=0, group_max_size=3)
    coordinator = Coordinator(settings, lambda _: f"m-{next(numbers) % 4}", lambda: TOPICS)
    plans = [
        (api, version, builtin_library().plan(api + "Request", version).root)
        for api in APIS
        for version in builtin_library().message(api + "Request").versions.each()
    ]
    now, asked, answered = 0, 0, 0
    for _ in range(1_500):
        api, version, root = random.choice(plans)
        now += random.choice((0, 1, 400, 7_000))
        coordinator.ask(api, version, anything(random, root), ClientIdentity("c"), now * MS)
        asked += 1
        for answer in coordinator.answers():
            kwire.encode(answer.api + "Response", answer.version, answer.body)
            answered += 1
    assert asked - answered <= 100
    assert len(coordinator.groups) <= len(POOLS["string"])
