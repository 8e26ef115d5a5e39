"""Kafka as a layer of scapy, dissected and built by kwire's codec.

    from kwire.scapy import Kafka, KafkaSession
    from scapy.all import sniff

    for packet in sniff(offline="c.pcap", session=KafkaSession):
        if Kafka in packet and packet[Kafka].api == "Fetch":
            packet[Kafka].show()
    bytes(Kafka(api="Heartbeat", version=4, correlation_id=7, body={"GroupId": "g"}))

Importing this module binds the layer to TCP port 9092; others by
bind_layers(TCP, Kafka, dport=PORT) and bind_layers(TCP, Kafka, sport=PORT).

A response names neither its API nor its version: KafkaSession, which puts segments together, takes them from the
request. Without a session each segment is dissected for itself, and a response is left as its correlation id and bytes.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any

from scapy.config import conf
from scapy.fields import Field, IntField, ShortField
from scapy.layers.inet import TCP
from scapy.packet import Packet, bind_layers
from scapy.sessions import TCPSession

from kwire.codec.frames import MAX_SIZE, Frame, decode_frame, decode_response
from kwire.codec.headers import header_plan, request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.quality import Quality
from kwire.codec.secrets import conceal
from kwire.codec.span import fields
from kwire.codec.values import Codec
from kwire.wire.visible import clean

__all__ = ["PORT", "Kafka", "KafkaSession"]

PORT = 9092
PENDING = 10_000  # requests of a connection whose answers are awaited, the newest
SHOWN = 120  # characters of a value in show()


class _Value(Field[Any, Any]):
    """A value that kwire's codec writes, not scapy."""

    def i2repr(self, _: Packet | None, x: Any) -> str:
        """As show() and sprintf() print it."""
        return clean(str(x))


class _Body(_Value):
    """The body: a dict of the official field names, printed a field a line and without secrets."""

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        """As show() prints it."""
        shown = pkt.shown() if isinstance(pkt, Kafka) else x
        return "".join("\n" + line for line in _lines(shown, 5)) if shown else str(shown)


class Kafka(Packet):
    """A request or a response, size prefix included.

    kind: "request" or "response"; api: a name, as "Fetch", None for a response whose request is not known; version:
    of the API; correlation_id; client_id: str or None, of requests; body: a dict as kwire.decode() gives it, or bytes
    where it could not be read; note: why. Building fills in the defaults of fields that the body lacks; it raises
    EncodeError and UnknownName. A frame that was dissected and not changed is built as the bytes that it was.
    """

    name = "Kafka"
    match_subclass = True
    fields_desc = [  # noqa: RUF012 (scapy's way)
        _Value("kind", "request"), _Value("api", None), ShortField("version", 0), IntField("correlation_id", 0),
        _Value("client_id", None), _Body("body", None), _Value("note", None),
    ]  # fmt: skip

    frame: bytes = b""  # as it was dissected
    asked: tuple[int, int] | None = None  # the API key and version of the request that it answers

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_: Any, **__: Any) -> Any:
        """What scapy asks before it dissects: bytes without a whole frame stay raw."""
        return cls if not _pkt or _is_whole(_pkt) else conf.raw_layer

    def do_dissect(self, s: bytes) -> bytes:
        """Takes one frame; what follows it is the next one."""
        return self._take(s, None)

    def _take(self, data: bytes, asked: tuple[int, int] | None) -> bytes:
        if not _is_whole(data):
            return data
        end = 4 + unpack_from(">i", data)[0]
        self.frame, self.asked = data[:end], asked
        for name, value in _values(_read(self.frame, asked), self.frame).items():
            self.setfieldval(name, value)
        return data[end:]

    def _is_unchanged(self) -> bool:
        """Whether the fields are still those of the frame that was dissected."""
        then = _values(_read(self.frame, self.asked), self.frame) if self.frame else {}
        return bool(then) and all(self.getfieldval(name) == value for name, value in then.items())

    def self_build(self) -> bytes:
        """The frame."""
        if self._is_unchanged():
            return self.frame
        kind, api, version, correlation_id = self.kind, self.api, self.version, self.correlation_id
        client_id, body = self.client_id, self.body
        if isinstance(body, bytes | bytearray):
            first = self.frame[4:8] if kind == "request" else int(correlation_id).to_bytes(4, "big", signed=True)
            return (len(body) + 4).to_bytes(4, "big") + first + body
        library = builtin_library()
        definition = library.registry.find(str(api)).definition
        message = definition.messages[0 if kind == "request" else 1]
        key = definition.key or 0
        header: dict[str, Any] = {"CorrelationId": correlation_id}
        if kind == "request":
            header |= {"RequestApiKey": key, "RequestApiVersion": version}
            number = request_header_version(key, version, message)
            if number:
                header["ClientId"] = client_id.decode() if isinstance(client_id, bytes) else client_id
            plan = header_plan("RequestHeader", number)
        else:
            plan = header_plan("ResponseHeader", response_header_version(key, version, message))
        data = Codec(plan).encode(header) + library.codec(message.name, version).encode(body or {})
        return len(data).to_bytes(4, "big") + data

    def do_build(self) -> bytes:
        """The frame, and what stands behind it."""
        return self.self_build() + bytes(self.do_build_payload())

    def copy(self) -> Kafka:
        """A packet of its own, which remembers its bytes too."""
        made = super().copy()
        made.frame, made.asked = self.frame, self.asked
        return made

    def shown(self) -> object:
        """The body without its secrets, as the views show it."""
        if not self._is_unchanged():
            return self.body
        found = _read(self.frame, self.asked)
        if found.api_key is None or found.body is None:
            return f"{len(self.frame) - 8} bytes"
        message = builtin_library().api_message(found.api_key, request=found.kind == "request")
        tree = conceal(found.span, message)
        return next((fields(child) for child in tree.children if child.type == "message"), None)

    def guess_payload_class(self, payload: bytes) -> Any:
        """Frames follow each other in a segment."""
        return Kafka if _is_whole(payload) else conf.raw_layer

    def mysummary(self) -> str:
        """As "Fetch v16 request 31 cart-1"."""
        what = f"{self.api} v{self.version} {self.kind}" if self.api else self.kind
        return clean(f"{what} {self.correlation_id}" + (f" {self.client_id}" if self.client_id else ""))

    def hashret(self) -> bytes:
        """What a request and its response have in common."""
        return bytes(int(self.correlation_id).to_bytes(4, "big", signed=True))

    def answers(self, other: Packet) -> bool:
        """Whether this is the response to that request."""
        return (
            isinstance(other, Kafka) and (self.kind, other.kind) == ("response", "request")
            and bool(self.correlation_id == other.correlation_id)
        )  # fmt: skip

    @classmethod
    def tcp_reassemble(cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]) -> Packet | None:
        """What scapy's sessions ask: a frame as soon as it is whole, with its request's API when it is a response."""
        if len(data) < 4:
            return None
        size = unpack_from(">i", data)[0]
        if not 0 < size <= MAX_SIZE:
            return conf.raw_layer(data)
        if len(data) < 4 + size:
            metadata["tcp_min_len"] = 4 + size
            return None
        side, asked = metadata.get("ident"), None
        if "client" not in session and decode_frame(data[: 4 + size], size=True).quality == Quality.OK:
            session["client"] = side
        pending: dict[int, tuple[int, int]] = session.setdefault("pending", {})
        if session.get("client") != side and size >= 4:
            asked = pending.pop(unpack_from(">i", data, 4)[0], None) or (-1, 0)
        made = cls()
        rest = made._take(data, asked)
        if made.kind == "request" and made.api is not None:
            pending[made.correlation_id] = (_key(made.api), made.version)
            while len(pending) > PENDING:
                del pending[next(iter(pending))]
        return made / conf.padding_layer(rest) if rest else made


class KafkaSession(TCPSession):
    """sniff(session=KafkaSession), live or with offline=FILE: frames over any number of segments, responses paired."""


def _values(found: Frame, frame: bytes) -> dict[str, Any]:
    """A frame's fields, by the layer's names."""
    known = found.api_key is not None
    return {
        "kind": found.kind, "api": found.api if known else None, "version": found.api_version if known else 0,
        "correlation_id": found.correlation_id or 0, "client_id": found.client_id,
        "body": found.body if known and found.quality == Quality.OK else frame[8:], "note": found.note,
    }  # fmt: skip


def _is_whole(data: bytes) -> bool:
    """Whether a frame begins here that ends within the data."""
    return len(data) >= 8 and 4 <= unpack_from(">i", data)[0] <= min(MAX_SIZE, len(data) - 4)


def _key(api: str) -> int:
    if api.startswith("ApiKey"):
        return int(api[6:])
    return builtin_library().registry.find(api).definition.key or 0


def _read(frame: bytes, asked: tuple[int, int] | None) -> Frame:
    """A request unless asked; of a response to nobody knows what, only the correlation id is read."""
    if asked is not None and asked[0] >= 0:
        return decode_response(frame, *asked, builtin_library())
    found = decode_frame(frame, size=True)
    if asked is None and found.quality in (Quality.OK, Quality.TRAILING, Quality.TRUNCATED) and found.body is not None:
        return found
    return _unknown(found, frame)


def _unknown(found: Frame, frame: bytes) -> Frame:
    note = "a response whose request was not seen, or no Kafka"
    return Frame(
        "response", None, "", 0, 0, unpack_from(">i", frame, 4)[0], None, found.span, Quality.ORPHAN, note,
    )  # fmt: skip


def _lines(value: object, depth: int, name: str = "") -> list[str]:
    """A value, a field a line, as show() indents."""
    pad = " " * depth
    if isinstance(value, dict):
        inner = [line for key, each in value.items() for line in _lines(each, depth + 2 * bool(name), str(key))]
        return [f"{pad}{name}", *inner] if name else inner
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return [line for at, each in enumerate(value) for line in _lines(each, depth, f"{name}[{at}]")]
    text = f"{len(value)} bytes" if isinstance(value, bytes) and len(value) > SHOWN else clean(str(value))
    return [f"{pad}{name} = {text[:SHOWN]}"]


bind_layers(TCP, Kafka, dport=PORT)
bind_layers(TCP, Kafka, sport=PORT)
