"""Withholds what must not be shown: credentials, in every view.

One pass over the span tree puts a Withheld in the place of each secret value; whoever draws the tree sees no value and
leaves out the bytes of the span. Secret are the fields that the schema marks so, and the values of configs that are
marked sensitive (KIP-226) or whose name says that they hold one. Of a broken message that may hold secrets, what could
not be decoded is withheld too, and all that follows the first secret: the length that is wrong may be the secret's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kwire.codec.span import UNDECODED, Span
from kwire.schema.model import Field, Message

SENSITIVE = re.compile(
    r"password|secret|jaas|credential|private|keystore\.key|\btoken\b|apikey|api\.key", re.IGNORECASE
)
CONFIG_NAMES = ("Name", "ConfigName", "Key")
CONFIG_VALUES = ("Value", "ConfigValue")
MARK = "IsSensitive"


class Withheld(NamedTuple):
    """Stands for a value of so many bytes."""

    size: int

    def __str__(self) -> str:
        return f"withheld ({self.size:,} bytes; --show-secrets)"


def conceal(span: Span, message: Message | None) -> Span:
    """The tree without its secrets; the tree itself when it has none."""
    if message is None or not may_hold_secrets(message):
        return _conceal(span, False)
    shown = _conceal(span, True)
    first = min((start for start, _ in withheld(shown)), default=None)
    return shown if first is None or span.broken() is None else _cut(shown, first)


def may_hold_secrets(message: Message) -> bool:
    """Whether a field of the message is secret, or could be by what stands beside it, as a config's value."""
    inner = [field for _, field in message.walk()]
    structs = [message.fields, *(message.fields_of(field) for field in inner if field.is_struct)]
    return any(field.secret for field in inner) or any(_is_config(fields) for fields in structs)


def _is_config(fields: tuple[Field, ...]) -> bool:
    texts = {field.name for field in fields if field.type == "string"}
    return not texts.isdisjoint(CONFIG_NAMES) and not texts.isdisjoint(CONFIG_VALUES)


def withheld(span: Span) -> Iterator[tuple[int, int]]:
    """The ranges of bytes that must not be shown."""
    for child in span.children:
        if isinstance(child.value, Withheld) and (not child.children or child.buffer is not None):
            yield child.start, child.end
        elif child.buffer is None:
            yield from withheld(child)


def _conceal(span: Span, undecoded: bool, sensitive: bool = False) -> Span:
    if span.secret:
        return _hide(span)
    if span.slot and span.slot.field.secret and span.value is not None and span.type != "tag":
        return _pieces(span) if span.children and not span.slot.struct else _hide(span)
    if span.type == UNDECODED:
        return _hide(span) if undecoded and span.end > span.start else span
    if not span.children:
        return span
    sensitive = sensitive or _is_sensitive(span)  # the synonyms of a sensitive config are too
    children = tuple(
        _hide(child)
        if sensitive and child.name in CONFIG_VALUES and child.value is not None
        else _conceal(child, undecoded, sensitive)
        for child in span.children
    )
    changed = any(new is not old for new, old in zip(children, span.children, strict=True))
    if not changed:
        return span
    if isinstance(span.value, bytes) or span.buffer is not None:
        return span._replace(value=_withheld(span), children=children)  # the bytes as a whole have the secrets too
    return span._replace(children=children)


def _cut(span: Span, first: int) -> Span:
    """The tree with everything withheld that begins at first or behind it."""
    if span.start >= first and span.type not in ("frame", "header", "message"):
        return _hide(span)
    if span.end <= first or span.buffer is not None:
        return span
    return span._replace(children=tuple(_cut(child, first) for child in span.children))


def _pieces(span: Span) -> Span:
    """An opened secret field: the pieces that are no secret themselves stay; its bytes as a whole do not."""
    children = tuple(_hide(child) if child.secret or child.type == UNDECODED else child for child in span.children)
    return span._replace(value=_withheld(span), children=children)


def _hide(span: Span) -> Span:
    return span if isinstance(span.value, Withheld) else span._replace(value=_withheld(span), children=())


def _withheld(span: Span) -> Withheld:
    return Withheld(len(span.value) if isinstance(span.value, bytes | str) else span.end - span.start)


def _is_sensitive(span: Span) -> bool:
    """Whether a struct is a config that is marked sensitive, or named so."""
    if not any(child.name in CONFIG_VALUES for child in span.children):
        return False
    names = [child.value for child in span.children if child.name in CONFIG_NAMES]
    slots = span.slot.struct.slots if span.slot and span.slot.struct else ()
    marks = [child.value for child in span.children if child.name == MARK]
    marked = marks != [False] if any(slot.name == MARK for slot in slots) else False  # one that was cut off may be true
    return marked or any(isinstance(name, str) and SENSITIVE.search(name) for name in names)
