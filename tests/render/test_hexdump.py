"""The hex view: bytes, text and the names of the fields that begin in a line; secrets hidden in both."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwire
from kwire.codec.frames import decode_frame
from kwire.codec.secrets import conceal
from kwire.codec.span import Span
from kwire.render.hexdump import hexdump
from kwire.render.lines import plain
from kwire.schema.registry import builtin

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"
DATA = bytes.fromhex("0000000c 00000007 00 00000000 001b 00")


def _lines(span: Span, data: bytes, width: int) -> list[str]:
    return [plain(line) for line in hexdump(span, data, width)]


def test_sixteen_bytes_a_line() -> None:
    span = decode_frame(DATA, api="Heartbeat", version=4).span
    assert _lines(span, DATA, 140) == [
        "0000  00 00 00 0c 00 00 00 07 00 00 00 00 00 00 1b 00  ................  message_size correlation_id tagged "
        "ThrottleTimeMs ErrorCode tagged"
    ]


def test_eight_bytes_a_line_where_it_is_narrow() -> None:
    span = decode_frame(DATA, api="Heartbeat", version=4).span
    assert _lines(span, DATA, 80) == [
        "0000  00 00 00 0c 00 00 00 07  ........  message_size correlation_id",
        "0008  00 00 00 00 00 00 1b 00  ........  tagged ThrottleTimeMs ErrorCode tagged",
    ]


def test_names_that_do_not_fit_go_on_beneath() -> None:
    span = decode_frame(DATA, api="Heartbeat", version=4).span
    assert _lines(span, DATA, 60) == [
        "0000  00 00 00 0c 00 00 00 07  ........  message_size",
        "                                         correlation_id",
        "0008  00 00 00 00 00 00 1b 00  ........  tagged",
        "                                         ThrottleTimeMs",
        "                                         ErrorCode tagged",
    ]


def test_a_short_last_line_keeps_the_columns() -> None:
    data = kwire.encode("HeartbeatRequest", 0, {"GroupId": "g", "MemberId": "m~"})
    assert _lines(kwire.annotate("HeartbeatRequest", 0, data), data, 80) == [
        "0000  00 01 67 00 00 00 00 00  ..g.....  GroupId GenerationId MemberId",
        "0008  02 6d 7e                 .m~",
    ]


def test_fields_have_colors_that_change() -> None:
    span = decode_frame(DATA, api="Heartbeat", version=4).span
    (first, second) = hexdump(span, DATA, 80)
    assert [style for text, style in first if text == "00 "] == ["c0", "c0", "c0", "c1", "c1", "c1"]
    assert {style for text, style in second if text.strip() == "tagged"} == {"c2", "c0"}


def test_what_could_not_be_read_stands_out() -> None:
    span = kwire.annotate("HeartbeatResponse", 4, bytes(5))
    (line,) = hexdump(span, bytes(5), 80)
    assert line[-1] == ("undecoded:ErrorCode ", "error")


def test_secrets_are_hidden_as_bytes_and_as_text() -> None:
    data = kwire.encode("SaslAuthenticateRequest", 2, {"AuthBytes": b"\x00alice\x00secret"})
    span = conceal(kwire.annotate("SaslAuthenticateRequest", 2, data), builtin().message("SaslAuthenticateRequest"))
    text = "\n".join(_lines(span, data, 80))
    assert "··" in text
    assert b"secret".hex(" ") not in text
    assert "cret" not in text


@pytest.mark.parametrize("path", sorted(FRAMES.glob("*Request*.bin")), ids=lambda path: path.stem)
def test_every_byte_is_there_once(path: Path) -> None:
    data = path.read_bytes()
    lines = _lines(decode_frame(data).span, data, 100)
    shown = "".join(line[6:54] for line in lines if line[:1].strip())
    assert bytes.fromhex(shown) == data
