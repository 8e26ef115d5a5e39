"""Frames out of bytes that come in pieces, and verdicts on bytes that are no frames."""

from __future__ import annotations

import pytest

from kwire.client.inbox import Inbox
from kwire.errors import Exit, Failure

FRAME = b"\0\0\0\6abcdef"


@pytest.mark.parametrize("size", [1, 3, 4, 7, 20])
def test_frames_come_out_whole_however_they_are_cut(size: int) -> None:
    inbox, out, data = Inbox("b:1"), [], FRAME * 3
    for at in range(0, len(data), size):
        inbox.feed(data[at : at + size])
        while frame := inbox.frame():
            out.append(frame)
    assert out == [FRAME] * 3
    assert len(inbox) == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "b:1: not Kafka: HTTP response (HTTP/1.1 400 Bad Request)"),
        (b"\x15\x03\x03\0\2\2\x50", "b:1: not Kafka: TLS alert (fatal internal_error); this listener wants TLS: --tls"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "b:1: not Kafka: SSH (SSH-2.0-OpenSSH_9.6)"),
        (b"\xff\xff\xff\xff", "b:1: answers what is not Kafka: ff ff ff ff"),
        (b"\0\0\0\3abc", "b:1: answers what is not Kafka: 00 00 00 03 61 62 63"),
        (b"\x7f\xff\xff\xffabcd" + b"x" * 40, "b:1: answers what is not Kafka: 7f ff ff ff 61 62 63 64 " + "78 " * 8),
    ],
)
def test_what_is_no_frame_is_judged(data: bytes, said: str) -> None:
    inbox = Inbox("b:1")
    inbox.feed(data)
    with pytest.raises(Failure) as caught:
        inbox.frame()
    assert str(caught.value) == said.strip()
    assert caught.value.status == Exit.NOT_KAFKA


def test_a_size_is_believed_up_to_the_limit() -> None:
    inbox = Inbox("b:1", limit=8)
    inbox.feed(b"\0\0\0\x08" + b"x" * 8)
    assert inbox.frame() == b"\0\0\0\x08" + b"x" * 8
    inbox.feed(b"\0\0\0\x09")
    with pytest.raises(Failure):
        inbox.frame()


@pytest.mark.parametrize(("data", "said"), [(b"", "nothing"), (b"\0\0", "2 of 4 bytes"), (FRAME[:7], "7 of 10 bytes")])
def test_how_much_of_a_frame_came(data: bytes, said: str) -> None:
    inbox = Inbox("b:1")
    inbox.feed(data)
    assert inbox.short() == said
