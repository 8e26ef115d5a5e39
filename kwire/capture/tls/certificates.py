"""What a certificate says of itself: subject, issuer, names, validity. Enough of DER to read that, and no more.

X.509 as RFC 5280 section 4.1 has it. Nothing is verified: whom to believe is not in a capture.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple

SEQUENCE, SET, OID, UTC_TIME, GENERAL_TIME = 0x30, 0x31, 0x06, 0x17, 0x18
CONTEXT_0, EXTENSIONS = 0xA0, 0xA3
DNS, ADDRESS, DIRECTORY_NAME = 0x82, 0x87, 0xA4
ALTERNATIVE = bytes.fromhex("551d11")  # subjectAltName, 2.5.29.17
ATTRIBUTES = {
    "550403": "CN", "55040a": "O", "55040b": "OU", "550406": "C", "550408": "ST", "550407": "L",
    "550405": "serialNumber", "2a864886f70d010901": "emailAddress", "0992268993f22c640101": "UID",
    "0992268993f22c640119": "DC",
}  # fmt: skip
MOST_NAMES = 200
SECOND = 1_000_000_000  # ns


class Certificate(NamedTuple):
    """subject and issuer as CN=kafka,O=Example; names: DNS names and addresses; not_before, not_after: ns since the
    Unix epoch."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: int
    not_after: int

    @property
    def self_signed(self) -> bool:
        """Whether it names itself as its issuer."""
        return self.subject == self.issuer

    def expired(self, time: int) -> bool:
        """Whether it is over at that time, ns since the Unix epoch."""
        return time > self.not_after

    def holds(self, name: str) -> bool:
        """Whether it is for this host name or address (RFC 6125 section 6.4: * stands for the first label)."""
        wanted = name.lower().rstrip(".")
        for known in (own.lower().rstrip(".") for own in self.names or self._common_names()):
            if known == wanted or (known.startswith("*.") and wanted.partition(".")[2] == known[2:]):
                return True
        return False

    def _common_names(self) -> list[str]:
        return [part[3:] for part in self.subject.split(",") if part.startswith("CN=")]


def read_certificate(data: bytes) -> Certificate | None:
    """None for what is no certificate."""
    try:
        _, whole = next(_values(data))
        _, signed = next(_values(whole))
        fields = list(_values(signed))
        if fields and fields[0][0] == CONTEXT_0:  # the version
            fields = fields[1:]
        _, _, issuer, validity, subject, _, *rest = fields
        begin, end = (_time(kind, value) for kind, value in _values(validity[1]))
        extensions = next((value for kind, value in rest if kind == EXTENSIONS), b"")
        return Certificate(_name(subject[1]), _name(issuer[1]), tuple(_names(extensions)), begin, end)
    except (ValueError, IndexError, StopIteration, OverflowError):
        return None


def _values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of DER values in a row. Raises ValueError, IndexError."""
    pos = 0
    while pos < len(data):
        tag, size = data[pos], data[pos + 1]
        pos += 2
        if size & 0x80:
            count = size & 0x7F
            if not 0 < count <= 4:
                raise ValueError("no such length")
            size = int.from_bytes(data[pos : pos + count], "big")
            pos += count
        if pos + size > len(data):
            raise ValueError("too long")
        yield tag, data[pos : pos + size]
        pos += size


def _name(data: bytes) -> str:
    """A distinguished name, the most specific part first."""
    parts = []
    for _, group in _values(data):
        for _, pair in _values(group):
            (_, ident), (kind, value) = list(_values(pair))[:2]
            text = value.decode("utf-16-be" if kind == 0x1E else "utf-8", "replace")
            parts.append(f"{ATTRIBUTES.get(ident.hex(), _dotted(ident))}={text}")
    return ",".join(reversed(parts))


def _dotted(ident: bytes) -> str:
    """An object identifier as 2.5.4.3."""
    numbers, value = [], 0
    for byte in ident:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = numbers[0] if numbers else 0
    high = min(first // 40, 2)
    return ".".join(map(str, [high, first - 40 * high, *numbers[1:]]))


def _time(kind: int, value: bytes) -> int:
    """ns since the epoch. Raises ValueError."""
    text = value.decode("ascii")
    if kind == UTC_TIME:  # two digits of the year: from 1950 to 2049 (RFC 5280 section 4.1.2.5.1)
        text = ("19" if text >= "5" else "20") + text
    month, day, hour, minute, second = (int(text[at : at + 2]) for at in range(4, 14, 2))
    return int(datetime(int(text[:4]), month, day, hour, minute, second, tzinfo=UTC).timestamp()) * SECOND


def _names(extensions: bytes) -> Iterator[str]:
    """DNS names and addresses of the extension subjectAltName."""
    for _, group in _values(extensions):
        for _, extension in _values(group):
            fields = list(_values(extension))
            if fields[0][1] != ALTERNATIVE:
                continue
            _, names = next(_values(fields[-1][1]))
            for kind, value in list(_values(names))[:MOST_NAMES]:
                if kind == DNS:
                    yield value.decode("ascii", "replace")
                elif kind == ADDRESS and len(value) in (4, 16):
                    yield str(ip_address(value))
