"""What decode shows of an item: title, remarks, views; and the same as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.codec.identify import Item, identify, identify_as
from kwire.codec.library import builtin_library
from kwire.errors import UnknownName
from kwire.render.decoded import find, item_lines, record, span_rows
from kwire.render.lines import plain

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"
HEARTBEAT = (FRAMES / "HeartbeatRequest.v3.bin").read_bytes()
ANSWER = (FRAMES / "HeartbeatResponse.v3.bin").read_bytes()
JOIN = (FRAMES / "JoinGroupResponse.v9.bin").read_bytes()


def _items(data: bytes, name: str | None = None, version: int | None = None) -> list[Item]:
    if name is None:
        return identify(data)
    found = builtin_library().registry.find(name)
    return identify_as(data, found.definition, found.message, version)


def _head(data: bytes, name: str | None = None, version: int | None = None, width: int = 80) -> list[str]:
    """The lines above the view."""
    (item,) = _items(data, name, version)
    lines = [plain(line) for line in item_lines(item, item.span, data, "text", width, False, False, 0)]
    return lines[: lines.index("")] if "" in lines else lines


@pytest.mark.parametrize(
    ("data", "name", "version", "lines"),
    [
        (HEARTBEAT, None, None, ["HeartbeatRequest v3 · 96 bytes · correlation id 7 · client id classic-c1"]),
        (HEARTBEAT[4:], None, None, ["HeartbeatRequest v3 · 92 bytes · correlation id 7 · client id classic-c1"]),
        (ANSWER, "HeartbeatResponse", 3, ["HeartbeatResponse v3 · 14 bytes · correlation id 7"]),
        (
            ANSWER[4:],
            "HeartbeatResponse",
            3,
            ["HeartbeatResponse v3 · 10 bytes · correlation id 7", "  no size prefix"],
        ),
        (ANSWER[8:], "HeartbeatResponse", 3, ["HeartbeatResponse v3 · 6 bytes", "  a body alone, without a header"]),
        (
            JOIN,
            None,
            None,
            [
                "JoinGroupResponse v9 · 248 bytes · correlation id 6",
                "  inferred: nothing in the bytes names the message.",
            ],
        ),
        (
            b"\x00\x01a\x00\x01t\x00\x00\x00\x02",
            "OffsetCommitKey",
            None,
            ["OffsetCommitKey v0 · 10 bytes"],
        ),
        (
            ANSWER[:3] + b"\x0b" + ANSWER[4:] + b"\xff",
            "HeartbeatResponse",
            3,
            [
                "HeartbeatResponse v3 · 15 bytes · correlation id 7",
                "  trailing: HeartbeatResponse v3: 1 byte left over behind the message",
            ],
        ),
        (
            bytes(4) + b"\x00",
            "HeartbeatResponse",
            3,
            [
                "HeartbeatResponse v3 · 5 bytes",
                "  a body alone, without a header",
                "  malformed: HeartbeatResponse v3: ErrorCode: needs 2 bytes at offset 4, has 1",
            ],
        ),
        (
            b"SSH-2.0-OpenSSH_9.6\r\n",
            None,
            None,
            [
                "not Kafka: SSH · 21 bytes",
                "  SSH-2.0-OpenSSH_9.6",
                "  This is an SSH server or client.",
                "  A broker that is sent this logs: Invalid receive (size = 1397966893 larger",
                "  than 104857600)",
            ],
        ),
    ],
)
def test_titles_and_remarks(data: bytes, name: str | None, version: int | None, lines: list[str]) -> None:
    assert _head(data, name, version) == lines


def test_what_else_fits_is_named() -> None:
    lines = _head(ANSWER)
    assert lines[1] == "  inferred: nothing in the bytes names the message. v1 to v3 read the same."
    assert " ".join(line.strip() for line in lines[2:]).startswith("also fits: LeaveGroupResponse v1-2, ")
    assert lines[-1].endswith(" (--as NAME -v N)")


def test_a_title_that_is_too_long_goes_on_beneath() -> None:
    assert _head(HEARTBEAT, width=60) == ["HeartbeatRequest v3 · 96 bytes · correlation id 7", "  client id classic-c1"]


def test_a_client_id_that_is_hostile_or_empty_is_shown() -> None:
    hostile = HEARTBEAT[:14] + b"\x1b[31mabcde" + HEARTBEAT[24:]
    assert _head(hostile, "HeartbeatRequest", 3)[0].endswith(" · client id \\x1b[31mabcde")
    empty = bytes.fromhex("0012 0000 00000001 0000")
    assert _head(len(empty).to_bytes(4, "big") + empty)[0].endswith(' · client id ""')


@pytest.mark.parametrize(
    ("view", "first"),
    [
        ("text", "  off  field                type          value                      bytes"),
        ("tree", " 0–96  HeartbeatRequest v3"),
        ("hex", "0000  00 00 00 5c 00 0c 00 03  ...\\....  message_size request_api_key"),
        ("svg", "  off  field                type          value                      bytes"),
    ],
)
def test_views(view: str, first: str) -> None:
    (item,) = _items(HEARTBEAT)
    lines = [plain(line) for line in item_lines(item, item.span, HEARTBEAT, view, 80, False, False, 0)]
    assert lines[2] == first


@pytest.mark.parametrize(("full", "count"), [(False, 256), (True, 400)])
def test_what_is_not_recognized_is_shown_as_bytes(full: bool, count: int) -> None:
    data = b"\xfe" * 400
    (item,) = _items(data)
    lines = [plain(line) for line in item_lines(item, item.span, data, "text", 80, full, False, 0)]
    assert lines[0] == "not recognized · 400 bytes"
    assert sum(line.count("fe") for line in lines) == count
    assert (lines[-1] == "      … 144 bytes more (--full)") == (not full)


def test_a_frame_as_plain_data() -> None:
    (item,) = _items(HEARTBEAT)
    assert record(item, item.span) == {
        "start": 0,
        "size": 96,
        "kind": "request",
        "api_key": 12,
        "api": "Heartbeat",
        "api_version": 3,
        "header_version": 1,
        "correlation_id": 7,
        "client_id": "classic-c1",
        "quality": "ok",
        "note": None,
        "body": {
            "GroupId": "classic-billing",
            "GenerationId": 2,
            "MemberId": "classic-c1-db903c9c-50f1-457c-8674-828b3281ea7c",
            "GroupInstanceId": None,
        },
    }


@pytest.mark.parametrize(
    ("data", "name", "some"),
    [
        (ANSWER, None, {"quality": "inferred", "api": "Heartbeat", "body": {"ThrottleTimeMs": 0, "ErrorCode": 0}}),
        (ANSWER[8:], "HeartbeatResponse", {"message": "HeartbeatResponse", "version": 3}),
        (b"SSH-2.0-x\r\n", None, {"quality": "opaque", "not_kafka": "SSH", "detail": "SSH-2.0-x"}),
        (b"?" * 40, None, {"quality": "opaque", "note": None, "body": None}),
        (
            bytes(5),
            "HeartbeatResponse",
            {"quality": "malformed", "note": "needs 2 bytes at offset 4, has 1", "body": {"ThrottleTimeMs": 0}},
        ),
    ],
)
def test_other_items_as_plain_data(data: bytes, name: str | None, some: dict[str, Any]) -> None:
    (item,) = _items(data, name, 3 if name and data != ANSWER else None)
    row = record(item, item.span)
    assert {key: row.get(key) for key in some} == some


def test_spans_as_rows() -> None:
    item = _items(HEARTBEAT + ANSWER)[1]
    assert list(span_rows(item, item.span))[-2:] == [
        {"item": 96, "path": "ThrottleTimeMs", "type": "int32", "start": 8, "end": 12, "value": 0},
        {"item": 96, "path": "ErrorCode", "type": "int16", "start": 12, "end": 14, "value": 0},
    ]
    (broken,) = _items(bytes(5), "HeartbeatResponse", 3)
    assert list(span_rows(broken, broken.span))[-1]["note"] == "needs 2 bytes at offset 4, has 1"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("correlation_id", 6),
        ("ErrorCode", 0),
        ("members[0].memberid", "transactions-copier-b4568ff9-9137-4cc6-ad3a-276d73be5009"),
        ("Members", 1),
    ],
)
def test_a_field_is_found_by_its_path(path: str, value: object) -> None:
    (found,) = find([item.span for item in _items(JOIN)], path)
    assert found.value == value


def test_a_field_that_is_not_there_gets_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"^no field Member\[0\]\.MemberId; did you mean Members\[0\]\.MemberId"):
        find([item.span for item in _items(JOIN)], "Member[0].MemberId")
