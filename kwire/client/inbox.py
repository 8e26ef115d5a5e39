"""Bytes from a socket to frames, without the socket: the size prefix is believed only as far as a broker's may go.

What is no frame gets kwire's verdict on the bytes: a web server, TLS, SSH and others answer in their own way.
"""

from __future__ import annotations

from kwire.codec.frames import MAX_SIZE
from kwire.codec.verdict import judge
from kwire.errors import Failure

WANTS_TLS = "this listener wants TLS: --tls"
TLS = ("TLS alert", "TLS handshake", "TLS ServerHello")


class Inbox:
    """feed() it what came; frame() gives a whole frame, size prefix included, or None."""

    def __init__(self, where: object, limit: int = MAX_SIZE) -> None:
        self._where, self._limit = where, limit
        self._held = bytearray()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def held(self) -> bytes:
        """What has come and is no frame yet."""
        return bytes(self._held)

    def feed(self, data: bytes) -> None:
        self._held += data

    def frame(self) -> bytes | None:
        """Raises Failure (not kafka) for what cannot be a frame."""
        if len(self._held) < 4:
            return None
        size = int.from_bytes(self._held[:4], "big", signed=True)
        if not 4 <= size <= self._limit:
            raise self.not_kafka()
        if len(self._held) < size + 4:
            return None
        frame = bytes(self._held[: size + 4])
        del self._held[: size + 4]
        return frame

    def short(self) -> str:
        """How much of a frame is there: "9 of 120 bytes", or "nothing"."""
        if not self._held:
            return "nothing"
        size = int.from_bytes(self._held[:4], "big") + 4 if len(self._held) >= 4 else 4
        return f"{len(self._held):,} of {size:,} bytes"

    def not_kafka(self) -> Failure:
        """What the bytes are instead."""
        verdict = judge(bytes(self._held))
        if verdict is None:
            return Failure("not kafka", self._where, f"answers what is not Kafka: {self._held[:16].hex(' ')}")
        detail = f" ({verdict.detail})" if verdict.detail else ""
        hint = WANTS_TLS if verdict.what in TLS else ""
        return Failure("not kafka", self._where, f"not Kafka: {verdict.what}{detail}", hint)
