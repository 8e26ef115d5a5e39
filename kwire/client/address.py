"""Where a broker listens: host and port, as people write it and as metadata says it."""

from __future__ import annotations

import re
from typing import NamedTuple

from kwire.errors import KwireError

PORT = 9092
WRITTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\s:\[\]/,]+))(?::(?P<port>\d{1,5}))?")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """host, host:port or [IPv6]:port; a listener's name in front (SASL_SSL://) is dropped. Raises KwireError."""
        bare = re.sub(r"^[A-Za-z_]+://", "", text.strip())
        found = WRITTEN.fullmatch(bare)
        port = int(found["port"] or PORT) if found else 0
        if found is None or not 0 < port < 65536:
            raise KwireError(f"{text.strip() or 'nothing'} is no broker's address; as host:9092, or [::1]:9092")
        return cls(found["six"] or found["host"], port)

    @classmethod
    def parse_all(cls, text: str) -> list[Address]:
        """Several with commas between them, as bootstrap.servers has them. Raises KwireError."""
        return [cls.parse(part) for part in text.split(",") if part.strip()] or [cls.parse(text)]
