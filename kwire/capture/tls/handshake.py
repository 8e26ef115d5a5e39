"""Handshake messages: what client and server say before, and partly after, records are encrypted.

RFC 5246 section 7.4 and RFC 8446 section 4; extensions of RFC 6066 (server name), RFC 7301 (ALPN), RFC 7366
(encrypt-then-MAC), RFC 7627 (extended master secret), RFC 5077 (tickets).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import error as StructError
from struct import unpack_from
from typing import NamedTuple

from kwire.capture.tls.certificates import Certificate, read_certificate

HELLO_REQUEST, CLIENT_HELLO, SERVER_HELLO, NEW_TICKET, END_OF_EARLY_DATA = 0, 1, 2, 4, 5
ENCRYPTED_EXTENSIONS, CERTIFICATE, CERTIFICATE_REQUEST, SERVER_DONE = 8, 11, 13, 14
CLIENT_KEY_EXCHANGE, FINISHED, KEY_UPDATE = 16, 20, 24
SERVER_NAME, ALPN, MAC_LAST, EXTENDED_MASTER, TICKET = 0, 16, 22, 23, 35
PRE_SHARED_KEY, EARLY_DATA, VERSIONS = 41, 42, 43
RETRY = bytes.fromhex(
    "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
)  # SHA-256("HelloRetryRequest")
LONGEST = 1 << 18  # bytes of a message that is believed
TLS_1_2, TLS_1_3 = 0x0303, 0x0304
VERSION_NAMES = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", TLS_1_2: "TLS 1.2", TLS_1_3: "TLS 1.3"}


class Malformed(Exception):
    """The bytes are not a handshake message."""


class ClientHello(NamedTuple):
    """ticket: the one it comes back with, empty when it only says that it would take one."""

    random: bytes
    session: bytes
    suites: tuple[int, ...]
    server_name: str | None
    protocols: tuple[str, ...]
    versions: tuple[int, ...]
    ticket: bytes
    early_data: bool
    resumes: bool


class ServerHello(NamedTuple):
    """retry: it is a HelloRetryRequest. resumes: TLS 1.3, the pre-shared key was taken."""

    random: bytes
    session: bytes
    suite: int
    version: int
    protocol: str | None
    extended_master: bool
    mac_last: bool
    resumes: bool

    @property
    def retry(self) -> bool:
        return self.random == RETRY


def messages(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes whole messages off the buffer: their types, and they themselves with their headers. Raises Malformed."""
    while len(buffer) >= 4:
        size = 4 + int.from_bytes(buffer[1:4], "big")
        if size > LONGEST:
            raise Malformed(f"a handshake message of {size:,} bytes")
        if len(buffer) < size:
            return
        whole = bytes(buffer[:size])
        del buffer[:size]
        yield whole[0], whole


def client_hello(message: bytes) -> ClientHello:
    """Raises Malformed."""
    try:
        (legacy,) = unpack_from(">H", message, 4)
        session, pos = _short(message, 38)
        suites, pos = _long(message, pos)
        pos += 1 + message[pos]  # compression methods
        extensions = _extensions(message, pos)
        versions = extensions.get(VERSIONS, b"")
        offered = unpack_from(f">{len(versions[1:]) // 2}H", versions, 1) if versions else (legacy,)
        return ClientHello(
            message[6:38], session, unpack_from(f">{len(suites) // 2}H", suites),
            _server_name(extensions.get(SERVER_NAME)), _protocols(extensions.get(ALPN)), offered,
            extensions.get(TICKET, b""), EARLY_DATA in extensions, PRE_SHARED_KEY in extensions,
        )  # fmt: skip
    except (IndexError, StructError, ValueError) as error:
        raise Malformed("a ClientHello that ends too early") from error


def server_hello(message: bytes) -> ServerHello:
    """Raises Malformed."""
    try:
        (legacy,) = unpack_from(">H", message, 4)
        session, pos = _short(message, 38)
        (suite,) = unpack_from(">H", message, pos)
        extensions = _extensions(message, pos + 3)
        chosen = extensions.get(VERSIONS)
        return ServerHello(
            message[6:38], session, suite, unpack_from(">H", chosen)[0] if chosen else legacy,
            next(iter(_protocols(extensions.get(ALPN))), None),
            EXTENDED_MASTER in extensions, MAC_LAST in extensions, PRE_SHARED_KEY in extensions,
        )  # fmt: skip
    except (IndexError, StructError, ValueError) as error:
        raise Malformed("a ServerHello that ends too early") from error


def encrypted_extensions(message: bytes) -> tuple[str | None, bool]:
    """The protocol that was chosen, and whether early data is taken. Raises Malformed."""
    try:
        extensions = _extensions(message, 4)
    except (IndexError, StructError, ValueError) as error:
        raise Malformed("EncryptedExtensions that end too early") from error
    return next(iter(_protocols(extensions.get(ALPN))), None), EARLY_DATA in extensions


def certificate(message: bytes, modern: bool) -> Certificate | None:
    """The first certificate of a chain, which is the peer's own; None where there is none. Raises Malformed."""
    pos = 4 + (1 + message[4] if modern and len(message) > 4 else 0)
    if len(message) < pos + 3:
        raise Malformed("a Certificate that ends too early")
    if len(message) < pos + 6:  # an empty list: the client has none
        return None
    size = int.from_bytes(message[pos + 3 : pos + 6], "big")
    return read_certificate(message[pos + 6 : pos + 6 + size])


def new_ticket(message: bytes) -> bytes:
    """The ticket of a NewSessionTicket of TLS 1.2, empty when there is none."""
    return message[10 : 10 + int.from_bytes(message[8:10], "big")]


def _short(data: bytes, pos: int) -> tuple[bytes, int]:
    """What follows a length of one byte, and where it ends. Raises IndexError, ValueError."""
    end = pos + 1 + data[pos]
    return _whole(data[pos + 1 : end], data[pos]), end


def _long(data: bytes, pos: int) -> tuple[bytes, int]:
    """The same with a length of two bytes. Raises StructError, ValueError."""
    (size,) = unpack_from(">H", data, pos)
    return _whole(data[pos + 2 : pos + 2 + size], size), pos + 2 + size


def _whole(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError("cut")
    return data


def _extensions(data: bytes, pos: int) -> dict[int, bytes]:
    """By their types; none where the message ends before them. Raises StructError, ValueError."""
    if pos == len(data):
        return {}
    block, _ = _long(data, pos)
    found: dict[int, bytes] = {}
    pos = 0
    while pos < len(block):
        (kind,) = unpack_from(">H", block, pos)
        found[kind], pos = _long(block, pos + 2)
    return found


def _server_name(extension: bytes | None) -> str | None:
    if not extension or len(extension) < 5:
        return None
    size = int.from_bytes(extension[3:5], "big")
    return extension[5 : 5 + size].decode("ascii", "backslashreplace")


def _protocols(extension: bytes | None) -> tuple[str, ...]:
    names, pos = [], 2
    while extension and pos < len(extension):
        size = extension[pos]
        names.append(extension[pos + 1 : pos + 1 + size].decode("ascii", "backslashreplace"))
        pos += 1 + size
    return tuple(names)
