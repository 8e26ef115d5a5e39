"""Which header stands before a body, and reading it.

Requests: header v0 only before ControlledShutdown v0, v1 before an API's first flexible version, v2 from there on.
Responses: v1 from the first flexible version on, but ApiVersions always answers with v0, so that a client that knows
nothing can read it (KIP-511; ApiMessageType.responseHeaderVersion).
"""

from __future__ import annotations

from functools import cache

from kwire.codec.plan import Plan, compile_plan
from kwire.schema.keys import API_VERSIONS, CONTROLLED_SHUTDOWN
from kwire.schema.model import MessageSchema
from kwire.schema.registry import builtin
from kwire.wire.varint import read_uvarint


def request_header_version(key: int, version: int, request: MessageSchema | None) -> int:
    """0, 1 or 2. request is None when the API is not known: such a one is new, hence flexible."""
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if request is None or version in request.flexible else 1


def response_header_version(key: int, version: int, response: MessageSchema | None) -> int:
    """0 or 1."""
    if key == API_VERSIONS:
        return 0
    return 1 if response is None or version in response.flexible else 0


@cache
def header_plan(name: str, version: int) -> Plan:
    """The plan of RequestHeader or ResponseHeader."""
    return compile_plan(builtin().message(name), version)


def behind_tags(data: bytes | bytearray, pos: int) -> int:
    """The offset behind a header's tagged fields, which begin at pos; beyond len(data) when cut or malformed."""
    if pos < len(data) and not data[pos]:
        return pos + 1
    try:
        count, pos = read_uvarint(data, pos)
        for _ in range(min(count, len(data))):
            _, pos = read_uvarint(data, pos)
            size, pos = read_uvarint(data, pos)
            pos += size
            if pos > len(data):
                break
    except (IndexError, ValueError):
        return len(data) + 1
    return pos
