"""Frames of exchanges in full: titles with packets and direction, what is wrong with them, and bodies beneath lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire.render.exchange_diagrams import body_lines, diagram_lines, message_lines
from kwire.render.lines import plain
from kwire.session.exchange import Exchange
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def read(name: str) -> list[Exchange]:
    return list(Reading([CAPTURES / name], tracking=True).exchanges())


CLASSIC, BARE = read("classic.pcap.gz"), read("sasl-v0.pcap")
START = CLASSIC[0].time


def test_both_frames_have_a_title_and_a_diagram() -> None:
    text = [plain(line) for line in diagram_lines(CLASSIC[0], 160, 0, False, False, START)]
    titles = [line for line in text if " · packet" in line]
    assert titles[0].startswith("ApiVersionsRequest v3 · 74 bytes · correlation id 1 · packet ")
    assert titles[0].endswith(" → 127.0.0.1:9092 · frame 0 of its stream")
    assert titles[1].startswith("ApiVersionsResponse v3 · ")


def test_a_frame_in_several_packets_has_them_beside_its_rows() -> None:
    message = next(each.response for each in CLASSIC if each.response and each.response.marks)
    assert message is not None
    text = [plain(line) for line in message_lines(message, 160, 0, False, False, START)]
    at = text.index("") + 1
    assert text[at].split()[:3] == ["packet", "off", "field"]
    beside = [int(line[:6]) for line in text[at + 1 :] if line[:6].strip().isdecimal()]
    assert set(beside) == {number for _, number in message.marks}
    assert beside[0] == message.packet


@pytest.mark.parametrize("width", [60, 72, 80, 120])
def test_a_title_that_does_not_fit_goes_on_beneath(width: int) -> None:
    request = read("ipv6.pcap")[0].request
    assert request is not None
    lines = [plain(line) for line in message_lines(request, width, 1, False, False, None)]
    assert max(len(line) for line in lines[: lines.index("")]) <= width
    assert "[::1]:9092" in " ".join(lines[: lines.index("")])


def test_bare_tokens_are_withheld_unless_they_are_asked_for() -> None:
    token = next(each.request for each in BARE if each.first.token)
    assert token is not None
    hidden = [plain(line) for line in message_lines(token, 100, 0, True, False, None)]
    shown = "\n".join(plain(line) for line in message_lines(token, 100, 0, True, True, None))
    assert hidden[-1] == "35 bytes withheld (--show-secrets)"
    assert "66 69 78 74 75 72 65" not in "\n".join(hidden)
    assert "66 69 78 74 75 72 65" in shown


def test_what_is_wrong_stands_beneath_the_title() -> None:
    message = next(each.request for each in CLASSIC if each.request and each.request.quality == "orphan")
    assert message is not None
    assert f"orphan: {message.note}" in [plain(line) for line in message_lines(message, 100, 0, False, False, START)]


def test_bodies_are_json_behind_arrows() -> None:
    exchange = next(each for each in CLASSIC if each.api == "Heartbeat")
    asked, answered = (plain(line) for line in body_lines(exchange, 1000, False, False))
    assert exchange.request is not None
    assert json.loads(asked.removeprefix("    → ")) == exchange.request.body()
    assert answered == '    ← {"ThrottleTimeMs": 0, "ErrorCode": 0}'


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_values_are_broken_on_a_terminal_and_whole_in_a_pipe(width: int) -> None:
    exchange = next(each for each in CLASSIC if each.api == "Produce")
    bounded = [plain(line) for line in body_lines(exchange, width, False, False, True)]
    whole = [plain(line) for line in body_lines(exchange, width, False, False, False)]
    assert max(map(len, bounded)) <= width
    assert "".join("".join(bounded).split()) == "".join("".join(whole).split())
    assert any(len(line) > 300 for line in whole)
