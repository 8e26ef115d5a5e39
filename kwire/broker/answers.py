"""Answers as frames: a body, or an error in every error field, with header and size in front."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import pack
from typing import NamedTuple

from kwire.broker.context import Body, Request
from kwire.broker.shape import refusal
from kwire.codec.headers import response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.values import Codec
from kwire.schema.keys import API_VERSIONS


class ReplyFrame(NamedTuple):
    """What goes out: the frame, None for nothing; close says why the connection ends after it."""

    data: bytes | None
    close: str | None = None


Done = Callable[[ReplyFrame], None]


def error_body(request: Request, code: int) -> Body:
    """One error in every error field of the answer."""
    if request.key == API_VERSIONS:
        return {"ErrorCode": code}
    library = builtin_library()
    asked = library.plan(f"{request.api}Request", request.version).root
    return refusal(library.plan(f"{request.api}Response", request.version).root, asked, request.body, code)


def written(request: Request, body: Body, version: int) -> bytes:
    """The answer's frame, size prefix included; fields that the version lacks are left out. Raises KwireError."""
    codec, _ = _response(request.key, version)
    return framed(request, codec.encode_fitted(body), version)


def framed(request: Request, data: bytes, version: int) -> bytes:
    """An answer's body with size and header in front of it."""
    _, tail = _response(request.key, version)
    return b"".join((pack(">ii", len(data) + 4 + len(tail), request.correlation_id), tail, data))


@cache
def _response(key: int, version: int) -> tuple[Codec, bytes]:
    """What writes an API's answers, and what ends their header."""
    library = builtin_library()
    message = library.api_message(key, request=False)
    assert message is not None
    tail = b"\0" if response_header_version(key, version, message) else b""
    return library.codec(message.name, version), tail
