"""Reads a frame's header and walks over its body for its quality and error codes."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from kwire.codec.annotate import decode_error
from kwire.codec.headers import behind_tags
from kwire.codec.quality import Quality
from kwire.codec.scan_code import Scan
from kwire.counted import counted
from kwire.errors import DecodeError
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, SASL_HANDSHAKE
from kwire.session.api_versions import Kind, Kinds
from kwire.session.exchange import REFUSED_VERSION, Message, refusal_note
from kwire.session.resync import looks_like_request
from kwire.session.sasl import IDENTIFYING, UNREAD

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.framing import Raw

CLIENTS = 1000  # client ids that are cached per connection
REFUSAL = codes.UNSUPPORTED_VERSION.to_bytes(2, "big")

header_at = Struct(">hhih").unpack_from
short_header_at = Struct(">hhi").unpack_from
short_at = Struct(">h").unpack_from
id_at = Struct(">i").unpack_from


def read_request(message: Message, kinds: Kinds, clients: dict[bytes, str]) -> None:
    """Fills in a request from its frame. clients: the connection's client ids, raw to text; new ones are added."""
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
        if pos <= len(data):  # a client id that is cut off is left out
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
        if kind.request is None:  # an unknown API: its header may or may not have tagged fields
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
    """Fills in a response from its frame. kind: its request's."""
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
    """Whether an ApiVersions response with error 35 is in version 0 (KIP-511); assumed where it is cut off or its
    version is unknown."""
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
    """Walks over the body and sets errors, quality and note. version: if it is not the request's."""
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


class FrameMessages:
    """request(raw) and response(raw) make messages of a connection's frames, in stream order. Client ids, software and
    login go to info.

    indexes: frames of the client and of the broker so far; jumps: in a slice, positions and the frame numbers there,
    per side; finished: no more will come. After SaslHandshake v0 frames are bare tokens in both directions.
    """

    def __init__(self, info: ConnectionInfo) -> None:
        self.info = info
        self.indexes = [0, 0]
        self.jumps: tuple[list[tuple[int, int]], ...] = [], []
        self.finished = False

    def request(self, raw: Raw) -> Message:
        """The next frame of the client."""
        index = self._index(0, raw.position)
        message = Message(self.info, "request", index, *raw)
        data = message.data
        if self.info.login.token_after is not None and self._is_token(data):
            message.token, message.quality, message.guarded = True, Quality.OPAQUE, True
            message.note = f"a bare SASL token{self.info.identity.of_mechanism} after SaslHandshake v0"
            self.info.identity.token(data[4:])
            return message
        names = len(self.info.clients)
        read_request(message, self.info.kinds, self.info.clients)
        kind = message.api
        key, headed = -1 if kind is None else kind.key, message.body_at is not None
        if not self.info.login.reads(key, data, message.quality, headed):
            message.hide(UNREAD)
            if len(self.info.clients) > names:
                self.info.clients.popitem()  # it was not a client id
            return message
        self._believe(message, len(self.info.clients) > names)
        message.guarded = self.info.login.guarded
        if kind is not None and kind.key in IDENTIFYING and message.body_at is not None:
            self.info.identity.request(message.body())
            if kind.key == SASL_HANDSHAKE and kind.version == 0:
                self.info.login.token_after = data[12 : message.body_at]
        return message

    def response(self, raw: Raw) -> Message:
        """The next frame of the broker; only its request tells how to read its body (pairing.py)."""
        index = self._index(1, raw.position)
        message = Message(self.info, "response", index, *raw)
        if len(message.data) >= 8:
            message.correlation_id = id_at(message.data, 4)[0]
        return message

    def _believe(self, message: Message, new: bool) -> None:
        """Drops a new client id unless the frame is complete, or is the first and was only cut off: it may be a piece
        of a password. new: the connection did not name it before."""
        if new and message.quality not in (Quality.OK, Quality.TRAILING):
            first = len(self.info.clients) == 1 and not self.finished
            if not first or message.quality not in (Quality.TRUNCATED, Quality.GAP):
                self.info.clients.popitem()
                message.client_id = None

    def _index(self, turn: int, position: int) -> int:
        """The number of the next frame of the client (0) or the broker (1)."""
        jumps, index = self.jumps[turn], self.indexes[turn]
        while jumps and jumps[0][0] <= position:
            index = max(index, jumps.pop(0)[1])
        self.indexes[turn] = index + 1
        return index

    def _is_token(self, data: bytes) -> bool:
        """After SaslHandshake v0 frames are tokens until one is a request of the same client."""
        client = self.info.login.token_after
        assert client is not None
        if looks_like_request(data, 0, self.info.kinds) and data[12 : 12 + len(client)] == client:
            self.info.login.token_after = None
            return False
        return True
