"""Withholds what must not be shown: credentials, in every view.

One pass over the span tree puts a Withheld in the place of each secret value; whoever draws the tree sees no value and
leaves out the bytes of the span. Secret are the fields that the schema marks so, and the values of configs whose name
says that they hold one (KIP-226 calls them sensitive). Bytes that could not be decoded are withheld too, in a message
that has secret fields: they may be among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kwire.codec.span import UNDECODED, Span
from kwire.schema.model import Message

SENSITIVE = re.compile(r"password|secret|jaas|credential|private|keystore\.key|\btoken\b|apikey|api\.key", re.IGNORECASE)
CONFIG_NAMES = ("Name", "ConfigName", "Key")
CONFIG_VALUES = ("Value", "ConfigValue")


class Withheld(NamedTuple):
    """Stands for a value of so many bytes."""

    size: int

    def __str__(self) -> str:
        return f"withheld ({self.size:,} bytes; --show-secrets)"


def conceal(span: Span, message: Message | None) -> Span:
    """The tree without its secrets; the tree itself when it has none."""
    secret = message is not None and any(field.secret for _, field in message.walk())
    return _conceal(span, secret)


def withheld(span: Span) -> Iterator[tuple[int, int]]:
    """The ranges of bytes that must not be shown."""
    return ((leaf.start, leaf.end) for _, leaf in span.walk() if isinstance(leaf.value, Withheld))


def _conceal(span: Span, undecoded: bool) -> Span:
    if span.slot and span.slot.field.secret and span.value is not None and span.type != "tag":
        return _hide(span)
    if span.type == UNDECODED:
        return _hide(span) if undecoded and span.end > span.start else span
    if not span.children:
        return span
    config = _names_secret(span)
    children = tuple(
        _hide(child) if config and child.name in CONFIG_VALUES and child.value is not None else _conceal(child, undecoded)
        for child in span.children
    )
    changed = any(new is not old for new, old in zip(children, span.children, strict=True))
    return span._replace(children=children) if changed else span


def _hide(span: Span) -> Span:
    return span._replace(value=Withheld(span.end - span.start), children=())


def _names_secret(span: Span) -> bool:
    names = [child.value for child in span.children if child.name in CONFIG_NAMES]
    values = [child for child in span.children if child.name in CONFIG_VALUES]
    return bool(values) and any(isinstance(name, str) and SENSITIVE.search(name) for name in names)
