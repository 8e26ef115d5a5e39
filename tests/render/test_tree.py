"""The tree: a line a span, in the order of the bytes, cut at the width."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwire
from kwire.codec.frames import decode_frame
from kwire.codec.span import Span
from kwire.render.lines import plain
from kwire.render.tree import tree

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"


def _lines(span: Span, width: int = 80) -> list[str]:
    return [plain(line) for line in tree(span, width)]


def test_a_frame() -> None:
    frame = decode_frame(bytes.fromhex("0000000c 00000007 00 00000000 001b 00"), api="Heartbeat", version=4)
    assert _lines(frame.span) == [
        " 0–16  HeartbeatResponse v4",
        " 0–4   ├─ message_size int32 · 4B 12",
        " 4–9   ├─ Response Header v1 · flexible",
        " 4–8   │  ├─ correlation_id int32 · 4B 7",
        " 8–9   │  └─ tagged var · 1B none",
        " 9–16  └─ HeartbeatResponse v4",
        " 9–13     ├─ ThrottleTimeMs int32 · 4B 0",
        "13–15     ├─ ErrorCode int16 · 2B 27 REBALANCE_IN_PROGRESS",
        "15–16     └─ tagged var · 1B none",
    ]


def test_elements_nest() -> None:
    data = kwire.encode("ListOffsetsRequest", 1, {"Topics": [{"Name": "orders", "Partitions": [{}]}]})
    assert _lines(kwire.annotate("ListOffsetsRequest", 1, data)) == [
        " 0–32  ListOffsetsRequest v1",
        " 0–4   ├─ ReplicaId int32 · 4B 0",
        " 4–32  └─ Topics array 1 element",
        " 8–32     └─ [0] struct 24 bytes",
        ' 8–16        ├─ Name string "orders"',
        "16–32        └─ Partitions array 1 element",
        "20–32           └─ [0] struct 12 bytes",
        "20–24              ├─ PartitionIndex int32 · 4B 0",
        "24–32              └─ Timestamp int64 · 8B 0",
    ]


def test_what_could_not_be_read_says_why_and_notes_wrap() -> None:
    lines = _lines(kwire.annotate("HeartbeatResponse", 4, bytes(5)), 40)
    assert lines[-3:] == [
        "4–5  └─ ErrorCode undecoded · 1B",
        "        ╰ needs 2 bytes at offset 4, has",
        "          1",
    ]


def test_tagged_fields_nest_beneath_their_tags() -> None:
    data = kwire.encode("FetchRequest", 12, {"ClusterId": "c", "_tagged": {99: b"xy"}})
    assert [line.strip() for line in _lines(kwire.annotate("FetchRequest", 12, data))[-6:]] == [
        "28–37  └─ tagged var · 1B 2 fields",
        "29–33     ├─ ClusterId string? (compact)",
        '31–33     │  └─ ClusterId string? (compact) "c"',
        '33–37     └─ tag 99 tag 2 bytes "xy"',
        "╰ unknown tag",
        '35–37        └─ tag 99 bytes · 2B 2 bytes "xy"',
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for path in FRAMES.glob("*Request*.bin"):
        assert [line for line in _lines(decode_frame(path.read_bytes()).span, width) if len(line) > width] == []


def test_a_value_without_room_is_left_out() -> None:
    inner: Span = Span("Value", "string", 0, 4, "text")
    for _ in range(10):
        inner = Span("[0]", "struct", 0, 4, None, (inner,))
    ends = {54: 'Value string "text"', 52: 'Value string "te…', 49: "Value string", 47: "Value"}
    assert {width: _lines(inner, width)[-1].partition("└─ ")[2] for width in ends} == ends
