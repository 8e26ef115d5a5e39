"""A walk's lines, wide and narrow, and text from the wire in them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.render.lines import plain
from kwire.render.walk import head_line, step_lines

START = 1_000_000_000


def _row(**fields: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"step": 3, "name": "join", "time": START + 12_000_000, "took_ns": 5_000_000}
    return row | {"verdict": "ok", "text": "generation 1", "details": [], "advice": None} | fields


def _lines(width: int, asked: Any = (), **fields: Any) -> list[str]:
    return [plain(line) for line in step_lines(_row(**fields), asked, START, width)]


def test_a_step_is_a_line() -> None:
    assert _lines(100) == ["   0.012  3 join         5.0 ms  ok     generation 1"]


def test_what_was_asked_and_seen_stands_beneath() -> None:
    details = [{"text": "one", "verdict": "ok"}, {"text": "  0  k = v", "verdict": "ok"}]
    asked = [("JoinGroup v9", 3_000_000), ("JoinGroup v9", None)]
    assert _lines(100, asked, details=details, advice="Wait.", verdict="error", text="no")[1:] == [
        "          JoinGroup v9 3.0 ms · JoinGroup v9 no answer",
        "          one",
        "            0  k = v",
        "          → Wait.",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    details = [{"text": "detail " * 40, "verdict": "note"}, {"text": "x" * 500, "verdict": "error"}]
    asked = [("ConsumerGroupHeartbeat v1", 3_000_000)] * 40
    lines = _lines(width, asked, details=details, advice="do " * 90, text="word " * 60)
    assert max(map(len, lines)) <= width
    assert any("28 more" in line for line in lines)


def test_the_leaving_has_no_number() -> None:
    assert _lines(100, step=8, name="leave")[0] == "   0.012    leave        5.0 ms  ok     generation 1"


def test_text_from_the_wire_is_shown_and_not_obeyed() -> None:
    hostile = "\x1b[31m\u202e\n[bold]"
    lines = _lines(100, text=hostile, details=[{"text": hostile, "verdict": "ok"}], advice=hostile)
    lines += [plain(line) for line in head_line(hostile, hostile, hostile, "classic", 100)]
    assert all(line.isprintable() for line in lines)
    assert "\\x1b[31m\\u202e\\n[bold]" in lines[0]


def test_the_head() -> None:
    assert [plain(line) for line in head_line("b:1", "g", "t", "classic protocol", 100)] == [
        "group g · topic t · classic protocol · from b:1",
        "",
    ]
