"""Frames: a size prefix, a header and a body as one span tree, with what the header says.

A frame may come without its size prefix. Whatever is in the bytes, a Frame comes out: what cannot be read is an
undecoded span, and quality and note say so. The exceptions of the protocol live here: a broker that does not know the
ApiVersions version asked for answers in the form of v0 (error 35, KIP-511).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct, unpack_from
from typing import Any

from kwire.codec import headers
from kwire.codec.annotate import annotate
from kwire.codec.library import Library, builtin_library
from kwire.codec.quality import Quality
from kwire.codec.span import UNDECODED, Span, fields
from kwire.counted import counted
from kwire.errors import UnknownName
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS
from kwire.schema.model import MessageSchema, snake

MAX_SIZE = 100 * 1024 * 1024  # a size prefix is believed up to here, as socket.request.max.bytes is
ZEROS = bytes(8)  # two frames of size 0 in a row are none

size_at = Struct(">i").unpack_from


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it was read. Offsets in span count from the frame's first byte, size prefix included if there is one.

    kind is request or response. quality: ok, trailing (the body, then bytes left over), truncated (the size prefix
    promises more), malformed, unsupported (an API or version that the schema lacks). note says why it is not ok.
    """

    kind: str
    api_key: int | None
    api: str
    api_version: int
    header_version: int
    correlation_id: int | None
    client_id: str | None
    span: Span
    quality: Quality
    note: str | None

    @property
    def name(self) -> str:
        """As "FetchResponse v16"."""
        return f"{self.api}{self.kind.capitalize()} v{self.api_version}"

    @property
    def header(self) -> dict[str, Any]:
        """The header's fields as plain values."""
        return next((fields(child) for child in self.span.children if child.type == "header"), {})

    @property
    def body(self) -> dict[str, Any] | None:
        """The body's fields as plain values, of a broken one those that could be read; None without any."""
        return next((fields(child) for child in self.span.children if child.type == "message"), None)


def split(data: bytes) -> list[tuple[int, int]]:
    """Start and end of each frame in a row of size-prefixed frames; the last may be cut, or not a frame at all."""
    spans, pos = [], 0
    while pos < len(data):
        end = len(data)
        if len(data) - pos >= 4:
            (size,) = unpack_from(">i", data, pos)
            if 0 <= size <= MAX_SIZE and data[pos : pos + 8] != ZEROS:
                end = min(end, pos + 4 + size)
        spans.append((pos, end))
        pos = end
    return spans


def whole_frames(data: bytes, pos: int, end: int, max_size: int = MAX_SIZE) -> tuple[list[int], int]:
    """Where frames begin that follow each other from pos on, up to one that is not whole at end or whose size cannot
    be; and where the last one ends."""
    found: list[int] = []
    while pos + 4 <= end:
        (size,) = size_at(data, pos)
        if not 0 < size <= max_size or pos + 4 + size > end:
            break
        found.append(pos)
        pos += 4 + size
    return found, pos


def has_size(data: bytes) -> bool:
    """Whether the first four bytes are the size of all the rest."""
    return len(data) >= 4 and int(unpack_from(">i", data)[0]) == len(data) - 4


def decode_frame(
    data: bytes | bytearray | memoryview,
    *,
    api: str | int | None = None,
    version: int | None = None,
    size: bool | None = None,
    library: Library | None = None,
) -> Frame:
    """Reads one frame: a request, or with api and version given the response to such a request.

    data is the whole frame. size says whether it begins with the size prefix; None finds out. Raises UnknownName for an
    api that is not known, or a version that it does not have; never for what is in the bytes.
    """
    raw = bytes(data)
    library = library or builtin_library()
    if size is None:
        size = has_size(raw) or (api is None and _cut_size(raw, library))
    if api is None:
        return _request(raw, size, library)
    message = library.api_message(api, request=False) if isinstance(api, int) else _response_message(library, api)
    if message is None:
        raise UnknownName("API key", str(api))
    key = api if isinstance(api, int) else library.registry.find(api).definition.key
    if version is None or version not in message.versions:
        shown = "none" if version is None else str(version)
        raise UnknownName("version", f"{shown} of {message.name} (it has {message.versions})")
    assert key is not None
    return _response(raw, size, library, key, message, version)


def decode_response(data: bytes, key: int, version: int, library: Library) -> Frame:
    """The sized response to a request of any API and version: of what the schema lacks only the header is read."""
    return _response(data, True, library, key, library.api_message(key, request=False), version)


def _cut_size(raw: bytes, library: Library) -> bool:
    """A request that was cut: the prefix promises more than there is, and a known kind of header follows.

    A key and a version without a size in front are a large number too, and a small correlation id looks like them.
    """
    if len(raw) < 8:
        return False
    size, key, version = unpack_from(">ihh", raw)
    if not (len(raw) - 4 < size <= MAX_SIZE and 0 <= key < 128 and 0 <= version < 32):
        return False
    if size < 1 << 16:
        return True
    unsized = library.api_message(size >> 16, request=True)
    if unsized is not None and size & 0xFFFF in unsized.versions:
        return False
    return _request(raw, True, library).body is not None


def _response_message(library: Library, name: str) -> MessageSchema:
    found = library.registry.find(name)
    if not found.definition.is_api:
        raise UnknownName("API", name)
    return found.definition.messages[1]


def _request(raw: bytes, size: bool, library: Library) -> Frame:
    start = 4 if size else 0
    key, version = unpack_from(">hh", raw, start) if len(raw) >= start + 4 else (-1, -1)
    message = library.api_message(key, request=True)
    header_version = headers.request_header_version(key, version, message)
    header = annotate(headers.header_plan("RequestHeader", header_version), raw, start, whole=False)
    header = _named(header, f"Request Header v{header_version}" + (" · flexible" if header_version == 2 else ""))
    said = fields(header)
    name = message.name.removesuffix("Request") if message else f"ApiKey{key}"
    body = _body(raw, header, message, version, library, name, "Request")
    client_id = said.get("client_id")
    return _frame(
        raw, size, header, body, "request", key if len(raw) >= start + 4 else None, name, version, header_version,
        _int(said.get("correlation_id")), client_id if isinstance(client_id, str) else None,
    )  # fmt: skip


def _response(raw: bytes, size: bool, library: Library, key: int, message: MessageSchema | None, version: int) -> Frame:
    header_version = headers.response_header_version(key, version, message)
    header = annotate(headers.header_plan("ResponseHeader", header_version), raw, 4 if size else 0, whole=False)
    header = _named(header, f"Response Header v{header_version}" + (" · flexible" if header_version else ""))
    name = message.name.removesuffix("Response") if message else f"ApiKey{key}"
    body = _body(raw, header, message, version, library, name, "Response")
    note = None
    if key == API_VERSIONS and version > 0:
        zero = _body(raw, header, message, 0, library, name, "Response")
        refused = fields(zero).get("ErrorCode") == codes.UNSUPPORTED_VERSION if zero else False
        if zero and refused and not zero.broken():
            note = f"the broker does not know ApiVersions v{version}: it answers error 35 in the form of v0"
            body, version = zero, 0
    said = fields(header)
    frame = _frame(
        raw, size, header, body, "response", key, name, version, header_version, _int(said.get("correlation_id")), None
    )
    if note and frame.note is None:
        return replace(frame, note=note)
    return frame


def _named(span: Span, name: str) -> Span:
    """A header's tree: its fields go by the names of the message record, as correlation_id."""
    children = tuple(child._replace(name=snake(child.name)) for child in span.children)
    return span._replace(name=name, type="header", children=children)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _body(
    raw: bytes, header: Span, message: MessageSchema | None, version: int, library: Library, name: str, kind: str
) -> Span | None:
    """The body behind the header; None when the header itself is broken."""
    if header.broken():
        return None
    start = header.end
    if message is not None and version in message.versions:
        return annotate(library.plan(message.name, version), raw, start)
    if message is None:
        note = f"no API has the key {name.removeprefix('ApiKey')}"
    else:
        note = f"{message.name} has versions {message.versions}; newer ones come with kwire schema import, or --schema"
    if message is not None and not message.versions.low <= version <= 64:
        note = f"{message.name} has versions {message.versions}"
    body = Span("body", UNDECODED, start, len(raw), None, (), note)
    return Span(f"{name}{kind} v{version}", "message", start, len(raw), None, (body,))


def _frame(
    raw: bytes, size: bool, header: Span, body: Span | None, kind: str, key: int | None, name: str, version: int,
    header_version: int, correlation_id: int | None, client_id: str | None,
) -> Frame:  # fmt: skip
    children = [header] if body is None else [header, body]
    quality, note = _quality(children)
    if size and len(raw) < 4:
        size_note = f"needs 4 bytes at offset 0, has {len(raw)}"
        children = [Span("message_size", UNDECODED, 0, len(raw), None, (), size_note)]
        quality, note = Quality.TRUNCATED, f"message_size: {size_note}"
    elif size:
        (claimed,) = unpack_from(">i", raw)
        size_note = None
        if claimed != len(raw) - 4:
            size_note = f"the frame has {counted(len(raw) - 4, 'byte')} behind its size"
            quality, note = Quality.TRUNCATED if claimed > len(raw) - 4 else quality, note or size_note
        children.insert(0, Span("message_size", "int32", 0, 4, claimed, (), size_note))
    span = Span(f"{name}{kind.capitalize()} v{version}", "frame", 0, len(raw), None, tuple(children))
    return Frame(kind, key, name, version, header_version, correlation_id, client_id, span, quality, note)


def _quality(children: list[Span]) -> tuple[Quality, str | None]:
    for child in children:
        broken = child.broken()
        if broken is None:
            continue
        path, span = broken
        where = f"{child.name}: {path}" if path and span.name not in ("trailing", "body") else child.name
        quality = {"trailing": Quality.TRAILING, "body": Quality.UNSUPPORTED}.get(span.name, Quality.MALFORMED)
        return quality, f"{where}: {span.note}"
    return Quality.OK, None
