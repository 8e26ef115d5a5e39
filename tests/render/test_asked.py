"""Frames of an exchange with a broker: diagrams, records, the line above them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.client.exchange import request_frame
from kwire.codec.frames import decode_frame
from kwire.codec.library import builtin_library
from kwire.render.asked import call_line, clock, frame_lines, frame_record, took_text
from kwire.render.lines import plain

LIBRARY = builtin_library()


def _frame(api: str, version: int, body: dict[str, Any]) -> tuple[Any, bytes]:
    data = request_frame(LIBRARY, api, version, body, 7, "me")
    return decode_frame(data, size=True), data


@pytest.mark.parametrize(
    ("ns", "text"), [(40_000, "0.0 ms"), (1_260_000, "1.3 ms"), (12_400_000, "12 ms"), (3_049_000_000, "3.0 s")]
)
def test_how_long_it_took(ns: int, text: str) -> None:
    assert took_text(ns) == text


def test_the_clock_is_utc() -> None:
    assert clock(1_767_225_600_250_000_000) == "00:00:00.250"


@pytest.mark.parametrize(("took", "text"), [(1_000_000, "answered in 1.0 ms"), (None, "no answer is due")])
def test_who_asked_whom(took: int | None, text: str) -> None:
    about = {"client": "a:1", "broker": "b:2", "time": 1_767_225_600_000_000_000, "took_ns": took}
    assert plain(call_line(about, 100)[0]) == f"a:1 → b:2 · 00:00:00.000 · {text}"


@pytest.mark.parametrize("view", ["text", "tree", "hex"])
def test_secrets_are_withheld_in_every_view(view: str) -> None:
    frame, data = _frame("SaslAuthenticate", 2, {"AuthBytes": b"\0ann\0s3cret"})
    shown = "\n".join(plain(line) for line in frame_lines(frame, data, LIBRARY, view, 100))
    assert "s3cret" not in shown
    assert b"s3cret".hex(" ") not in shown
    open_ = "\n".join(plain(line) for line in frame_lines(frame, data, LIBRARY, view, 100, show_secrets=True))
    assert "s3cret" in open_


def test_a_record_says_what_the_header_says() -> None:
    frame, data = _frame("Heartbeat", 4, {"GroupId": "g"})
    row = frame_record(frame, data, LIBRARY)
    assert (row["api"], row["api_version"], row["correlation_id"], row["client_id"]) == ("Heartbeat", 4, 7, "me")
    assert row["body"]["GroupId"] == "g"
    assert row["quality"] == "ok"
    assert "start" not in row
