"""Withholds what must not be shown: credentials, in every view.

One pass over the span tree puts a Withheld in the place of each secret value; whoever draws the tree sees no value and
leaves out the bytes of the span. Secret are the fields that the schema marks so, and the values of configs that are
marked sensitive (KIP-226) or whose name says that they hold one. Bytes that carry another message are withheld unless
that was opened and holds no secret. Of a broken message that may hold secrets, what could not be decoded is withheld
too, and all from the client id or the body on, since any length in them could have swallowed the secret: also where
it seems to be cut only, as bytes may lack in its midst, and where a byte is left over behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from kwire.codec.span import TAG, UNDECODED, Span
from kwire.schema.model import Field, MessageSchema

SENSITIVE = re.compile(
    r"password|secret|jaas|credential|private|keystore\.key|\btoken\b|apikey|api\.key", re.IGNORECASE
)
TELLING = re.compile(r"password\s*=|LoginModule|PRIVATE KEY")  # in the value of a config, whatever its name
TOKEN = re.compile(  # what SASL tokens and configs look like in bytes: PLAIN, SCRAM, OAUTHBEARER, and the words above
    rb"\0[\x21-\x7e]{1,64}\0[\x20-\x7e]{4}|[=,][pvrs]=[\x21-\x7e]{8}|auth=Bearer|(?i:password|secret|jaas|private key)"
)
CONFIG_NAMES = ("Name", "ConfigName", "Key")
CONFIG_VALUES = ("Value", "ConfigValue")
MARK = "IsSensitive"
METADATA = "__cluster_metadata"  # the topic whose records hold configs and credentials
METADATA_ID = UUID(int=1)  # its topic id in every cluster
SECRET_RECORDS = re.compile(rb"\x01[\x04\x0b]\0")  # how those begin: ConfigRecord, UserScramCredentialRecord
LONG = 250  # characters that no name has
ODD = 8  # bytes too many behind a body that is read as it should be all the same


class Withheld(NamedTuple):
    """Stands for a value of so many bytes."""

    size: int

    def __str__(self) -> str:
        return f"withheld ({self.size:,} bytes; --show-secrets)"


def conceal(span: Span, message: MessageSchema | None, guarded: bool = False, unread: bool = False) -> Span:
    """The tree without its secrets; the tree itself when it has none.

    message: None where nobody knows it. guarded: whatever could not be read may be a secret, as on a connection that
    logs in. unread: what is not decoded may be of another message.
    """
    if not guarded and (message is None or not may_hold_secrets(message)):
        metadata = message is not None and carries_records(message) and span.broken() is not None
        if unread and span.broken():
            span = _without_oddities(span)
        return _conceal(span, unread or (metadata and _names_metadata(span)) or _swallows(span))
    shown = _conceal(span, True)
    broken = span.broken()
    if broken is None or message is None:
        return shown
    starts = [start for start, _ in withheld(shown)] + _first_field(span)
    return _cut(shown, min(starts)) if starts else shown


def _without_oddities(span: Span) -> Span:
    """A tree that may be another message's, without bytes and without text that is no name."""
    if not span.children:
        odd = isinstance(span.value, bytes) or (isinstance(span.value, str) and not _is_name(span.value))
        return _hide(span) if odd and span.value else span
    children = tuple(map(_without_oddities, span.children))
    changed = any(new is not old for new, old in zip(children, span.children, strict=True))
    return span._replace(children=children) if changed else span


def _is_name(text: str) -> bool:
    return len(text) < LONG and text.isprintable() and not TELLING.search(text)


def _swallows(span: Span) -> bool:
    """Whether bytes follow the body that may be other frames, of whatever message: a size prefix that is too large
    takes in what comes behind."""
    broken = span.broken()
    return broken is not None and broken[1].name == "trailing" and broken[1].end - broken[1].start > ODD


def may_hold_secrets(message: MessageSchema) -> bool:
    """Whether a field of the message is secret, could be by what stands beside it, as a config's value, or carries a
    message that may hold secrets. Records may too, of one topic: see carries_records."""
    inner = [field for _, field in message.walk()]
    structs = [message.fields, *(message.fields_of(field) for field in inner if field.is_struct)]
    return any(field.secret or field.carrier for field in inner) or any(_is_config(fields) for fields in structs)


def carries_records(message: MessageSchema) -> bool:
    """Whether the message has a field of type records."""
    return any(field.type == "records" for _, field in message.walk())


def tells_metadata(data: bytes, start: int = 0, end: int | None = None) -> bool:
    """Whether bytes hold what the metadata log's secret records begin with, or name it: a quick look for what carries
    records. A damaged name is that of another topic."""
    stop = len(data) if end is None else end
    return _names_log(data, start, stop) or SECRET_RECORDS.search(data, start, stop) is not None


def _names_log(data: bytes, start: int, stop: int) -> bool:
    return data.find(METADATA.encode(), start, stop) >= 0 or data.find(METADATA_ID.bytes, start, stop) >= 0


def looks_secret(data: bytes) -> bool:
    """Whether bytes that cannot be read look as if credentials were among them."""
    return TOKEN.search(data) is not None or _names_log(data, 0, len(data))


def _names_metadata(span: Span) -> bool:
    return any(part.value == METADATA or part.value == METADATA_ID for part in span.below())


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


def hide_within(span: Span, ranges: tuple[tuple[int, int], ...]) -> Span:
    """The tree with every piece withheld that has bytes in one of the ranges."""
    if not ranges:
        return span
    children = []
    for child in span.children:
        inside = any(start < child.end and child.start < end for start, end in ranges)
        if inside and (not child.children or child.buffer is not None):
            children.append(_hide(child))
        elif inside:
            own = any(start < child.own_end and child.start < end for start, end in ranges)
            whole = isinstance(child.value, bytes) or (own and child.type not in ("header", "message"))
            below = hide_within(child, ranges)
            children.append(below._replace(value=_withheld(child)) if whole else below)
        else:
            children.append(child)
    return span._replace(children=tuple(children))


def _conceal(span: Span, undecoded: bool, sensitive: bool = False) -> Span:
    if span.secret:
        return _hide(span)
    if span.slot and span.value is not None and span.type != "tag":
        field = span.slot.field
        if field.secret:
            return _pieces(span) if span.children and not span.slot.struct else _hide(span)
        if field.carrier and span.value and not span.children:
            return _hide(span)
    if span.type == UNDECODED:
        return _hide(span) if undecoded and span.end > span.start else span
    if not span.children:
        return span
    if undecoded and span.type == TAG and span.slot is None:  # a tag that nobody knows
        return span._replace(children=tuple(map(_hide, span.children)))
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


def _first_field(span: Span) -> list[int]:
    """Where a request's client id begins, or a response's body: from there on other bytes may stand than should."""
    if span.type == "message":  # without a header
        return [span.start]
    for child in span.children:
        if child.name == "client_id" or child.type == "message":
            return [child.start]
        if child.type == "header" and (found := _first_field(child)):
            return found
    return []


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
    values = [child.value for child in span.children if child.name in CONFIG_VALUES]
    return (
        marked
        or any(isinstance(name, str) and SENSITIVE.search(name) for name in names)
        or any(isinstance(value, str) and TELLING.search(value) for value in values)
    )
