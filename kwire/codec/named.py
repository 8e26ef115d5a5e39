"""What a message names: the values of all its fields of one entity, as "groupId" or "topicName", in all depths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.codec.plan import StructPlan


def named(plan: StructPlan, body: dict[str, Any], entity: str) -> Iterator[str]:
    """Texts only, in the order of the fields."""
    for slot in plan.slots:
        value: Any = body.get(slot.name)
        if value is None:
            continue
        if slot.field.entity == entity and slot.type == "string":
            yield from value if slot.array else [value]
        elif slot.struct is not None:
            for item in value if slot.array else [value]:
                yield from named(slot.struct, item, entity)
