"""Records of one header, opened together: the same as each by itself, up to what is odd."""

from __future__ import annotations

import os
import tracemalloc
from struct import pack
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

from kwire.capture.tls.alike import AT_ONCE, FEW, run_alike
from kwire.capture.tls.protection import protection
from kwire.capture.tls.schedule import Keys
from kwire.capture.tls.suites import suite_of

KEYS = Keys(bytes(range(16)), bytes(12))
WHICH = {0x1301: AESGCM, 0x1304: AESCCM, 0xC02F: AESGCM, 0xC09E: AESCCM, 0xCCA8: ChaCha20Poly1305}


def stream(number: int, contents: list[bytes], kinds: dict[int, int]) -> tuple[Any, bytes]:
    """What opens records of a suite, and records of these contents, the first of them with the number 7."""
    suite, modern = suite_of(number), number >> 8 == 0x13
    key = bytes(range(suite.key))
    made = protection(suite, Keys(key, bytes(12 if modern or suite.mode == "chacha20" else 4)), modern)
    cipher, data = WHICH[number](key), b""
    for at, content in enumerate(contents, 7):
        counted, kind = at.to_bytes(12, "big"), kinds.get(at, 23)
        if modern:
            header = pack(">BHH", 23, 0x0303, len(content) + 17)
            data += header + cipher.encrypt(counted, content + bytes([kind]), header)
            continue
        explicit = b"" if suite.mode == "chacha20" else os.urandom(8)
        beside = pack(">QBHH", at, kind, 0x0303, len(content))
        coded = explicit + cipher.encrypt(bytes(4) + explicit if explicit else counted, content, beside)
        data += pack(">BHH", kind, 0x0303, len(coded)) + coded
    return made, data


def opened(made: Any, data: bytes) -> tuple[bytes, list[int], list[int]]:
    heads: list[int] = []
    sizes: list[int] = []
    return run_alike(made, 7, data, 0, heads, sizes), heads, sizes


@pytest.mark.parametrize("number", WHICH)
@pytest.mark.parametrize("size", [1, 300, 8191])
def test_records_of_one_length(number: int, size: int) -> None:
    contents = [os.urandom(size) for _ in range(40)]
    made, data = stream(number, contents, {})
    step = len(data) // 40
    assert opened(made, data + b"\x17\x03") == (b"".join(contents), list(range(0, len(data), step)), [size] * 40)
    assert opened(made, data[:-1])[0] == b"".join(contents[:39])


@pytest.mark.parametrize("number", WHICH)
def test_it_ends_where_the_header_changes(number: int) -> None:
    made, data = stream(number, [bytes(50)] * 9 + [bytes(51)] + [bytes(50)] * 9, {})
    assert opened(made, data)[2] == [50] * 9
    made, data = stream(number, [bytes(50)] * (FEW - 1) + [bytes(51)] * 20, {})
    assert opened(made, data) == (b"", [], [])


@pytest.mark.parametrize("number", WHICH)
@pytest.mark.parametrize("odd", [0, AT_ONCE + 3])
def test_it_ends_before_a_record_that_is_odd(number: int, odd: int) -> None:
    contents = [pack(">Q", at) for at in range(AT_ONCE + 20)]
    for kinds, damage in (({7 + odd: 22}, False), ({}, True)):
        made, data = stream(number, contents, kinds)
        step = len(data) // len(contents)
        if damage:
            last = (odd + 1) * step - 1
            data = data[:last] + bytes([data[last] ^ 1]) + data[last + 1 :]
        content, heads, sizes = opened(made, data)
        assert (content, len(heads), sizes) == (b"".join(contents[:odd]), odd, [8] * odd)


@pytest.mark.parametrize("size", [20, 9000])
def test_odd_records_are_not_paid_for_twice(size: int) -> None:
    """Every tenth is an alert: no more is opened in vain than what comes out."""
    contents = [bytes(size) for _ in range(1000)]
    made, data = stream(0x1301, contents, dict.fromkeys(range(0, 2000, 10), 21))
    step, into, tried = len(data) // 1000, made.into, []

    def counted(*given: Any) -> None:
        tried.append(1)
        into(*given)

    made.into = counted
    at = got = 0
    while at < 1000:
        heads: list[int] = []
        made.run(7 + at, data, at * step, heads, [])
        got += len(heads)
        at += len(heads) or 1
    assert got == 900
    assert len(tried) < 3 * 1000


@pytest.mark.parametrize("number", WHICH)
def test_long_records_are_opened_into_their_places(number: int) -> None:
    contents = [os.urandom(16384) for _ in range(30)]
    made, data = stream(number, contents, {})
    at, found, count, last = 0, b"", 0, len(data) // 30 * 29
    while at < len(data):
        heads: list[int] = []
        got, at = made.run(7 + count, data, at, heads, [])
        found, count = found + got, count + len(heads)
    assert (found, count) == (b"".join(contents), 30)
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    assert made.run(7 + 29, damaged, last, [], []) == (b"", last)


def test_places_are_made_for_what_may_come_out() -> None:
    """Behind a record that does not open, few bytes are made ready, not megabytes for each such record."""
    made, data = stream(0x1301, [bytes(16384)] * 400, {})
    at = count = 0
    for _ in range(6):
        heads: list[int] = []
        _, at = made.run(7 + count, data, at, heads, [])
        count += len(heads)
    tracemalloc.start()
    made.run(0, data, 0, [], [])  # under the wrong number
    tracemalloc.reset_peak()
    made.run(0, data, 0, [], [])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 18
