"""Where a frame begins in bytes whose beginning is lost."""

from __future__ import annotations

import random
from struct import pack
from typing import Any

import pytest

from kwire.codec.frames import MAX_SIZE
from kwire.session.api_versions import Kinds
from kwire.session.resync import CHAIN, find_request, find_response, looks_like_request, reads_as_request

KINDS = Kinds()


def head(size: int, key: int, version: int, client: bytes | None, more: bytes = b"") -> bytes:
    length = pack(">h", -1) if client is None else pack(">h", len(client)) + client
    return pack(">ihhi", size, key, version, 7) + length + more


LOOKS = [
    (head(20, 12, 3, b"abc"), True),
    (head(20, 12, 3, None), True),
    (head(20, 12, 3, b""), True),
    (head(8, 12, 3, None), False),  # no room for the client id
    (head(10, 12, 3, None), True),
    (head(7, 12, 3, None), False),
    (head(20, 12, 99, b"abc"), False),  # a version far beyond those known
    (head(20, 12, 20, b"abc"), True),  # one a little newer
    (head(20, 12, -1, b"abc"), False),
    (head(20, 500, 0, b"abc"), False),
    (head(20, -1, 0, b"abc"), False),
    (head(MAX_SIZE, 0, 9, b"abc"), True),
    (head(MAX_SIZE + 1, 0, 9, b"abc"), False),
    (head(-5, 0, 9, b"abc"), False),
    (head(12, 12, 3, b"abc"), False),  # the client id does not fit
    (head(90, 12, 3, b"a\nc"), False),  # no client is called so
    (head(90, 12, 3, "größe".encode()), True),
    (head(90, 12, 3, b"\xff\xfe"), False),
    (head(90, 12, 3, "ö".encode() * 20)[:17], True),  # cut in the middle of a character
    (head(20, 12, 3, b"abc")[:13], False),  # too little to tell
    (b"", False),
    (pack(">ihhii", 12, 7, 0, 1, 5), True),  # ControlledShutdown v0 has no client id
    (pack(">ihhii", 13, 7, 0, 1, 5), False),
    (b"GET / HTTP/1.1\r\n\r\n", False),
    (bytes(40), False),
]


@pytest.mark.parametrize(("data", "looks"), LOOKS)
def test_looks_like_a_request(data: bytes, looks: bool) -> None:
    assert looks_like_request(data, 0, KINDS) is looks
    assert looks_like_request(b"\x01\x02" + data, 2, KINDS) is looks


READS = [  # the bytes, whether they read as a request, and when one without a client id will do
    (
        "00000016 00000003" + "00" * 18,
        False,
        True,
    ),  # the answer to InitProducerId with id 3, as Produce v3
    ("0000001a 0000 0002 00000000 0001 61 0001 00000000", True, True),  # Produce v2 of a client, cut
    ("00000017 0000 0002 00000000 0001 61 0001 00000000 00000000", True, True),  # Produce v2 of a client
    ("00000010 00000014 00 00000000 0000 00 00000000 00", False, False),  # Heartbeat's answer, id 20
    ("0000000c 000c0005 00 00000000 0000 00", False, True),  # and id 786437, as Heartbeat v5
    ("00000013 000c 0005 00000000 0001 61 0001", True, True),  # a newer Heartbeat of a client, cut
    ("00000010 000c 0000 00000001 0000 0000 00000000", False, False),  # too short a body
    ("00000012 000c 0000 00000001 0000 0000 00000000 0000", True, True),
    ("00000013 000c 0000 00000001 0000 0000 00000000 0000 ff", True, True),  # trailing
]


@pytest.mark.parametrize(("data", "named", "unnamed"), READS)
def test_reads_as_a_request(data: str, named: bool, unnamed: bool) -> None:
    assert reads_as_request(bytes.fromhex(data), 0, KINDS) is named
    assert reads_as_request(bytes.fromhex(data), 0, KINDS, named=False) is unnamed


def requests(traffic: Any, count: int, first: int = 1) -> list[bytes]:
    return [traffic.request("Heartbeat", 3, {"GroupId": "g"}, ident) for ident in range(first, first + count)]


def responses(traffic: Any, count: int, first: int = 1) -> list[bytes]:
    return [traffic.response("Heartbeat", 3, ident=ident) for ident in range(first, first + count)]


def test_a_chain_of_requests_is_found_behind_any_bytes(traffic: Any) -> None:
    rng = random.Random(5)
    for _ in range(50):
        junk = rng.randbytes(rng.randrange(200))
        data = junk + b"".join(requests(traffic, CHAIN))
        assert find_request(data, [], KINDS) == len(junk)


def test_a_single_request_in_the_middle_of_a_packet_is_not_believed_but_at_its_beginning_it_is(traffic: Any) -> None:
    (frame,) = requests(traffic, 1)
    data = b"\xaa" * 9 + frame[:-3]
    assert find_request(data, [], KINDS) is None
    assert find_request(data, [0, 9], KINDS) == 9


def test_requests_up_to_the_end_of_the_data_are_enough(traffic: Any) -> None:
    (frame,) = requests(traffic, 1)
    assert find_request(b"\xaa" * 9 + frame, [], KINDS) == 9


def test_a_chain_that_breaks_is_none(traffic: Any) -> None:
    first, second, third = requests(traffic, 3)
    data = b"\xaa" * 9 + first + second + b"\xff" * 20 + third[:15]
    assert find_request(data, [9], KINDS) is None


def test_a_request_in_the_value_of_another_one_does_not_hide_the_place_where_a_packet_begins(traffic: Any) -> None:
    inner = b"".join(requests(traffic, 4))
    outer = traffic.request("SaslAuthenticate", 0, {"AuthBytes": inner})
    data = outer + b"".join(requests(traffic, 3, 9))
    assert find_request(data, [0], KINDS) == 0


@pytest.mark.parametrize("data", [b"", b"\0", bytes(100), b"\xff" * 100, b"GET / HTTP/1.1\r\n" * 10])
def test_what_is_no_request_is_not_found(data: bytes) -> None:
    assert find_request(data, [0], KINDS) is None


def test_a_response_is_believed_when_its_id_was_asked(traffic: Any) -> None:
    rng = random.Random(6)
    for _ in range(50):
        junk = rng.randbytes(rng.randrange(1, 200))
        data = junk + b"".join(responses(traffic, 3, 1_000_001))
        assert find_response(data, [], {1_000_001, 1_000_002, 1_000_003}) == len(junk)


def test_nothing_is_believed_in_the_middle_of_a_packet_without_ids(traffic: Any) -> None:
    data = b"\xaa" * 5 + b"".join(responses(traffic, 3))
    assert find_response(data, [], ()) is None
    assert find_response(data, [5], ()) == 5


@pytest.mark.parametrize(("asked", "found"), [({7}, 0), ({8}, None), ((), None)])
def test_a_response_that_is_cut_must_be_asked_for(traffic: Any, asked: Any, found: int | None) -> None:
    frame = traffic.response("Metadata", 9, {"ClusterId": "abcdefgh"}, ident=7)
    assert find_response(frame[:-4], [0], asked) == found


@pytest.mark.parametrize(("step", "found"), [(1, 0), (100, 0), (1023, 0), (1024, None), (0, None), (-1, None)])
def test_ids_that_nobody_asked_for_must_grow_and_stay_near(traffic: Any, step: int, found: int | None) -> None:
    data = b"".join(traffic.response("Heartbeat", 3, ident=5000 + n * step) for n in range(3))
    assert find_response(data, [0], ()) == found


def test_answers_to_what_was_asked_may_come_in_any_order(traffic: Any) -> None:
    data = b"".join(traffic.response("Heartbeat", 3, ident=ident) for ident in (9, 7, 8))
    assert find_response(data, [0], {7, 8, 9}) == 0


@pytest.mark.parametrize("data", [b"\0", b"\0" * 7, bytes(100), b"\xff" * 100])
def test_what_is_no_response_is_not_found(data: bytes) -> None:
    assert find_response(data, [0], ()) is None
    assert find_response(data, [0], {1}) is None


def test_the_search_in_a_megabyte_of_noise_is_bounded(traffic: Any) -> None:
    noise = random.Random(3).randbytes(1 << 20)
    frames = b"".join(requests(traffic, 3))
    assert find_request(noise + frames, [], KINDS) in (None, len(noise))
    assert find_response(noise, [], set(range(1 << 16))) is None
