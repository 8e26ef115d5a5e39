"""Opening records: one direction under one key, with the primitives of the package cryptography.

open() takes a single record of whatever type, run() as many records of application data as follow each other. Both give
nothing for a record that is not authentic under this key and number, and never raise for what records hold. Nonces
and additional data: RFC 5246 section 6.2.3, RFC 7366, RFC 5288, RFC 6655, RFC 7905, RFC 8446 section 5.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BytesIO
from itertools import repeat
from struct import Struct
from typing import Any, Protocol

from kwire.capture.tls.alike import run_alike
from kwire.capture.tls.header import APPLICATION, HEADER, LARGEST, LARGEST_CONTENT, header_at
from kwire.capture.tls.nonces import Nonces
from kwire.capture.tls.schedule import Keys
from kwire.capture.tls.suites import Suite, suite_of
from kwire.errors import KwireError

FIRST, AT_ONCE = 1 << 16, 1 << 22  # bytes that are opened at a time: at first and behind an odd record, and at most
BLOCK = 16  # bytes of an AES block

TLS_1_2 = 0x0303
# How long bodies are by the headers that were met in whichever session: a dict for each number of bytes that are not
# content.
LENGTHS: defaultdict[int, dict[bytes, int]] = defaultdict(dict)

head_12 = Struct(">QBHH").pack


class Protection(Protocol):
    """lead: bytes of a record's body before what is encrypted; extra: bytes of it in all that are not content, the
    fewest where padding varies."""

    lead: int
    extra: int

    def open(self, number: int, header: bytes, body: bytes) -> tuple[int, bytes] | None:
        """The type and the content of record number so and so; None when it is not authentic."""

    def run(self, number: int, data: bytes, pos: int, heads: list[int], sizes: list[int]) -> tuple[bytes, int]:
        """The contents of some records of application data from pos on, and where the next one begins; none when the
        first is no such record, not whole or not authentic. Adds where each begins, and how long what it holds is."""

    def hint(self, body: bytes) -> int:
        """The explicit part of the record's nonce, which most programs count up; 0 where there is none."""


def protection(suite: Suite, keys: Keys, modern: bool, mac_last: bool = False) -> Protection | None:
    """What opens the records of a suite; None when kwire does not know how. modern: TLS 1.3; mac_last:
    encrypt-then-MAC. Raises KwireError without the package cryptography."""
    if not suite.mode:
        return None
    try:
        return (
            Tls13(suite, keys) if modern else Cbc(suite, keys, mac_last) if suite.mode == "cbc" else Aead(suite, keys)
        )
    except ImportError:
        raise KwireError("decrypting TLS needs the package cryptography: pip install 'kwire[tls]'") from None


def load() -> None:
    """Loads what is needed at the first record, for who gives up the right to read files before."""
    suite_of(0)
    with suppress(ImportError):
        import cryptography.exceptions
        import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401


def _cipher(suite: Suite, key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

    if suite.mode == "gcm":
        return AESGCM(key)
    return ChaCha20Poly1305(key) if suite.mode == "chacha20" else AESCCM(key, suite.tag)


def _into(cipher: Any) -> Callable[[bytes, memoryview | bytes, bytes, memoryview], Any]:
    """What opens a record's body into a place that is there; in older releases of cryptography by a copy."""
    if hasattr(cipher, "decrypt_into"):
        into: Callable[[bytes, memoryview | bytes, bytes, memoryview], Any] = cipher.decrypt_into
        return into

    def copy(nonce: bytes, body: memoryview | bytes, head: bytes, place: memoryview) -> None:
        place[:] = cipher.decrypt(nonce, bytes(body), head)

    return copy


def _next_most(most: int, got: int, odd: bool) -> int:
    """How many bytes to open at a time next, so that places made ready in vain cost no more than what was opened."""
    return min(2 * most, AT_ONCE) if got >= most else FIRST if odd else most


class Tls13:
    """TLS 1.3: the type stands behind the content, and zeros behind the type."""

    lead, typed = 0, True

    def __init__(self, suite: Suite, keys: Keys) -> None:
        from cryptography.exceptions import InvalidTag

        self._made = suite, keys
        self._wrong = (InvalidTag, ValueError)
        self._iv, self._nonces = int.from_bytes(keys.iv, "big"), Nonces(keys.iv)
        cipher = _cipher(suite, keys.key)
        self._decrypt, self.into = cipher.decrypt, _into(cipher)
        self.extra, self.odd, self._most = suite.tag + 1, 0, FIRST
        self._lengths = LENGTHS[self.extra]

    def __reduce__(self) -> Any:
        return Tls13, self._made

    def length(self, header: bytes) -> int:
        known = self._lengths.get(header)
        if known is not None or len(header) < HEADER:
            return known or 0
        kind, version, length = header_at(header)
        if kind != APPLICATION or version >> 8 != 3 or not 0 <= length - self.extra <= LARGEST_CONTENT:
            return 0
        if version == TLS_1_2:  # which is what TLS 1.3 says too
            self._lengths[header] = int(length)
        return int(length)

    def beside(self, number: int, data: bytes, heads: range) -> tuple[Iterable[bytes], Iterable[bytes]]:
        return self._nonces.since(number), repeat(data[heads[0] : heads[0] + HEADER])

    def open(self, number: int, header: bytes, body: bytes) -> tuple[int, bytes] | None:
        try:
            plain = self._decrypt((self._iv ^ number).to_bytes(12, "big"), body, header).rstrip(b"\0")
        except self._wrong:
            return None
        return (plain[-1], plain[:-1]) if plain else (0, b"")

    def run(self, number: int, data: bytes, pos: int, heads: list[int], sizes: list[int]) -> tuple[bytes, int]:
        content = run_alike(self, number, data, pos, heads, sizes)
        if heads:
            return content, heads[-1] + HEADER + sizes[-1] + self.extra
        into, end, lengths = self.into, len(data), self._lengths
        view, at, most, odd = memoryview(data), 0, self._most, True
        made = BytesIO(bytes(min(most + LARGEST, end - pos)))
        with made.getbuffer() as place, suppress(*self._wrong):
            for nonce in self._nonces.since(number):
                body = pos + HEADER
                header = data[pos:body]
                length = lengths.get(header) or self.length(header)
                stop = body + length
                if not length or stop > end:
                    odd = False
                    break
                last = at + length - self.extra
                into(nonce, view[body:stop], header, place[at : last + 1])
                if place[last] != APPLICATION:
                    break
                heads.append(pos)
                sizes.append(last - at)
                at, pos = last, stop  # the type is written over
                if at >= most:
                    break
        self._most = _next_most(most, at, odd)
        made.truncate(at)
        return made.getvalue(), pos

    def hint(self, body: bytes) -> int:  # noqa: ARG002 (the protocol's)
        return 0


class Aead:
    """TLS 1.2 with GCM, CCM or ChaCha20: the sequence number is authenticated, and all or a part of a nonce."""

    typed = False

    def __init__(self, suite: Suite, keys: Keys) -> None:
        from cryptography.exceptions import InvalidTag

        self._made = suite, keys
        self._wrong = (InvalidTag, ValueError)
        self._explicit = suite.mode != "chacha20"
        self._iv, self._counted, self._nonces = keys.iv, int.from_bytes(keys.iv, "big"), Nonces(keys.iv)
        cipher = _cipher(suite, keys.key)
        self._decrypt, self.into = cipher.decrypt, _into(cipher)
        self.lead = 8 if self._explicit else 0
        self.extra, self.odd, self._most = suite.tag + self.lead, 0, FIRST

    def __reduce__(self) -> Any:
        return Aead, self._made

    def length(self, header: bytes) -> int:
        if len(header) < HEADER:
            return 0
        kind, _, length = header_at(header)
        return int(length) if kind == APPLICATION and 0 <= length - self.extra <= LARGEST_CONTENT else 0

    def beside(self, number: int, data: bytes, heads: range) -> tuple[Iterable[bytes], Iterable[bytes]]:
        _, version, length = header_at(data, heads[0])
        numbers, size = range(number, number + len(heads)), length - self.extra
        beside = [head_12(each, APPLICATION, version, size) for each in numbers]
        if self._explicit:
            iv = self._iv
            return [iv + data[at + HEADER : at + HEADER + 8] for at in heads], beside
        return self._nonces.since(number), beside

    def open(self, number: int, header: bytes, body: bytes) -> tuple[int, bytes] | None:
        kind, version, length = header_at(header)
        if length < self.extra:
            return None
        explicit = self._iv + body[:8] if self._explicit else (self._counted ^ number).to_bytes(12, "big")
        try:
            plain = self._decrypt(explicit, body[self.lead :], head_12(number, kind, version, length - self.extra))
        except self._wrong:
            return None
        return kind, plain

    def run(self, number: int, data: bytes, pos: int, heads: list[int], sizes: list[int]) -> tuple[bytes, int]:
        content = run_alike(self, number, data, pos, heads, sizes)
        if heads:
            return content, heads[-1] + HEADER + sizes[-1] + self.extra
        into, iv, counted, end, extra = self.into, self._iv, self._counted, len(data), self.extra
        lead, explicit = self.lead, self._explicit
        view, at, most, odd = memoryview(data), 0, self._most, True
        made = BytesIO(bytes(min(most + LARGEST, end - pos)))
        with made.getbuffer() as place, suppress(*self._wrong):
            while at < most and end - pos >= HEADER:
                kind, version, length = header_at(data, pos)
                body = pos + HEADER
                stop, size = body + length, length - extra
                if kind != APPLICATION or stop > end or not 0 <= size <= LARGEST_CONTENT:
                    odd = False
                    break
                nonce = iv + data[body : body + 8] if explicit else (counted ^ number).to_bytes(12, "big")
                head = head_12(number, kind, version, size)
                into(nonce, view[body + lead : stop], head, place[at : at + size])
                heads.append(pos)
                sizes.append(size)
                at, pos, number = at + size, stop, number + 1
        self._most = _next_most(most, at, odd)
        made.truncate(at)
        return made.getvalue(), pos

    def hint(self, body: bytes) -> int:
        return int.from_bytes(body[:8], "big") if self._explicit else 0


class Cbc:
    """TLS 1.2 with AES-CBC and HMAC, before or after the encryption."""

    lead = BLOCK

    def __init__(self, suite: Suite, keys: Keys, mac_last: bool) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._made = suite, keys, mac_last
        self._hash, self._mac, self._mac_last = suite.mac, keys.mac, mac_last
        self._size = {"sha1": 20, "sha256": 32, "sha384": 48}[suite.mac]
        aes = algorithms.AES(keys.key)
        self._cipher: Callable[[bytes], Any] = lambda iv: Cipher(aes, modes.CBC(iv)).decryptor()
        self.extra = BLOCK + self._size + 1

    def __reduce__(self) -> Any:
        return Cbc, self._made

    def open(self, number: int, header: bytes, body: bytes) -> tuple[int, bytes] | None:
        kind, version, _ = header_at(header)
        size = self._size
        coded = body[:-size] if self._mac_last else body
        if len(coded) < 2 * BLOCK or len(coded) % BLOCK:
            return None
        if self._mac_last and not self._right(number, kind, version, coded, body[-size:]):
            return None
        plain = self._cipher(coded[:BLOCK]).update(coded[BLOCK:])
        pad = plain[-1] + 1
        if len(plain) < pad or plain[-pad:] != plain[-1:] * pad:
            return None
        plain = plain[:-pad]
        if self._mac_last:
            return kind, plain
        content, mac = plain[:-size], plain[-size:]
        return (kind, content) if len(mac) == size and self._right(number, kind, version, content, mac) else None

    def _right(self, number: int, kind: int, version: int, data: bytes, mac: bytes) -> bool:
        made = hmac.digest(self._mac, head_12(number, kind, version, len(data)) + data, self._hash)
        return hmac.compare_digest(made, mac)

    def run(self, number: int, data: bytes, pos: int, heads: list[int], sizes: list[int]) -> tuple[bytes, int]:
        parts, end = [], len(data)
        while end - pos >= HEADER:
            kind, _, length = header_at(data, pos)
            stop = pos + HEADER + length
            if kind != APPLICATION or stop > end or length > LARGEST:
                break
            opened = self.open(number, data[pos : pos + HEADER], data[pos + HEADER : stop])
            if opened is None:
                break
            parts.append(opened[1])
            heads.append(pos)
            sizes.append(len(opened[1]))
            pos, number = stop, number + 1
        return b"".join(parts), pos

    def hint(self, body: bytes) -> int:  # noqa: ARG002 (the protocol's)
        return 0
