"""The records of Kafka's internal topics, opened by their schemas.

Keys begin with an int16 record type, values with an int16 version (coordinator records); the metadata log has no keys,
and a frame of three unsigned varints in front of a value: frame version, record type, version (Kafka's
MetadataRecordSerde). A null value is a tombstone.
"""

from __future__ import annotations

from functools import cache
from struct import unpack_from

from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.secrets import METADATA, SECRET_RECORDS, may_hold_secrets
from kwire.codec.span import UNDECODED, WRONG_CHECKSUM, Span
from kwire.records.annotate import ARRAY, BATCH, CUT, RECORD, open_message
from kwire.schema.model import Definition
from kwire.wire.varint import VarintError, read_uvarint

BY_NAME = {
    "__consumer_offsets": "offsets topic",
    "__transaction_state": "transactions topic",
    "__share_group_state": "share state topic",
    METADATA: "KRaft metadata",
}


@cache
def _types(area: str) -> dict[int, dict[str, Definition]]:
    """{record type: {"key" or "value": its definition}} of a topic."""
    out: dict[int, dict[str, Definition]] = {}
    for definition in builtin_library().registry.data():
        kind = definition.messages[0].kind
        if definition.key is not None and definition.area == area:
            out.setdefault(definition.key, {})["key" if kind == "coordinator-key" else "value"] = definition
    return out


def open_batches(spans: tuple[Span, ...], data: bytes, topic: str) -> tuple[Span, ...]:
    """The batches of a topic with the keys and values of their records opened."""
    opened = tuple(_open(span, data, topic) for span in spans)
    return tuple(_guarded(span, _damaged(span)) for span in opened) if topic == METADATA else opened


def open_strays(span: Span, data: bytes) -> Span:
    """The batches of another topic with the values opened that are records of the metadata log, and such that hold
    secrets: then the topic's name was damaged, or the log was copied."""
    if span.name == "Value" and isinstance(span.value, bytes) and span.buffer is None:
        if not SECRET_RECORDS.match(span.value):
            return span
        opened = _metadata(span, data)
        return opened if opened.children else span
    if not span.children:
        return span
    inner = data if span.buffer is None else span.buffer
    children = tuple(open_strays(child, inner) for child in span.children)
    changed = any(new is not old for new, old in zip(children, span.children, strict=True))
    return span._replace(children=children) if changed else span


def _guarded(span: Span, damaged: bool) -> Span:
    """Marks as secret what was not read of the metadata log, where configs and credentials lie in the clear: batches
    that were cut or not decompressed, and records of which a byte may be wrong."""
    if span.type in (UNDECODED, CUT):
        return span._replace(secret=span.end > span.start)
    if span.name == "Records" and damaged:
        return span._replace(secret=True)
    return span._replace(children=tuple(_guarded(child, damaged or _damaged(child)) for child in span.children))


def _damaged(span: Span) -> bool:
    """Whether a batch or a message of a set has bytes that its checksum does not fit."""
    notes = (child.note for child in span.children if child.name == "Crc")
    return any(note is not None and note.startswith(WRONG_CHECKSUM) for note in notes)


def _open(span: Span, data: bytes, topic: str) -> Span:
    if span.type == RECORD and all(child.buffer is None for child in span.children):
        return _record(span, data, topic)
    if span.type not in (BATCH, ARRAY, RECORD) or not span.children:
        return span
    if span.type == BATCH and any(child.name == "Attributes" and _is_control(child) for child in span.children):
        return span
    inner = data if span.buffer is None else span.buffer
    return span._replace(children=tuple(_open(child, inner, topic) for child in span.children))


def _is_control(attributes: Span) -> bool:
    return isinstance(attributes.value, int) and bool(attributes.value & 32)


def _record(span: Span, data: bytes, topic: str) -> Span:
    parts = {child.name: child for child in span.children}
    key, value = parts.get("Key"), parts.get("Value")
    if key is None or value is None:
        return span
    if topic == METADATA:
        new = {"Value": _metadata(value, data)}
    else:
        new = dict(zip(("Key", "Value"), _coordinator(key, value, data, topic), strict=True))
    return span._replace(children=tuple(new.get(child.name, child) for child in span.children))


def _coordinator(key: Span, value: Span, data: bytes, topic: str) -> tuple[Span, Span]:
    if not isinstance(key.value, bytes) or len(key.value) < 2:
        return key, value
    (kind,) = unpack_from(">h", key.value)
    known = _types(BY_NAME[topic]).get(kind)
    if known is None or "key" not in known:
        return key._replace(note=f"record type {kind} is not known in {topic}"), value
    at = key.end - len(key.value)
    front = Span("record_type", "int16", at, at + 2, kind)
    name = known["key"].name
    body = annotate(builtin_library().plan(name, 0), data, at + 2, key.end)
    if body.broken():
        return key._replace(note=f"not {name}"), value
    key = key._replace(children=(front, *body.children), text=name)
    if value.value is None:
        return key, value._replace(text="tombstone")
    if isinstance(value.value, bytes) and "value" in known:
        return key, open_message(value, data, known["value"].name, prefixed=True)
    return key, value


def _metadata(value: Span, data: bytes) -> Span:
    if not isinstance(value.value, bytes) or not value.value:
        return value
    pos = value.end - len(value.value)
    front: list[Span] = []
    try:
        for name in ("frame_version", "record_type", "version"):
            number, after = read_uvarint(data, pos, value.end)
            front.append(Span(name, "uvarint", pos, after, number))
            pos = after
    except VarintError:
        return value._replace(note="not a metadata record", secret=True)
    kind, version = front[1].value, front[2].value
    known = _types("KRaft metadata").get(kind if isinstance(kind, int) else -1, {}).get("value")
    if known is None or not isinstance(version, int) or version not in known.messages[0].versions:
        return value._replace(note=f"metadata record type {kind} version {version} is not known", secret=True)
    body = annotate(builtin_library().plan(known.name, version), data, pos, value.end)
    if body.broken():
        return value._replace(note=f"not {known.name} v{version}", secret=may_hold_secrets(known.messages[0]))
    return value._replace(children=(*front, *body.children), text=f"{known.name} v{version}")
