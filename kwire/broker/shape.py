"""Whole error answers that mirror their request.

refusal() writes one error code into every error field of an answer: its arrays that hold errors are those of the
request, matched by what their fields name, as each of Kafka's AbstractRequest.getErrorResponse does by hand. What
matches is found once for all elements: a request may have a hundred thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.broker.context import Body
from kwire.codec.plan import Slot, StructPlan

PARTITION = frozenset({"Index", "Partition", "PartitionIndex", "PartitionIndexes", "Partitions", "PartitionId"})
PAIRED = {"Deletions": "Upsertions"}
BY_POSITION = ("Creations", "Filters", "Entries")  # arrays whose elements are answered one by one, without a name
ABSENT: Body = {  # what stands beside an error where the schema's own default says something else
    "BaseOffset": -1, "HighWatermark": -1, "LowWatermark": -1, "CommittedOffset": -1, "LeaderEpoch": -1, "NodeId": -1,
    "Port": -1, "Records": b"", "ProtocolName": None, "ProtocolType": None, "Leader": "",
}  # fmt: skip


def refusal(answer: StructPlan, asked: StructPlan, request: Body, code: int, once: bool = False) -> Body:
    """An answer with code in every error field. answer, asked: the plans of the response and of the request. once: what
    stands below an element with an error field is left out, as Kafka does where it looks at rights."""
    return _element(answer, asked, code, once)(request)


def _element(answer: StructPlan, asked: StructPlan, code: int, once: bool) -> Callable[[Body], Body]:
    """Makes an element of an answer from the element of the request that it is about."""
    fixed: Body = {}
    said: list[tuple[str, str]] = []
    arrays: list[tuple[str, Callable[[Body], list[Body]]]] = []
    above = once and any(slot.field.error for slot in answer.slots)
    for slot in answer.slots:
        if slot.field.error:
            fixed[slot.name] = code
        elif slot.struct is not None and slot.array:
            mirrored = not above and _holds_errors(slot.struct)
            arrays.append((slot.name, _array(slot.struct, asked, code, once) if mirrored else lambda _: []))
        elif slot.name in ABSENT and (slot.nullable or ABSENT[slot.name] is not None):
            fixed[slot.name] = ABSENT[slot.name]
        elif slot.struct is None and not slot.field.secret:
            meaning, kind = _meaning(slot), (slot.type, slot.array)
            like = (same for same in asked.slots if _meaning(same) == meaning and (same.type, same.array) == kind)
            said += [(slot.name, same.name) for same in like]

    def made(request: Body) -> Body:
        out = dict(fixed)
        for name, same in said:
            value = request.get(same)
            if value is not None:
                out[name] = value
        for name, array in arrays:
            out[name] = array(request)
        return out

    return made


def _holds_errors(plan: StructPlan) -> bool:
    inner = (slot.struct for slot in plan.slots if slot.struct is not None and slot.array)
    return any(slot.field.error for slot in plan.slots) or any(map(_holds_errors, inner))


def _array(answer: StructPlan, asked: StructPlan, code: int, once: bool) -> Callable[[Body], list[Body]]:
    """Makes an answer's array: an element for each one of the request's array that names the same things."""
    wanted = {_meaning(inner) for inner in answer.slots} - {None}
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
        outer = [
            (slot.name, _array(answer, slot.struct, code, once)) for slot in asked.slots if slot.array and slot.struct
        ]
        return lambda request: [row for name, rows in outer for item in request.get(name) or [] for row in rows(item)]
    there = [best.name]
    if best.name in PAIRED:  # what is deleted is answered beside what is set
        there.append(PAIRED[best.name])
    if best.struct is not None:
        element = _element(answer, best.struct, code, once)
        return lambda request: [element(item) for name in there for item in request.get(name) or []]
    alone = _element(answer, asked, code, once=False)
    named = next(s.name for s in answer.slots if _meaning(s) == _meaning(best))
    return lambda request: [{**alone({}), named: item} for name in there for item in request.get(name) or []]


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
