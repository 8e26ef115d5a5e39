"""Frames without their secrets, each byte of those an asterisk, so that lengths stay what they were."""

from __future__ import annotations

from functools import cache

from kwire.codec.frames import decode_frame, decode_response
from kwire.codec.library import builtin_library
from kwire.codec.secrets import conceal, may_hold_secrets, tells_metadata, withheld
from kwire.codec.span import Span
from kwire.errors import KwireError
from kwire.payloads.open import open_payloads
from kwire.proxy.cutter import Edit
from kwire.proxy.link import Edits, PendingRequest
from kwire.proxy.rewrite import request_body
from kwire.schema.keys import FETCH, FETCH_SNAPSHOT

HEAD = 8  # bytes of size prefix and correlation id, or of size prefix, API key and version
MOST_LOOKED_AT = 1 << 20  # bytes of a frame


def blanking() -> Edits:
    """Edits, for one connection, that take away what codec/secrets.py withholds, and SASL tokens without headers as a
    whole. Answers with records are looked at from when the client asks for the metadata log, or goes on with a fetch
    session in which it may have asked for it."""
    metadata = fetched = False

    def request(asked: PendingRequest) -> Edit | None:
        if asked.key == FETCH and not metadata:
            return lambda frame: watch(frame, asked)
        return (lambda frame: blank(frame, asked, True)) if _may_hold(asked.key, True) else None

    def watch(frame: bytes, asked: PendingRequest) -> bytes:
        nonlocal metadata, fetched
        metadata = tells_metadata(frame) or not (fetched or _begins_session(frame, asked))
        fetched = True
        return frame

    def response(asked: PendingRequest) -> Edit | None:
        holds = (asked.key == FETCH and metadata) or asked.key == FETCH_SNAPSHOT or _may_hold(asked.key, False)
        return (lambda frame: blank(frame, asked, False)) if holds else None

    return Edits(request, response, lambda frame: frame[:4] + b"*" * (len(frame) - 4))


def _begins_session(frame: bytes, asked: PendingRequest) -> bool:
    """Whether a Fetch stands for itself or begins a fetch session (KIP-227: epoch -1 or 0)."""
    try:
        return int(request_body(frame, asked).get("SessionEpoch", 0)) <= 0
    except KwireError:
        return False


@cache
def _may_hold(key: int, request: bool) -> bool:
    """Whether messages of an API may hold secrets; of an API that is not known, yes."""
    message = builtin_library().api_message(key, request)
    return message is None or may_hold_secrets(message)


def blank(frame: bytes, asked: PendingRequest, request: bool) -> bytes:
    """The frame without its secrets; without anything that it says where it is too large to be looked through."""
    library = builtin_library()
    message = library.api_message(asked.key, request)
    if message is None or len(frame) > MOST_LOOKED_AT:
        return frame[: HEAD + 4] + b"*" * (len(frame) - HEAD - 4)
    read = decode_frame(frame, size=True) if request else decode_response(frame, asked.key, asked.version, library)
    span = open_payloads(read.span, frame, message.name)
    values = dict(_values(span))
    out = bytearray(frame)
    for start, end in withheld(conceal(span, message, guarded=True)):
        value = values.get((start, end))
        size = len(value) if value is not None else end - start  # the length in front of a value stays
        start = max(end - size, HEAD)
        out[start:end] = b"*" * max(end - start, 0)
    return bytes(out)


def _values(span: Span) -> list[tuple[tuple[int, int], bytes]]:
    """Texts and bytes by where they lie."""
    found = []
    for child in span.children:
        if isinstance(child.value, str):
            found.append(((child.start, child.end), child.value.encode("utf-8", "surrogateescape")))
        elif isinstance(child.value, bytes | bytearray | memoryview):
            found.append(((child.start, child.end), bytes(child.value)))
        if child.buffer is None:
            found += _values(child)
    return found
