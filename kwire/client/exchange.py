"""A request that was sent and the answer that came: both frames whole, their times, and their bodies as values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from kwire.codec.frames import Frame, decode_frame, decode_response
from kwire.codec.headers import header_plan, request_header_version, response_header_version
from kwire.codec.library import Library
from kwire.codec.values import Codec
from kwire.errors import DecodeError, Failure
from kwire.schema.keys import API_VERSIONS

Body = dict[str, Any]


@cache
def header_codec(name: str, version: int) -> Codec:
    """Of RequestHeader or ResponseHeader."""
    return Codec(header_plan(name, version))


def request_frame(
    library: Library, api: str, version: int, body: Body, correlation_id: int, client_id: str | None
) -> bytes:
    """Size prefix, header and body. Raises EncodeError, UnknownName."""
    message = library.message(f"{api}Request")
    key = library.registry.find(api).definition.key
    header_version = request_header_version(key or 0, version, message)
    header: Body = {"RequestApiKey": key, "RequestApiVersion": version, "CorrelationId": correlation_id}
    if header_version:
        header["ClientId"] = client_id
    data = header_codec("RequestHeader", header_version).encode(header)
    data += library.codec(message.name, version).encode(body)
    return len(data).to_bytes(4, "big") + data


@dataclass(frozen=True, slots=True)
class ClientExchange:
    """request and response begin with their size prefixes; response is None where no answer is due (acks=0). time and
    answered, ns since the epoch: when the request was handed to the socket, and when the answer's last byte was there.
    """

    library: Library
    api: str
    key: int
    version: int
    correlation_id: int
    client: str
    broker: str
    request: bytes
    time: int
    response: bytes | None = None
    answered: int | None = None

    @property
    def name(self) -> str:
        """As "Fetch v16"."""
        return f"{self.api} v{self.version}"

    @property
    def took(self) -> int:
        """ns; 0 without an answer."""
        return 0 if self.answered is None else self.answered - self.time

    def frames(self) -> list[tuple[Frame, bytes]]:
        """Both, each with its span tree and its bytes."""
        found = [(decode_frame(self.request, size=True, library=self.library), self.request)]
        if self.response is not None:
            found.append((decode_response(self.response, self.key, self.version, self.library), self.response))
        return found

    def body(self) -> Body:
        """The answer's body; bytes behind it are left alone. Raises Failure (malformed)."""
        raw = self.response or b""
        message = self.library.message(f"{self.api}Response")
        header = response_header_version(self.key, self.version, message)
        try:
            _, start = header_codec("ResponseHeader", header).decode_at(raw, 4)
            codec = self.library.codec(message.name, self.version)
            if self.key != API_VERSIONS:
                return codec.decode_at(raw, start)[0]
            with suppress(DecodeError):
                body, end = codec.decode_at(raw, start)
                if end == len(raw):
                    return body
            return self.frames()[1][0].body or {}  # perhaps in the form of v0
        except DecodeError as error:
            raise Failure("malformed", self.broker, f"the answer to {self.name} cannot be read: {error}") from error
