"""The diagram: sections, rows, and what happens to values, names and bytes that do not fit."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from typing import Any

import pytest
from vectors import FIXTURES, jsonl

import kwire
from kwire.codec.frames import decode_frame
from kwire.codec.secrets import conceal
from kwire.render.diagram import DiagramOptions, diagram
from kwire.render.lines import plain
from kwire.schema.registry import builtin


def _text(name: str, version: int, message: dict[str, Any] | bytes, **options: Any) -> list[str]:
    data = message if isinstance(message, bytes) else kwire.encode(name, version, message)
    tree = conceal(kwire.annotate(name, version, data), builtin().message(name))
    return [plain(line) for line in diagram(tree, data, DiagramOptions(**{"width": 80, **options}))]


def test_the_diagram_of_the_design() -> None:
    data = bytes.fromhex("0000000c 00000007 00 00000000 001b 00")
    frame = decode_frame(data, api="Heartbeat", version=4)
    assert [plain(line) for line in diagram(frame.span, data, DiagramOptions(width=100))] == [
        "  off  field           type          value                     bytes",
        "Response Header v1 · flexible",
        "    0  message_size    int32 · 4B    12                        00 00 00 0c",
        "    4  correlation_id  int32 · 4B    7                         00 00 00 07",
        "    8  tagged          var · 1B      none                      00",
        "HeartbeatResponse v4",
        "    9  ThrottleTimeMs  int32 · 4B    0                         00 00 00 00",
        "   13  ErrorCode       int16 · 2B    27 REBALANCE_IN_PROGRESS  00 1b",
        "       ╰ The group is rebalancing: the member must rejoin with JoinGroup, then SyncGroup.",
        "   15  tagged          var · 1B      none                      00",
    ]


def test_structs_follow_in_sections_under_their_paths() -> None:
    message = {
        "Topics": [{"Name": "orders", "Partitions": [{"PartitionIndex": 3}, {"PartitionIndex": 4}]}, {"Name": "x"}]
    }
    titles = [line for line in _text("ListOffsetsRequest", 6, message) if not line.startswith("  ")]
    assert titles == [
        "ListOffsetsRequest v6",
        'Topics[0] · "orders"',
        "Topics[0].Partitions[0] · PartitionIndex 3",
        "Topics[0].Partitions[1] · PartitionIndex 4",
        'Topics[1] · "x"',
    ]


def test_a_long_label_is_cut_within_its_quotes() -> None:
    lines = _text("ListOffsetsRequest", 6, {"Topics": [{"Name": "n" * 41}, {"Name": "n" * 40}]})
    assert [line for line in lines if line.startswith("Topics")] == [
        'Topics[0] · "' + "n" * 39 + '…"',
        'Topics[1] · "' + "n" * 40 + '"',
    ]


def test_elements_that_are_no_structs_are_rows() -> None:
    lines = _text("DescribeGroupsRequest", 5, {"Groups": ["a", "b", "c"]}, elements=2)
    assert lines[1:6] == [
        "DescribeGroupsRequest v5",
        "    0  Groups                 []string          3 elements           04",
        '    1    [0]                  string (compact)  "a"                  02 61',
        '    3    [1]                  string (compact)  "b"                  02 62',
        "    5    … 1 more",
    ]


def test_tagged_fields_name_their_tags_and_hold_structs() -> None:
    message = {"ClusterId": "c", "ReplicaState": {"ReplicaId": 1}, "_tagged": {99: b"xy"}}
    lines = _text("FetchRequest", 16, message, width=100)
    assert lines[11:] == [
        "   24  tagged               var · 1B           3 fields                  03",
        '   25    ClusterId  string? (compact) · tag 0  "c"                       00 02 02 63',
        "   29    ReplicaState       struct · tag 1     15 bytes                  01 0d",
        '   44    tag 99             tag                2 bytes "xy"              63 02 78 79',
        "       ╰ unknown tag",
        "ReplicaState",
        "   31  ReplicaId            int32 · 4B         1                         00 00 00 01",
        "   35  ReplicaEpoch         int64 · 8B         -1                        ff ff ff ff ff ff ff ff",
        "   43  tagged               var · 1B           none                      00",
    ]


@pytest.mark.parametrize(
    ("group", "rows"),
    [
        ("g" * 17, ['    0  GroupId          string        "ggggggggggggggggg"  00 11 67 …']),
        ("g" * 25, ['    0  GroupId          string        "ggggggggggggggggggggggggg"', " " * 59 + "00 19 67 …"]),
        (
            "g" * 40,
            ["    0  GroupId          string                             00 28 67 …", '       "' + "g" * 40 + '"'],
        ),
        (
            "two words here wrap",
            ['    0  GroupId          string        "two words here      00 13 74 …', " " * 38 + 'wrap"'],
        ),
    ],
)
def test_a_value_is_not_cut_amid_a_word(group: str, rows: list[str]) -> None:
    lines = _text("HeartbeatRequest", 3, {"GroupId": group}, width=70)
    start = next(index for index, line in enumerate(lines) if "GroupId" in line)
    assert lines[start : start + len(rows)] == rows


def test_prose_goes_beneath_and_is_cut_after_four_lines_unless_all_is_asked_for() -> None:
    message = {"ErrorMessage": " ".join(["word"] * 100)}
    short, full = _text("FindCoordinatorResponse", 2, message), _text("FindCoordinatorResponse", 2, message, full=True)
    assert sum("word" in line for line in short) == 4
    assert [line for line in short if "word" in line][-1].endswith("…")
    assert sum(line.count("word") for line in full) == 100
    assert max(map(len, short + full)) <= 80


def test_full_shows_all_bytes_beneath_their_row() -> None:
    assert _text("SyncGroupResponse", 3, {"Assignment": bytes(range(20))}, full=True)[-3:] == [
        "    6  Assignment      bytes         20 bytes",
        "       00 00 00 14 00 01 02 03 04 05 06 07 08 09 0a 0b",
        "       0c 0d 0e 0f 10 11 12 13",
    ]


def test_secrets_are_withheld_from_the_bytes_too() -> None:
    for full in (False, True):
        text = "\n".join(_text("SaslAuthenticateRequest", 2, {"AuthBytes": b"\x00alice\x00secret"}, full=full))
        assert "··" in text
        assert b"secret".hex(" ") not in text
        assert "secret" not in text.replace("--show-secrets", "")


def test_a_name_that_is_too_long_has_a_line_to_itself() -> None:
    lines = _text("MetadataRequest", 8, {"Topics": []})
    assert lines[-4:] == [
        "    5  IncludeClusterAuthorizedOperations",
        "                                  bool · 1B     false                00",
        "    6  IncludeTopicAuthorizedOperations",
        "                                  bool · 1B     false                00",
    ]


def test_notes_are_shown_when_asked_for() -> None:
    plain_lines, noted = _text("HeartbeatResponse", 3, {}), _text("HeartbeatResponse", 3, {}, notes=True)
    assert [line for line in plain_lines if "╰" in line] == []
    assert "       ╰ How long the client's connection is muted because of a quota, ms." in noted


def test_what_could_not_be_read_ends_the_diagram() -> None:
    assert _text("HeartbeatResponse", 3, b"\x00\x00\x00\x00\x00")[-2:] == [
        "    4  ErrorCode       undecoded · 1B                            00",
        "       ╰ needs 2 bytes at offset 4, has 1",
    ]


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    for row in jsonl("frames/real")[::3]:
        data = bytes.fromhex(row["hex"])
        kind = (
            {}
            if row["name"].endswith("Request")
            else {"api": row["name"].removesuffix("Response"), "version": row["version"]}
        )
        frame = decode_frame(data, **kind)
        for full in (False, True):
            lines = [plain(line) for line in diagram(frame.span, data, DiagramOptions(width, full=full, elements=3))]
            assert [line for line in lines if len(line) > width and line.startswith(" ")] == []


def test_full_shows_every_byte_of_every_frame_once() -> None:
    for path in sorted((FIXTURES / "frames").glob("*.bin")):
        data = path.read_bytes()
        name, version = path.stem.split(".")[:2]
        answers = (
            {} if name.endswith("Request") else {"api": name.removesuffix("Response"), "version": int(version[1:])}
        )
        shown, at = bytearray(len(data)), 0
        count = 0
        for line in diagram(decode_frame(data, **answers).span, data, DiagramOptions(100, full=True)):
            for text, style in line:
                if style == "offset":
                    at = int(text)
                elif style == "bytes":
                    raw = bytes.fromhex(text)
                    shown[at : at + len(raw)] = raw
                    at, count = at + len(raw), count + len(raw)
        assert (bytes(shown), count) == (data, len(data))


def test_elements_bound_the_batches_of_a_log_too(kwire: Any) -> None:
    log = str(next((FIXTURES / "logs" / "share-jobs-1").glob("*.log")))
    titles = [line for line in kwire("decode", log, "-x", "--elements", "2").text.splitlines() if line.startswith("[")]
    assert [title.split(" · ")[0] for title in titles] == [
        "[0]",
        "[0].Records[0]",
        "[1]",
        "[1].Records[0]",
        "[1].Records[1]",
    ]
