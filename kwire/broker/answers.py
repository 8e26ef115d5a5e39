"""Answers as frames: a body, or an error in every error field, with header and size in front."""

from __future__ import annotations

from struct import pack

from kwire.broker.context import Body, Request
from kwire.broker.shape import fitted, refusal
from kwire.codec.headers import response_header_version
from kwire.codec.library import builtin_library
from kwire.schema.keys import API_VERSIONS


def error_body(request: Request, code: int) -> Body:
    """One error in every error field of the answer."""
    if request.key == API_VERSIONS:
        return {"ErrorCode": code}
    library = builtin_library()
    asked = library.plan(f"{request.api}Request", request.version).root
    return refusal(library.plan(f"{request.api}Response", request.version).root, asked, request.body, code)


def written(request: Request, body: Body, version: int) -> bytes:
    """The answer's frame, size prefix included; fields that the version lacks are left out. Raises KwireError."""
    codec = builtin_library().codec(f"{request.api}Response", version)
    return framed(request, codec.encode(fitted(codec.plan.root, body)), version)


def framed(request: Request, data: bytes, version: int) -> bytes:
    """An answer's body with size and header in front of it."""
    message = builtin_library().api_message(request.key, request=False)
    tail = b"\0" if response_header_version(request.key, version, message) else b""
    return b"".join((pack(">ii", len(data) + 4 + len(tail), request.correlation_id), tail, data))
