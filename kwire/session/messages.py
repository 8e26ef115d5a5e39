"""Reads a frame's header and walks over its body: what a message says, whether it is whole, which errors it holds."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from kwire.codec.annotate import decode_error
from kwire.codec.headers import behind_tags
from kwire.codec.quality import Quality
from kwire.codec.scan_code import Scan
from kwire.counted import counted
from kwire.errors import DecodeError
from kwire.schema.keys import API_VERSIONS
from kwire.session.api_versions import Kind, Kinds
from kwire.session.exchange import REFUSED, REFUSED_VERSION, Message, refusal_note

CLIENTS = 1000  # client ids of a connection that are remembered as text
REFUSAL = REFUSED.to_bytes(2, "big")

header_at = Struct(">hhih").unpack_from
short_header_at = Struct(">hhi").unpack_from
short_at = Struct(">h").unpack_from


def read_request(message: Message, kinds: Kinds, clients: dict[bytes, str]) -> None:
    """Fills in what a request's frame says. clients: the ids that its connection used before, as text."""
    data = message.data
    if len(data) < 12:
        if message.quality == Quality.OK:
            message.quality, message.note = Quality.MALFORMED, f"{len(data) - 4} bytes are no request header"
        return
    if len(data) >= 14:
        key, version, message.correlation_id, length = header_at(data, 4)
    else:
        (key, version, message.correlation_id), length = short_header_at(data, 4), -1
    kind = message.api = kinds.of(key, version)
    kind.asked = True
    pos = 14
    if kind.request_header == 0:
        pos = 12
    elif length >= 0:
        pos += length
        if pos <= len(data):  # a part of a name is none
            name = data[14:pos]
            client = clients.get(name)
            if client is None:
                client = name.decode("utf-8", "surrogateescape")
                if len(clients) < CLIENTS:
                    clients[name] = client
            message.client_id = client
    elif length < -1:
        if message.quality == Quality.OK:
            message.quality, message.note = Quality.MALFORMED, f"the client id's length is {length:,}"
        return
    if kind.request_header == 2:
        pos = behind_tags(data, pos)
    if pos > len(data):
        if kind.request is None:  # whether its header ends in tags nobody knows
            _unsupported(message, kind)
        elif message.quality == Quality.OK:
            message.quality, message.note = Quality.MALFORMED, "the header does not fit into the frame"
        return
    message.body_at = pos
    if kind.supported:
        _scan(message, kind.scan_request)
    else:
        _unsupported(message, kind)


def read_response(message: Message, kind: Kind, kinds: Kinds) -> None:
    """Fills in what a response's frame says; kind is its request's."""
    data = message.data
    pos = 8 if not kind.response_header else behind_tags(data, 8)
    if pos > len(data):
        if message.quality == Quality.OK:
            message.quality, message.note = Quality.MALFORMED, "the header does not fit into the frame"
        return
    message.body_at = pos
    if kind.key == API_VERSIONS and kind.version > 0 and data[8:10] == REFUSAL and _is_refusal(message, kinds):
        message.body_version = REFUSED_VERSION
        _scan(message, kinds.of(API_VERSIONS, 0).scan_response, 0)
        if message.quality == Quality.OK:
            message.note = refusal_note(kind.version)
    elif kind.supported:
        _scan(message, kind.scan_response)
    else:
        _unsupported(message, kind)


def _is_refusal(message: Message, kinds: Kinds) -> bool:
    """Whether the ApiVersions response, which holds error 35, is in the form of v0 (KIP-511). What is cut, or of a
    version that nobody knows, is believed to be."""
    kind = message.api
    if message.quality != Quality.OK or kind is None or not kind.supported:
        return True
    try:
        return kinds.of(API_VERSIONS, 0).scan_response(message.data, 8, []) == len(message.data)
    except (IndexError, ValueError, StructError):
        return False


def _unsupported(message: Message, kind: Kind) -> None:
    if message.quality != Quality.OK:
        return
    definition = kind.message(message.kind)
    message.quality = Quality.UNSUPPORTED
    message.note = (
        f"{definition.name} has versions {definition.versions}" if definition else f"no API has the key {kind.key}"
    )


def _scan(message: Message, scan: Scan, version: int | None = None) -> None:
    """Walks over the body: its errors, and whether it is what it should be. version: when it is not the request's."""
    errors: list[int] = []
    data, pos = message.data, message.body_at
    assert pos is not None
    try:
        end = scan(data, pos, errors)
    except (IndexError, ValueError, StructError):
        end = -1
    if errors:
        message.errors = tuple(errors)
    if end == len(data) or message.quality != Quality.OK:
        return
    if 0 <= end < len(data):
        message.quality = Quality.TRAILING
        message.note = f"{counted(len(data) - end, 'byte')} behind the body"
    else:
        message.quality, message.note = Quality.MALFORMED, _why(message, pos, version)


def _why(message: Message, pos: int, version: int | None) -> str:
    kind = message.api
    assert kind is not None
    definition = kind.message(message.kind)
    assert definition is not None
    plan = kind.library.plan_of(definition, kind.version if version is None else version)
    problem: DecodeError = decode_error(plan, message.data, pos)
    return str(problem)
