"""Bodies made to fit: without the fields that a version lacks, and whole error answers that mirror their request.

Handlers fill in everything that some version has; fitted() takes away the rest. refusal() writes one error code into
every error field of an answer: its arrays are those of the request, matched by what their fields name, as each of
Kafka's AbstractRequest.getErrorResponse does by hand.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import Body
from kwire.codec.plan import Slot, StructPlan

PARTITION = frozenset({"Index", "Partition", "PartitionIndex", "PartitionIndexes", "Partitions", "PartitionId"})
PAIRED = {"Deletions": "Upsertions"}
BY_POSITION = ("Creations", "Filters", "Entries")  # arrays whose elements are answered one by one, without a name
ABSENT: Body = {  # what stands beside an error where the schema's own default says something else
    "BaseOffset": -1, "HighWatermark": -1, "LowWatermark": -1, "CommittedOffset": -1, "LeaderEpoch": -1, "NodeId": -1,
    "Port": -1, "Records": b"", "ProtocolName": None, "ProtocolType": None,
}  # fmt: skip


def fitted(plan: StructPlan, body: Body) -> Body:
    """The body with the fields that the plan has, no others."""
    out: Body = {}
    for slot in plan.slots:
        if slot.name in body:
            out[slot.name] = _value(slot, body[slot.name])
    for slot in plan.tagged.values():
        if slot.name in body:
            out[slot.name] = _value(slot, body[slot.name])
    return out


def _value(slot: Slot, value: Any) -> Any:
    if slot.struct is None or value is None:
        return value
    if slot.array:
        inner = slot.struct
        return [fitted(inner, item) for item in value]
    return fitted(slot.struct, value)


def refusal(answer: StructPlan, asked: StructPlan, request: Body, code: int, once: bool = False) -> Body:
    """An answer with code in every error field. answer, asked: the plans of the response and of the request. once: what
    stands below an element with an error field is left out, as Kafka does where it looks at rights."""
    out: Body = {}
    said = once and any(slot.field.error for slot in answer.slots)
    for slot in answer.slots:
        if slot.field.error:
            out[slot.name] = code
        elif slot.struct is not None and slot.array:
            out[slot.name] = [] if said else _mirrored(slot, asked, request, code, once)
        elif slot.name in ABSENT and (slot.nullable or ABSENT[slot.name] is not None):
            out[slot.name] = ABSENT[slot.name]
        else:
            for same in asked.slots:
                if _meaning(same) == _meaning(slot) and (same.type, same.array) == (slot.type, slot.array):
                    value = request.get(same.name)
                    if value is not None and same.struct is None and not slot.field.secret:
                        out[slot.name] = value
    return out


def _mirrored(slot: Slot, asked: StructPlan, request: Body, code: int, once: bool) -> list[Body]:
    """The elements of an answer's array: one for each element of the request's array that names the same things."""
    assert slot.struct is not None
    wanted = {_meaning(inner) for inner in slot.struct.slots} - {None}
    best: Slot | None = None
    shared = 0
    for candidate in asked.slots:
        if not candidate.array:
            continue
        names = {_meaning(s) for s in candidate.struct.slots} if candidate.struct else {_meaning(candidate)}
        if len(wanted & names) > shared:
            best, shared = candidate, len(wanted & names)
    if best is None:
        best = next((each for each in asked.slots if each.name in BY_POSITION), None)
    if best is None:  # what the answer lists may stand deeper in the request
        return [
            row
            for outer in asked.slots
            if outer.array and outer.struct is not None
            for item in request.get(outer.name) or []
            for row in _mirrored(slot, outer.struct, item, code, once)
        ]
    given = request.get(best.name) or []
    if best.name in PAIRED:  # what is deleted is answered beside what is set
        given = [*given, *(request.get(PAIRED[best.name]) or [])]
    if best.struct is not None:
        inner = best.struct
        return [refusal(slot.struct, inner, item, code, once) for item in given]
    name = next(s.name for s in slot.struct.slots if _meaning(s) == _meaning(best))
    return [{**refusal(slot.struct, asked, {}, code), name: item} for item in given]


def _meaning(slot: Slot) -> str | None:
    """What a field names: the entity, or that it is a partition, or its own name where that says enough."""
    if slot.type == "struct":
        return None
    if slot.name in PARTITION:
        return "partition"
    if slot.type == "uuid" and slot.name == "TopicId":
        return "topicId"
    if slot.field.entity and slot.field.entity not in ("brokerId", "producerId"):
        return slot.field.entity
    return {"CoordinatorKeys": "Key", "Results": None, "User": "Name"}.get(slot.name, slot.name)
