"""Withholds what a peer sends back of our own password: in no field has it a place, and in each it may come."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any
from urllib.parse import quote_from_bytes

from kwire.codec.secrets import Withheld
from kwire.codec.span import Span

LEAST = 4  # bytes; shorter passwords stand in all kinds of words, and count only where they are one
SAID = "withheld"


class Echo:
    """Knows a password in the forms in which it may come back: as it is, quoted, in hex, in base64, with the user."""

    def __init__(self, user: str, password: str) -> None:
        word = password.encode("utf-8", "surrogateescape")
        token = b"\0" + user.encode("utf-8", "surrogateescape") + b"\0" + word
        coded = [b64encode(word).rstrip(b"="), b64encode(token).rstrip(b"="), quote_from_bytes(word).encode()]
        coded += [word.hex().encode(), word.hex(" ").encode()]
        words = sorted({word, *(one for one in coded if len(one) >= LEAST)}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(_whole, words))) if password else None

    def text(self, text: str) -> str:
        """The text with the word withheld in its place."""
        if self._pattern is None:
            return text
        raw = text.encode("utf-8", "surrogateescape")
        return self._pattern.sub(SAID.encode(), raw).decode("utf-8", "surrogateescape")

    def plain(self, value: Any) -> Any:
        """The same for all texts in lists and dicts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple) and not isinstance(value, Withheld):
            return [self.plain(inner) for inner in value]
        return {key: self.plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value

    def span(self, span: Span, data: bytes) -> Span:
        """The tree of these bytes with all withheld in which the word stands."""
        if self._pattern is None:
            return span
        places = [found.span() for found in self._pattern.finditer(data)]
        return self._span(span, places)

    def _span(self, span: Span, places: list[tuple[int, int]]) -> Span:
        own = span.own_end if span.children else span.end
        if any(start < own and span.start < end for start, end in places):
            return span._replace(value=Withheld(span.end - span.start), children=(), text=None, note=None)
        value, text = span.value, None if span.text is None else self.text(span.text)
        note = None if span.note is None else self.text(span.note)
        if span.buffer is not None:
            assert self._pattern is not None
            places = [found.span() for found in self._pattern.finditer(span.buffer)]
        if (places or not span.children) and self._stands_in(value):
            value = Withheld(len(value) if isinstance(value, bytes | str) else span.end - span.start)
        children = tuple(self._span(child, places) for child in span.children)
        return span._replace(value=value, children=children, text=text, note=note)

    def _stands_in(self, value: object) -> bool:
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogateescape")
        return self._pattern is not None and isinstance(value, bytes) and self._pattern.search(value) is not None


def _whole(word: bytes) -> bytes:
    escaped = re.escape(word)
    return escaped if len(word) >= LEAST else rb"(?<![0-9A-Za-z])" + escaped + rb"(?![0-9A-Za-z])"
