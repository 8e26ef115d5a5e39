"""A message's body as JSON, without secrets: by the values codec where nothing can be secret, else by spans."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kwire.codec.quality import Quality
from kwire.codec.secrets import carries_records, may_hold_secrets, tells_metadata
from kwire.codec.span import Span, fields, opened
from kwire.payloads.open import open_payloads
from kwire.records.compression import TOTAL, Budget
from kwire.render.jsonform import to_jsonable
from kwire.render.topic_names import named

if TYPE_CHECKING:
    from kwire.schema.model import MessageSchema
    from kwire.session.exchange import Message

BESIDE_TABLES = TOTAL // 2  # of a frame, where rows of many others are kept beside it
WHOLE = (Quality.OK, Quality.TRAILING, Quality.ORPHAN, Quality.INFERRED)  # what the values codec reads


class BodyRenderer:
    """json(message) is the body as JSON text. inner: records and other inner formats as objects. inflate: what the
    batches of a frame may decompress to, bytes; a third of it where they go into the text, which is kept too."""

    def __init__(self, show_secrets: bool = False, inner: bool = False, inflate: int = TOTAL) -> None:
        self._show, self._inner = show_secrets, inner
        self._inflate = inflate // 3 if inner else inflate
        self._plain: dict[str, bool] = {}
        self._carries: dict[str, bool] = {}

    def json(self, message: Message) -> str:
        """null where there is none; of a body that is broken what could be read."""
        value = self.value(message)
        return value if isinstance(value, str) else json.dumps(to_jsonable(value))

    def value(self, message: Message) -> Any:
        """The same, JSON text or what is to be made of it: for what writes it piece by piece."""
        if message.token:
            token = message.data[4:]
            return {"AuthBytes": token if self._show else f"withheld ({len(token):,} bytes; --show-secrets)"}
        kind = message.api
        definition = kind.message(message.kind) if kind else None
        if definition is None:
            return None
        whole = message.quality in (Quality.OK, Quality.ORPHAN) if message.guarded else message.quality in WHOLE
        if whole and self.plain(definition) and self.bare(definition, message.data):
            body = message.body_json()
            if body is not None:
                return body
        span = body_span(message, self._show, Budget(self._inflate))
        if span is None:
            return None
        found: Any = opened(span) if self._inner else fields(span)
        return found

    def plain(self, definition: MessageSchema) -> bool:
        """Whether nothing in messages of the definition is withheld or opened."""
        if self._inner or self._show:
            return not self._inner
        known = self._plain.get(definition.name)
        if known is None:
            known = self._plain[definition.name] = not may_hold_secrets(definition)
        return known

    def bare(self, definition: MessageSchema, data: bytes, start: int = 0, end: int | None = None) -> bool:
        """Whether the records in these bytes of a message, if it has any, are none of the metadata log."""
        carries = self._carries.get(definition.name)
        if carries is None:
            carries = self._carries[definition.name] = carries_records(definition) and not self._show
        return not carries or not tells_metadata(data, start, end)


def shown_span(message: Message, show_secrets: bool, budget: Budget | None = None) -> Span:
    """The frame's tree with what its fields hold, as far as the budget goes, and without its secrets."""
    kind, span = message.api, message.span()
    definition = kind.message(message.kind) if kind else None
    if definition is not None:
        span = open_payloads(span, message.data, definition.name, budget)
    if kind is not None:
        span = named(span, message.connection.topics.name)
    return span if show_secrets else message.conceal(span, definition)


def body_span(message: Message, show_secrets: bool, budget: Budget | None = None) -> Span | None:
    """The body's part of the same."""
    span = shown_span(message, show_secrets, budget)
    return next((child for child in span.children if child.type == "message"), None)
