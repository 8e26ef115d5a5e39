"""From secrets to keys: the PRF of TLS 1.2 (RFC 5246 section 5, RFC 7627), HKDF of TLS 1.3 (RFC 8446 section 7)."""

from __future__ import annotations

import hmac
from struct import pack
from typing import NamedTuple

from kwire.capture.tls.suites import Suite

MASTER = 48  # bytes of a master secret


class Keys(NamedTuple):
    """What protects one direction: iv is the fixed part of a nonce, mac the key of a CBC suite's MAC."""

    key: bytes
    iv: bytes
    mac: bytes = b""


def prf(secret: bytes, label: bytes, seed: bytes, length: int, hash: str) -> bytes:
    """The first bytes of P_hash (RFC 5246)."""
    seed = label + seed
    out, link = b"", seed
    while len(out) < length:
        link = hmac.digest(secret, link, hash)
        out += hmac.digest(secret, link + seed, hash)
    return out[:length]


def expand_label(secret: bytes, label: bytes, context: bytes, length: int, hash: str) -> bytes:
    """HKDF-Expand-Label."""
    full = b"tls13 " + label
    info = pack(">HB", length, len(full)) + full + bytes([len(context)]) + context
    out, block, count = b"", b"", 1
    while len(out) < length:
        block = hmac.digest(secret, block + info + bytes([count]), hash)
        out, count = out + block, count + 1
    return out[:length]


def master_secret(premaster: bytes, randoms: bytes, transcript: bytes | None, hash: str) -> bytes:
    """The master secret of a premaster secret. randoms: the client's and the server's; transcript: the hash of the
    handshake up to ClientKeyExchange where the extended master secret was agreed on, else None."""
    if transcript is not None:
        return prf(premaster, b"extended master secret", transcript, MASTER, hash)
    return prf(premaster, b"master secret", randoms, MASTER, hash)


def keys_12(suite: Suite, master: bytes, client_random: bytes, server_random: bytes) -> tuple[Keys, Keys]:
    """The keys of both directions of TLS 1.2: what the client writes with, what the server writes with."""
    mac = {"": 0, "sha1": 20, "sha256": 32, "sha384": 48}[suite.mac]
    iv = {"chacha20": 12, "cbc": 0}.get(suite.mode, 4)
    lengths = (mac, mac, suite.key, suite.key, iv, iv)
    block = prf(master, b"key expansion", server_random + client_random, sum(lengths), suite.hash)
    parts, pos = [], 0
    for length in lengths:
        parts.append(block[pos : pos + length])
        pos += length
    return Keys(parts[2], parts[4], parts[0]), Keys(parts[3], parts[5], parts[1])


def keys_13(suite: Suite, secret: bytes) -> Keys:
    """The keys of a traffic secret of TLS 1.3."""
    return Keys(
        expand_label(secret, b"key", b"", suite.key, suite.hash), expand_label(secret, b"iv", b"", 12, suite.hash)
    )


def next_secret(suite: Suite, secret: bytes) -> bytes:
    """The traffic secret after a KeyUpdate."""
    return expand_label(secret, b"traffic upd", b"", len(secret), suite.hash)
