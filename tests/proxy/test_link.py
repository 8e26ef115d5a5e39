"""The proxy's link: frames in any pieces, answers known by their order, and what ends a connection."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections.abc import Callable
from struct import pack

import pytest

from kwire.proxy.cutter import Edit
from kwire.proxy.link import Edits, Link, PendingRequest
from kwire.proxy.types import PeerRefused

METADATA, PRODUCE, SASL_HANDSHAKE = 3, 0, 17
LARGEST = 1_000


def request(key: int, version: int, correlation: int, rest: bytes = b"") -> bytes:
    frame = pack(">hhih", key, version, correlation, -1) + rest
    return pack(">i", len(frame)) + frame


def response(correlation: int, rest: bytes = b"") -> bytes:
    return pack(">ii", 4 + len(rest), correlation) + rest


def plain() -> Link:
    return Link(Edits(), LARGEST)


def shouting() -> Link:
    """Changes Metadata in both directions, into what is longer."""

    def edit(asked: PendingRequest) -> Edit | None:
        return (lambda frame: b"<" + frame + b">") if asked.key == METADATA else None

    return Link(Edits(edit, edit), LARGEST)


def run(cut: Callable[[bytes], list[bytes | memoryview]], data: bytes, step: int) -> bytes:
    return b"".join(bytes(piece) for at in range(0, len(data), step) for piece in cut(data[at : at + step]))


ASKED = [request(12, 4, 1, b"heartbeat"), request(METADATA, 9, 2, b"all"), request(1, 11, 3, b"x" * 300)]
SAID = [response(1, b"ok"), response(2, b"brokers" * 20), response(3)]


@pytest.mark.parametrize("step", [1, 3, 7, 50, 10_000])
def test_what_has_no_edit_passes_byte_for_byte(step: int) -> None:
    link = plain()
    asked, said = b"".join(ASKED), b"".join(SAID)
    assert (run(link.requests, asked, step), run(link.responses, said, step)) == (asked, said)
    assert (len(link.waiting), link.held) == (0, 0)


@pytest.mark.parametrize("step", [1, 3, 7, 50, 10_000])
def test_what_has_an_edit_is_given_whole(step: int) -> None:
    link = shouting()
    assert run(link.requests, b"".join(ASKED), step) == ASKED[0] + b"<" + ASKED[1] + b">" + ASKED[2]
    assert run(link.responses, b"".join(SAID), step) == SAID[0] + b"<" + SAID[1] + b">" + SAID[2]
    assert link.held == 0


def test_a_frame_without_an_edit_does_not_wait_for_its_end() -> None:
    link = plain()
    assert link.requests(ASKED[2][:100]) == [ASKED[2][:100]]
    assert link.held == 0


def test_only_so_many_frames_begin_at_a_time() -> None:
    link, data = shouting(), b"".join(ASKED)
    made, at, looks = b"", 0, []
    while at < len(data):
        made += b"".join(link.requests(data, at, 1))
        at = link.requests.stopped
        looks.append(len(link.waiting))
    assert made == ASKED[0] + b"<" + ASKED[1] + b">" + ASKED[2]
    assert looks == [1, 2, 3]


def produce(version: int, correlation: int, acks: int) -> bytes:
    text = b"\0" if version >= 9 else pack(">h", -1)
    return request(PRODUCE, version, correlation, (b"\0" if version >= 9 else b"") + text + pack(">hi", acks, 1000))


@pytest.mark.parametrize("version", [3, 8, 9, 11])
@pytest.mark.parametrize("step", [1, 5, 1_000])
def test_a_produce_without_acks_is_not_waited_for(version: int, step: int) -> None:
    link = plain()
    data = produce(version, 1, 0) + produce(version, 2, 1) + produce(version, 3, -1)
    assert run(link.requests, data, step) == data
    assert [each.asked.correlation for each in link.waiting] == [2, 3]


def test_tokens_after_the_old_handshake_have_no_header() -> None:
    link = plain()
    token = pack(">i", 10) + b"\0Ann\0word1"
    data = request(SASL_HANDSHAKE, 0, 1, pack(">h", 5) + b"PLAIN") + token + request(METADATA, 1, 2, pack(">i", -1))
    assert run(link.requests, data, 4) == data
    assert [each.asked.correlation for each in link.waiting] == [1, None, 2]
    said = response(1, bytes(6)) + pack(">i", 0) + response(2)
    assert run(link.responses, said, 3) == said


def converse(asked: bytes, said: bytes) -> None:
    link = plain()
    link.requests(asked)
    link.responses(said)


@pytest.mark.parametrize(
    ("asked", "said", "why"),
    [
        (b"GET / HTTP/1.1\r\n", b"", "the client sends a frame of 1,195,725,856 bytes, the limit is 1,000; this is H"),
        (pack(">i", -1), b"", "the client sends a frame of -1 bytes"),
        (pack(">i", 3) + b"abc", b"", "the client sends a request of 3 bytes, too few"),
        (b"", response(1), "the broker answers what nobody asked"),
        (ASKED[0], response(7), "the broker answers 7, due is the answer to 1"),
        (ASKED[0], pack(">i", 2) + b"ab", "the broker sends an answer of 2 bytes, too few"),
        (ASKED[0], pack(">i", 1_001), "the broker sends a frame of 1,001 bytes, the limit is 1,000"),
    ],
)
def test_what_cannot_go_on_is_refused(asked: bytes, said: bytes, why: str) -> None:
    with pytest.raises(PeerRefused) as refused:
        converse(asked, said)
    assert str(refused.value).startswith(why)


def test_requests_without_answers_are_left_out_where_that_may_be() -> None:
    asked = b"".join(request(METADATA, 1, number, pack(">i", -1)) for number in (1, 2, 3))
    link = Link(Edits(), LARGEST, lenient=True)
    link.requests(asked)
    assert link.responses(response(3)) == [response(3)]
    assert not link.waiting
    link.requests(asked)
    with pytest.raises(PeerRefused, match="answers 9, due is the answer to 1"):
        link.responses(response(9))
