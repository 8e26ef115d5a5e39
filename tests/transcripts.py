"""What tests share that replay transcripts of real brokers (fixtures/README.md): reading, and comparing answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from kwire.codec.library import builtin_library
from kwire.records import read_records
from kwire.render.jsonform import from_json, to_jsonable

Row = dict[str, Any]
NO_RULE = ("ThrottleTimeMs", "ErrorMessage", "AcknowledgeErrorMessage")
NAMES = ("GroupId", "MemberId", "TransactionalId", "TopicId", "Topic", "Name", "PartitionIndex", "Index", "ProducerId")


def load(path: Path) -> tuple[Row, list[Row]]:
    """The head, and the steps."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        head, *steps = (json.loads(line) for line in lines)
    return head, steps


def body_of(name: str, version: int, body: Row) -> Row:
    """A body as it stands in a transcript, as values."""
    return from_json(builtin_library().plan(name, version), json.dumps(body))


def comparable(value: Any, key: str = "", no_rule: tuple[str, ...] = NO_RULE) -> Any:
    """A body without what Kafka has no rule for: messages for people, and the order of rows."""
    if isinstance(value, dict):
        return {key: comparable(inner, key, no_rule) for key, inner in value.items() if key not in no_rule}
    if isinstance(value, list):
        return sorted((comparable(inner, key, no_rule) for inner in value), key=place)
    if key == "Records" and value is not None:
        return records(value)
    return to_jsonable(value)


def records(data: bytes) -> list[Any]:
    """What is said of the records in a Fetch answer's bytes."""
    return [
        (r.offset, repr(r.key), repr(r.value), b.producer_id, b.producer_epoch, b.base_sequence, b.is_control)
        for b in read_records(data)
        for r in b.records
    ]


def place(value: Any) -> str:
    """Where a list's element stands: rows by what names them, so that like is compared with like."""
    names = [value[name] for name in NAMES if name in value] if isinstance(value, dict) else []
    return json.dumps([names, value], sort_keys=True)


def unlike(real: Any, ours: Any, path: str = "") -> list[str]:
    """Where two bodies differ, a line a place."""
    if isinstance(real, dict) and isinstance(ours, dict) and real.keys() == ours.keys():
        return [line for key in real for line in unlike(real[key], ours[key], f"{path}.{key}")]
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [line for i in range(len(real)) for line in unlike(real[i], ours[i], f"{path}[{i}]")]
    return [] if real == ours else [f"{path[1:]}: broker {json.dumps(real)}, kwire {json.dumps(ours)}"]
