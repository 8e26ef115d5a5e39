"""Opening records: each kind of protection against what the package cryptography encrypts, and records that are odd."""

from __future__ import annotations

import os
import pickle
import sys
from struct import pack

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kwire.capture.tls.header import LARGEST_CONTENT
from kwire.capture.tls.protection import Tls13, protection
from kwire.capture.tls.schedule import Keys, keys_13
from kwire.capture.tls.suites import suite_of
from kwire.errors import KwireError

SUITE = suite_of(0x1301)
KEYS = keys_13(SUITE, bytes(range(32)))


def record(number: int, content: bytes, kind: int = 23, padding: int = 0) -> bytes:
    """A record of TLS 1.3."""
    inner = content + bytes([kind]) + bytes(padding)
    header = pack(">BHH", 23, 0x0303, len(inner) + 16)
    nonce = (int.from_bytes(KEYS.iv, "big") ^ number).to_bytes(12, "big")
    return header + AESGCM(KEYS.key).encrypt(nonce, inner, header)


def opened(data: bytes, number: int = 0) -> tuple[bytes, int, list[int], list[int]]:
    heads: list[int] = []
    sizes: list[int] = []
    found = Tls13(SUITE, KEYS).run(number, data, 0, heads, sizes)
    return *found, heads, sizes


def test_records_in_a_row() -> None:
    first, second, rest = record(0, b"one"), record(1, b"three"), b"\x17\x03\x03\x00"
    assert opened(first + second + rest) == (
        b"onethree", len(first + second), [0, len(first)], [3, 5],
    )  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [
        record(1, b"padded", padding=9), record(1, b"alert", 21), record(7, b"another number"), record(1, b"cut")[:-1],
        b"\x17\x03\x03\x00\x05abcde", b"\x16\x03\x03\x00\x20" + bytes(32),
        record(1, bytes(LARGEST_CONTENT + 1)),
    ],
)  # fmt: skip
def test_a_run_ends_before_what_is_odd(odd: bytes) -> None:
    first = record(0, b"fine")
    assert opened(first + odd) == (b"fine", len(first), [0], [4])


def test_odd_records_are_opened_one_by_one() -> None:
    found = Tls13(SUITE, KEYS)
    padded, large = record(3, b"padded", padding=9), record(4, bytes(LARGEST_CONTENT + 1))
    assert found.open(3, padded[:5], padded[5:]) == (23, b"padded")
    assert found.open(4, large[:5], large[5:]) == (23, bytes(LARGEST_CONTENT + 1))
    assert found.open(5, large[:5], large[5:]) is None
    assert found.open(3, b"\x17\x03\x03\x00\x01", b"x") is None


@pytest.mark.parametrize("number", [0x1301, 0x1303, 0x1304, 0xC02F, 0xCCA8, 0xC0AC, 0x002F, 0xC028])
def test_it_travels_to_other_processes(number: int) -> None:
    suite, modern = suite_of(number), number >> 8 == 0x13
    keys = Keys(os.urandom(suite.key), os.urandom(12 if modern or suite.mode == "chacha20" else 4), os.urandom(32))
    made = protection(suite, keys, modern)
    assert made is not None
    assert pickle.loads(pickle.dumps(made)).extra == made.extra


def test_suites_that_are_not_known_have_none() -> None:
    assert protection(suite_of(0x000A), Keys(b"", b""), False) is None


def test_without_cryptography_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(KwireError, match=r"needs the package cryptography: pip install 'kwire\[tls\]'"):
        protection(SUITE, KEYS, True)
