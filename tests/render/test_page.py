"""Reference pages: their parts in order, offsets and examples that are true, and what differs between versions."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import re
from typing import Any

import pytest

from kwire.codec.frames import decode_frame
from kwire.codec.library import builtin_library
from kwire.errors import UnknownName
from kwire.render.jsonform import from_json
from kwire.render.lines import plain
from kwire.render.page import example_lines, page_of, schema_lines
from kwire.render.versions import accepted, changes, diff_lines, first_release
from kwire.schema.model import Definition
from kwire.schema.registry import builtin

EVERY: list[Definition] = [*builtin().apis(), *builtin().data()]
PARTS = ["What is Heartbeat?", "What people trip over", "Related errors", "Wire diagram"]


def _lines(name: str, version: int | None = None, width: int = 100) -> list[str]:
    return [plain(line) for line in page_of(name, version).lines(width)]


def _part(lines: list[str], heading: str) -> list[str]:
    """The lines beneath a heading, up to the next one."""
    start = lines.index(heading) + 1
    end = next((i for i in range(start, len(lines)) if lines[i] and not lines[i].startswith(" ")), len(lines))
    return lines[start:end]


def _headings(lines: list[str]) -> list[str]:
    return [line for line in lines[1:] if line and not line.startswith(" ")]


def test_the_parts_of_a_message_and_of_an_api() -> None:
    assert _headings(_lines("HeartbeatResponse", 4)) == [*PARTS, "Schema", "Example"]
    assert _headings(_lines("Heartbeat")) == [
        *PARTS,
        "Schema of HeartbeatRequest v4",
        "Schema of HeartbeatResponse v4",
        "Example of HeartbeatRequest v4",
        "Example of HeartbeatResponse v4",
        "Versions",
    ]


def test_a_page_without_what_is_true_of_every_version() -> None:
    lines = [plain(line) for line in page_of("HeartbeatResponse", 3).lines(100, words=False)]
    assert lines[0] == "HeartbeatResponse v3"
    assert _headings(lines) == ["Wire diagram", "Schema", "Example"]


def test_the_title_and_the_facts() -> None:
    assert _lines("FetchResponse", 16, 80)[:8] == [
        "FetchResponse v16 · api key 1 · versions 0-18",
        "  area      produce and fetch",
        "  sent      consumer to a partition's leader (or a nearby replica), follower to",
        "            leader, KRaft node to the quorum's leader",
        "  since     Kafka 0.8.0",
        "  KIPs      KIP-13 (v1), KIP-32 (v2), KIP-74 (v3), KIP-98 (v4), KIP-107 (v5),",
        "            KIP-112 (v6), KIP-227 (v7), KIP-219 (v8), KIP-320 (v9), KIP-110",
        "            (v10), KIP-392 (v11), KIP-595 and KIP-482 (v12), KIP-516 (v13),",
    ]


def test_the_wire_diagram_has_the_sections_of_the_decoded_one() -> None:
    rows = [line[:47].rstrip() for line in _part(_lines("OffsetCommitRequest", 8), "Wire diagram") if line[8:9].strip()]
    assert rows[1:] == [
        "  Request Header v2 · flexible",
        "     0  message_size               int32 · 4B",
        "     4  request_api_key            int16 · 2B",
        "     6  request_api_version        int16 · 2B",
        "     8  correlation_id             int32 · 4B",
        "    12  client_id                  string?",
        "        tagged                     var",
        "  OffsetCommitRequest v8",
        "        GroupId                    string (comp",
        "        GenerationIdOrMemberEpoch  int32 · 4B",
        "        MemberId                   string (comp",
        "        GroupInstanceId            string? (com",
        "        Topics                     array",
        "        tagged                     var",
        "  Topics[]",
        "    +0  Name                       string (comp",
        "        Partitions                 array",
        "        tagged                     var",
        "  Topics[].Partitions[]",
        "    +0  PartitionIndex             int32 · 4B",
        "    +4  CommittedOffset            int64 · 8B",
        "   +12  CommittedLeaderEpoch       int32 · 4B",
        "   +16  CommittedMetadata          string? (com",
        "        tagged                     var",
    ]


def test_tagged_rows_name_their_tags_and_known_ones_are_told_from_none() -> None:
    text = "\n".join(_lines("FetchResponse", 16, 140))
    assert re.search(r"^ {8}tagged +var\n {10}NodeEndpoints +array · tag 0 ", text, re.MULTILINE)
    assert re.search(r"^ {2}NodeEndpoints\[\]$", text, re.MULTILINE)
    assert re.search(r"^ {8}tagged +var +no known tags$", text, re.MULTILINE)


@pytest.mark.parametrize("definition", list(builtin().apis()), ids=lambda definition: definition.name)
def test_offsets_are_those_of_frames(definition: Definition, kwire: Any) -> None:
    for message in definition.messages:
        version = message.versions.high
        data = kwire("encode", message.name, "-v", str(version), "{}", "--size").out
        answers = {} if message.kind == "request" else {"api": definition.key, "version": version}
        parts = decode_frame(data, **answers).span.children
        real = [(span.name, span.start) for part in parts for span in (part.children or (part,))]
        diagram = _part(_lines(message.name, version, 140), "Wire diagram")
        fixed = [(line[8:].split()[0], int(line[2:6])) for line in diagram if line[2:6].strip().isdecimal()]
        assert len(fixed) >= 2
        assert fixed == real[: len(fixed)]


@pytest.mark.slow
def test_every_example_is_real() -> None:
    for definition in EVERY:
        for message in definition.messages:
            for version in message.versions.each():
                plan = builtin_library().plan(message.name, version)
                lines = [plain(line) for line in example_lines(plan, 100)]
                text = "\n".join(lines[: lines.index("")])
                command = f"  kwire encode {message.name} -v {version} --hex"
                start = lines.index(command) + 1
                shown = "".join(lines[start : lines.index("", start)]) if "" in lines[start:] else ""
                assert builtin_library().codec(message.name, version).encode(from_json(plan, text)) == bytes.fromhex(
                    shown
                )


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_page_is_wider_than_the_terminal_but_for_the_json_of_its_example(width: int) -> None:
    names = [message.name for definition in EVERY for message in definition.messages]
    wide = [line for name in names for line in _lines(name, width=width) if len(line) > width]
    assert [line for line in wide if not line.lstrip().startswith('"')] == []


def test_the_schema_is_in_the_form_of_json() -> None:
    assert [plain(line) for line in schema_lines(builtin_library().plan("OffsetFetchResponse", 8))] == [
        "  {",
        '    "ThrottleTimeMs": int32',
        '    "Groups": [{',
        '      "GroupId": string',
        '      "Topics": [{',
        '        "Name": string',
        '        "Partitions": [{',
        '          "PartitionIndex": int32',
        '          "CommittedOffset": int64',
        '          "CommittedLeaderEpoch": int32',
        '          "Metadata": string?',
        '          "ErrorCode": int16',
        "        }]",
        "      }]",
        '      "ErrorCode": int16',
        "    }]",
        "  }",
    ]


def test_nulls_and_tags_in_the_schema() -> None:
    lines = [plain(line) for line in schema_lines(builtin_library().plan("FetchRequest", 12))]
    assert '    "ClusterId": string?  (tag 0)' in lines
    assert '    "Topics": [{' in [plain(line) for line in schema_lines(builtin_library().plan("MetadataRequest", 12))]
    assert "    }]?" in [plain(line) for line in schema_lines(builtin_library().plan("MetadataRequest", 12))]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Heartbeat", "Kafka 4.0 and later: v0-4"),
        ("Fetch", "Kafka 4.0: v4-17, 4.1 and later: v4-18"),
        ("LeaderAndIsr", "Kafka 4.0 and later: none, removed"),
        ("OffsetCommitKey", ""),
    ],
)
def test_what_brokers_accept(name: str, said: str) -> None:
    assert accepted(builtin().find(name).definition) == said


def test_versions_and_the_releases_that_brought_them() -> None:
    lines = _part(_lines("Heartbeat"), "Versions")
    assert lines[0].split() == ["version", "Kafka", "what", "it", "brought"]
    assert [line.split()[0] for line in lines[1:] if line.startswith("  v")] == ["v0", "v1", "v2", "v3", "v4"]
    assert _headings(_lines("Heartbeat", 4))[-1] != "Versions"
    assert first_release(builtin().find("Heartbeat").definition, 9) == ""


def test_changes_come_from_the_fields() -> None:
    definition = builtin().find("Heartbeat").definition
    assert list(changes(definition, 1)) == ["response adds ThrottleTimeMs"]
    assert list(changes(definition, 3)) == ["request adds GroupInstanceId"]
    assert list(changes(definition, 4)) == ["request is flexible", "response is flexible"]


def test_two_versions_side_by_side() -> None:
    definition = builtin().find("Fetch").definition
    plans = [builtin_library().plan("FetchRequest", version) for version in (12, 13)]
    lines = [plain(line) for line in diff_lines(definition, definition.messages[0], plans[0], plans[1], 80)]
    assert lines[:2] == ["FetchRequest v12 and v13", "    field                   v12                        v13"]
    assert [line for line in lines if line[2:3] in "+-~" and line[2:3]] == [
        "  -   Topic                 string (compact)",
        "  +   TopicId                                          uuid",
        "  -   Topic                 string (compact)",
        "  +   TopicId                                          uuid",
    ]
    assert lines[-1] == "  v13  Topic names give way to topic ids in request and response (KIP-516)."


@pytest.mark.parametrize(
    ("asked", "title", "was"),
    [
        ("FetchResponse", "FetchResponse v18", None),
        ("fetch_response", "FetchResponse v18", None),
        ("Fetch", "Fetch v18", None),
        ("GroupCoordinatorRequest", "FindCoordinatorRequest v6", "GroupCoordinator"),
        ("OffsetCommitKey", "OffsetCommitKey v0", None),
    ],
)
def test_names(asked: str, title: str, was: str | None) -> None:
    page = page_of(asked)
    assert (page.title, page.was) == (title, was)
    assert str(page).splitlines()[0].startswith(title)
    assert ("once called GroupCoordinator" in str(page)) == (was is not None)


@pytest.mark.parametrize(
    ("name", "version", "complaint"),
    [
        ("FetchRespones", None, "no message FetchRespones; did you mean FetchResponse"),
        ("FetchResponse", 99, "no version 99 of FetchResponse (it has 0-18)"),
    ],
)
def test_unknown_names(name: str, version: int | None, complaint: str) -> None:
    with pytest.raises(UnknownName, match=re.escape(complaint)):
        page_of(name, version)


def test_a_page_as_plain_data() -> None:
    data = page_of("HeartbeatResponse", 4).to_json()
    assert {key: data[key] for key in ("name", "api_key", "area", "since", "listeners")} == {
        "name": "Heartbeat",
        "api_key": 12,
        "area": "classic group",
        "since": "0.9.0",
        "listeners": ["broker"],
    }
    assert {"code": 27, "name": "REBALANCE_IN_PROGRESS"}.items() <= data["errors"][0].items()
    (message,) = data["messages"]
    assert [(field["name"], field["type"], field["size"]) for field in message["fields"]] == [
        ("ThrottleTimeMs", "int32", 4),
        ("ErrorCode", "int16", 2),
    ]
    assert message["example"] == {"ThrottleTimeMs": 0, "ErrorCode": 0}
