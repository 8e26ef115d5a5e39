"""The top of HTML pages says which capture, packet, connection and time they are about."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

CAPTURE = "fixtures/captures/evict-stopped.pcap.gz"
OTHER = "fixtures/captures/ipv6.pcap"
Runs = Callable[..., Any]


def _facts(page: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)}


@pytest.mark.parametrize(
    "arguments", [["doctor"], ["groups"], ["stats"], ["stats", "--quorum"], ["trace"], ["stats", "--errors"]]
)
def test_pages_of_captures(arguments: list[str], kwire: Runs) -> None:
    assert _facts(kwire(*arguments, CAPTURE, "--format", "html").text) == {
        "capture": "evict-stopped.pcap.gz",
        "time": "2026-11-21 08:16:21.923 to 2026-11-21 08:16:44.608 UTC (22.7 s)",
    }


def test_pages_of_several_captures(kwire: Runs) -> None:
    assert (
        _facts(kwire("stats", CAPTURE, OTHER, "--format", "html").text)["captures"]
        == "evict-stopped.pcap.gz, ipv6.pcap"
    )


def test_the_page_of_a_frame(kwire: Runs) -> None:
    page = kwire("decode", CAPTURE, "--frame", "465", "--format", "html").text
    assert "<title>HeartbeatResponse v4</title>" in page
    assert _facts(page) == {
        "capture": "evict-stopped.pcap.gz", "packet": "465", "connection": "127.0.0.1:49668>127.0.0.1:9092#1",
        "time": "2026-11-21 08:16:39.158 UTC",
    }  # fmt: skip


def test_the_page_of_several_frames(kwire: Runs) -> None:
    facts = _facts(kwire("decode", CAPTURE, "--frame", "465", "--frame", "306", "--format", "html").text)
    assert facts["packets"] == "306, 465"
    assert facts["time"].count(" to ") == 1
