"""The results of reading: a Message is a frame with its header's fields; an Exchange is a request with its response."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from struct import error as StructError
from typing import TYPE_CHECKING, Any

from kwire.codec.frames import Frame, decode_frame, decode_response
from kwire.codec.quality import Quality
from kwire.codec.secrets import conceal, hide_within
from kwire.codec.span import UNDECODED, Span
from kwire.errors import DecodeError
from kwire.session.about import About, AboutSource, about
from kwire.session.api_versions import Kind

if TYPE_CHECKING:
    from kwire.codec.values import Codec
    from kwire.schema.model import MessageSchema
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.equal_bodies import EqualBodies

TOKEN = "SaslToken"  # the name of bare SASL tokens
BROKEN, CUT = (
    (Quality.MALFORMED, Quality.UNSUPPORTED, Quality.OPAQUE, Quality.INFERRED),
    (Quality.TRUNCATED, Quality.GAP),
)  # qualities
LACKING = "needs "  # the beginning of notes about missing bytes
REFUSED_VERSION = 0  # the version of an ApiVersions response with that error


def refusal_note(version: int) -> str:
    """The note of an ApiVersions response with error 35."""
    return f"the broker does not know ApiVersions v{version}: it answers in the form of v{REFUSED_VERSION}"


@dataclass(slots=True, eq=False)
class Message:
    """A frame of a connection; the fields from position to marks are those of framing.Raw.

    data begins with the size prefix and is shorter than size + 4 where the capture lacks bytes. index counts the frames
    of the stream from 0, position its bytes. time and last_time, ns since the epoch, and packet and last_packet are
    those of the packets with the first and the last byte; marks, of a frame in several packets, where each begins, as
    (offset, packet). body_at: where the body begins in data, None when the header cannot be read. errors: the error
    codes in a response that are not zero. quality and note: as in the message record. api is None for bare SASL tokens
    and for orphans that could be anything.
    """

    connection: ConnectionInfo
    kind: str
    index: int
    position: int
    data: bytes
    size: int
    time: int
    last_time: int
    packet: int
    last_packet: int
    quality: Quality
    note: str | None
    marks: tuple[tuple[int, int], ...]
    api: Kind | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    body_at: int | None = None
    errors: tuple[int, ...] = ()
    token: bool = False
    body_version: int | None = None  # if not the request's: ApiVersions answered in v0
    guarded: bool = False  # during a login, or possibly: unreadable bytes may be a password
    bodies: EqualBodies | None = None  # where decoded values are kept: do not change them
    _values: dict[str, Any] | None = None

    @property
    def doubted(self) -> bool:
        """Whether a request's header is not trusted: its client id is cut off or was not believed."""
        return self.kind == "request" and self.client_id is None and self.data[12:14] not in (b"", b"\xff\xff")

    def conceal(self, span: Span, definition: MessageSchema | None) -> Span:
        """The frame's tree without its secrets. definition: the schema it is read with. A damaged frame may be another
        message than its header says, so more of it is hidden than of one that was only cut off."""
        broken = self.quality in BROKEN or (self.quality in CUT and (self.doubted or not _is_short(span)))
        unknown = self.api is None and not self.token  # even the correlation id may be something else
        if (
            unknown or (broken and self.doubted) or (self.guarded and self.quality == Quality.INFERRED)
        ):  # a login's answer
            return hide_within(span, ((4, span.end),))
        return conceal(span, definition, self.guarded or definition is None, broken)

    def hide(self, note: str) -> None:
        """Turns it into a SASL token with this note: header fields and errors are dropped, no bytes are shown."""
        self.token, self.quality, self.note, self.guarded = True, Quality.OPAQUE, note, True
        self.api = self.correlation_id = self.client_id = self.body_at = None
        self.errors = ()

    @property
    def name(self) -> str:
        """As "FetchResponse v16"."""
        if self.api is None:
            return TOKEN if self.token else f"{self.kind} of an unknown API"
        return self.api.names[self.kind != "request"]

    def body(self) -> dict[str, Any] | None:
        """The body as plain values; None when it cannot be decoded."""
        if self._values is not None:
            return self._values
        codec = self._codec()
        if codec is None or self.body_at is None:
            return None
        if self.bodies is not None:
            self._values = self.bodies.of(codec, self.data[self.body_at :])
            return self._values
        try:
            return codec.decode_at(self.data, self.body_at)[0]
        except DecodeError:
            return None

    def body_json(self) -> str | None:
        """The body as JSON, secrets included; None when it cannot be decoded."""
        codec = self._codec()
        if codec is None or self.body_at is None:
            return None
        try:
            return codec.json_at(self.data, self.body_at)[0]
        except DecodeError:
            return None

    def _codec(self) -> Codec | None:
        kind, version = self.api, self.body_version
        if kind is None:
            return None
        if version is None:
            return kind.codecs[self.kind != "request"] if kind.supported else None
        definition = kind.message(self.kind)
        return None if definition is None else kind.library.codec(definition.name, version)

    def scanned_errors(self) -> tuple[int, ...]:
        """The non-zero error codes of a response in the order of the fields, as far as it can be read."""
        found: list[int] = []
        kind, pos = self.api, self.body_at
        if kind is not None and self.body_version is not None:
            kind = self.connection.kinds.of(kind.key, self.body_version)
        if kind is None or pos is None or not kind.supported:
            return ()
        with suppress(IndexError, ValueError, StructError):
            kind.scan_response(self.data, pos, found)
        return tuple(found)

    def frame(self) -> Frame:
        """The frame with its span tree, which covers every byte; what is missing or wrong is an undecoded span."""
        kind = self.api
        if self.kind == "request" and not self.token:
            return decode_frame(self.data, size=True, library=kind.library if kind else None)
        if kind is None:
            return self._bare()
        return decode_response(self.data, kind.key, kind.version, kind.library)

    def _bare(self) -> Frame:
        """A frame of an unknown API: only its size and a response's correlation id are decoded."""
        parts = [Span("message_size", "int32", 0, 4, self.size)]
        if self.correlation_id is not None:
            parts.append(Span("correlation_id", "int32", 4, 8, self.correlation_id))
        start, end = parts[-1].end, len(self.data)
        if self.token:
            parts.append(Span("token", "bytes", start, end, self.data[start:], secret=True))
        elif start < end:
            parts.append(Span("body", UNDECODED, start, end, None, (), self.note))
        span = Span(self.name, "frame", 0, end, None, tuple(parts))
        return Frame(
            self.kind, None, TOKEN if self.token else "Unknown", -1, 0, self.correlation_id, self.client_id, span,
            self.quality, self.note,
        )  # fmt: skip

    def span(self) -> Span:
        """The frame's tree."""
        return self.frame().span


def _is_short(span: Span) -> bool:
    """Whether the only fault of a frame is that it ends too early."""
    broken = span.broken()
    return broken is None or (broken[1].note or "").startswith(LACKING)


@dataclass(eq=False)
class Exchange:
    """A request with its response; either may be None. ending: why there is no response.

    about is computed on demand and kept in remembered: a dict and the key in it.
    """

    connection: ConnectionInfo
    request: Message | None
    response: Message | None = None
    ending: str | None = None
    silent: bool = False  # a Produce with acks=0 wants no answer
    remembered: tuple[dict[int, About], int] | None = None

    @property
    def first(self) -> Message:
        """The request; of an orphan, the response."""
        message = self.request or self.response
        assert message is not None
        return message

    @property
    def time(self) -> int:
        """The time of the first byte, ns since the epoch."""
        return self.first.time

    @property
    def api(self) -> str:
        """The API's name; "SaslToken" or "unknown" where there is none."""
        kind = self.first.api
        return kind.api if kind else TOKEN if self.first.token else "unknown"

    @property
    def api_version(self) -> int | None:
        kind = self.first.api
        return kind.version if kind else None

    @property
    def correlation_id(self) -> int | None:
        return self.first.correlation_id

    @property
    def client_id(self) -> str | None:
        return self.first.client_id

    @property
    def latency(self) -> int | None:
        """ns from the request's last byte to the response's first; negative when they were captured in the wrong order;
        None unless both are there."""
        if self.request is None or self.response is None:
            return None
        return self.response.time - self.request.last_time

    @property
    def error(self) -> int | None:
        """The first error code that is not zero."""
        return self.response.errors[0] if self.response and self.response.errors else None

    def answer(self) -> dict[str, Any] | None:
        """The response's body as plain values; None when there is none or it cannot be decoded."""
        return self.response.body() if self.response is not None else None

    @cached_property
    def about(self) -> About:
        """What it is about: topics, group, transactional id."""
        if self.remembered is None:
            return self._about()
        known, row = self.remembered
        if row not in known:
            known[row] = self._about()
        return known[row]

    def _about(self) -> About:
        message, connection = self.first, self.connection
        if message.token:
            return About(words=[connection.identity.mechanism or "SASL"])
        body = message.body()
        if message.api is None or body is None:
            return About()
        return about(AboutSource(message.api, body, connection, self.answer, About()), message.kind)
