"""The names of topics beside their ids in a frame's tree, as far as a capture tells them."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from kwire.codec.span import Span
from kwire.wire import uuids

FEW = 3  # names beside a list of ids
FIELDS = ("TopicId", "TopicIds")
NAMES = ("Name", "TopicName", "Topic")


def named(span: Span, name: Callable[[UUID], str]) -> Span:
    """The tree with names, where the struct itself does not say them. name(id) gives a topic's name, or the id as text
    when nobody tells it."""
    if span.buffer is not None or not span.children:
        return span
    own = any(child.name in NAMES and isinstance(child.value, str) for child in span.children)
    children = tuple(
        child._replace(text=said) if not own and (said := _said(child, name)) else named(child, name)
        for child in span.children
    )
    changed = any(new is not old for new, old in zip(children, span.children, strict=True))
    return span._replace(children=children) if changed else span


def _said(span: Span, name: Callable[[UUID], str]) -> str | None:
    slot = span.slot
    if slot is None or slot.type != "uuid" or slot.field.name not in FIELDS or span.text:
        return None
    ids = span.value if isinstance(span.value, list) else [span.value]
    known = [name(ident) for ident in ids[: FEW + 1] if isinstance(ident, UUID) and ident.int]
    known = [text for text, ident in zip(known, ids, strict=False) if text != uuids.to_text(ident)]
    more = f" +{len(ids) - FEW}" if len(known) > FEW else ""
    return ", ".join(known[:FEW]) + more if known else None
