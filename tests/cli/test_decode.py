"""kwire decode: its formats, options and exit statuses, for every real frame and for damaged ones."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from vectors import jsonl

from kwire.codec.identify import identify
from kwire.errors import Exit

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"
FILES = sorted(FRAMES.glob("*.bin"))
JOIN = FRAMES / "JoinGroupResponse.v9.bin"
MEMBER = "transactions-copier-b4568ff9-9137-4cc6-ad3a-276d73be5009"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("form", ["text", "tree", "hex"])
def test_every_frame_fits_a_narrow_terminal(path: Path, form: str, kwire: Any) -> None:
    ran = kwire("decode", str(path), "--format", form, columns=80)
    assert (ran.status, ran.err) == (Exit.OK, "")
    assert [line for line in ran.text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_frame_is_what_its_file_says(path: Path, kwire: Any) -> None:
    name, version = path.stem.split(".")[:2]
    ran = kwire("decode", str(path), "--as", name, "-v", version, "--format", "json")
    row = json.loads(ran.text)
    kind = "request" if name.endswith("Request") else "response"
    assert (row["api"] + row["kind"].capitalize(), f"v{row['api_version']}") == (name, version)
    assert (row["kind"], row["quality"], row["note"]) == (kind, "ok", None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_spans_are_a_line_each_and_cover_the_frame(path: Path, kwire: Any) -> None:
    rows = [json.loads(line) for line in kwire("decode", str(path), "--format", "spans").text.splitlines()]
    outer = [row for row in rows if row["path"] == "message_size" or row["type"] in ("header", "message")]
    assert [row["start"] for row in outer] == [0, *(row["end"] for row in outer[:-1])]
    assert outer[-1]["end"] == path.stat().st_size


def test_a_guess_says_so(kwire: Any) -> None:
    row = json.loads(kwire("decode", str(FRAMES / "HeartbeatResponse.v3.bin"), "--format", "json").text)
    assert row["quality"] == "inferred"
    assert row["readings"][0] == "HeartbeatResponse v1-3"


@pytest.mark.parametrize(("form", "end"), [("svg", "</svg>\n"), ("html", "</html>\n")])
def test_documents_hold_the_diagram_and_need_nothing_else(form: str, end: str, kwire: Any) -> None:
    text = kwire("decode", str(JOIN), "--format", form).text
    assert "<title>JoinGroupResponse v9</title>" in text
    assert f"&quot;{MEMBER}&quot;" in text or f'"{MEMBER}"' in text
    assert text.endswith(end)
    assert re.findall(r"(?:https?:)?//[^\s\"'<>]+", text) in ([], ["http://www.w3.org/2000/svg"])
    assert not re.search(r"<script|@import|url\(|<link|<img", text)


def test_bytes_alone_are_raw_and_among_others_base64(kwire: Any) -> None:
    frame = str(FRAMES / "SyncGroupResponse.v5.bin")
    assert kwire("decode", frame, "--field", "Assignment").out == bytes(10)
    both = kwire("decode", frame, "--field", "Assignment", "--field", "ErrorCode")
    assert both.text == '"AAAAAAAAAAAAAA=="\n0\n'


@pytest.mark.parametrize(
    ("path", "out"),
    [
        ("Members[0].MemberId", MEMBER + "\n"),
        ("members[0].memberid", MEMBER + "\n"),
        ("Members[0].GroupInstanceId", "null\n"),
        ("SkipAssignment", "false\n"),
        ("correlation_id", "6\n"),
        ("Members[0]", None),
    ],
)
def test_a_field_alone(path: str, out: str | None, kwire: Any) -> None:
    text = kwire("decode", str(JOIN), "--field", path).text
    assert text == out if out else json.loads(text)["MemberId"] == MEMBER


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--field", "Members[0].MemberIdd"], "no field Members[0].MemberIdd; did you mean Members[0].MemberId"),
        (["--as", "JoinGroupRespones"], "no message JoinGroupRespones; did you mean JoinGroupResponse"),
        (["--as", "JoinGroupResponse", "-v", "10"], "no version 10 of JoinGroupResponse (it has 0-9)"),
        (["-v", "9"], "-v says the version of what --as names"),
        (["--input", "hex"], "the input is not hex digits"),
        (["--elements", "-1"], "-1 is not in the range x>=1"),
        (["--schema", "nowhere"], "Path 'nowhere' does not exist"),
    ],
)
def test_wrong_usage_is_named(arguments: list[str], complaint: str, kwire: Any) -> None:
    ran = kwire("decode", str(JOIN), *arguments)
    assert complaint in ran.err
    assert (ran.out, ran.status) == (b"", Exit.USAGE)


def test_the_same_bytes_from_a_file_from_stdin_and_as_text(kwire: Any) -> None:
    data = JOIN.read_bytes()
    runs = [kwire("decode", str(JOIN)), kwire("decode", stdin=data), kwire("decode", "-", stdin=data.hex(" ").encode())]
    assert len({ran.out for ran in runs}) == 1


def test_elements_bound_what_is_shown_and_full_lifts_what_is_cut(kwire: Any) -> None:
    frame = str(FRAMES / "ApiVersionsResponse.v0.bin")
    assert "  … " not in kwire("decode", frame).text
    assert kwire("decode", frame, "--elements", "3").text.count("ApiKeys[") == 3
    plain, full = kwire("decode", str(JOIN)).text, kwire("decode", str(JOIN), "--full").text
    assert " …\n" in plain
    assert " …\n" not in full


def test_several_frames_are_told_apart_and_answers_follow_their_requests(kwire: Any) -> None:
    both = (FRAMES / "HeartbeatRequest.v3.bin").read_bytes() + (FRAMES / "HeartbeatResponse.v3.bin").read_bytes()
    documents = kwire("decode", "--format", "json", stdin=both).text.replace("}\n{", "}\0{").split("\0")
    rows = [json.loads(document) for document in documents]
    assert [(row["start"], row["api"], row["kind"], row["quality"]) for row in rows] == [
        (0, "Heartbeat", "request", "ok"),
        (96, "Heartbeat", "response", "ok"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "tree", "hex", "json", "spans", "html"])
def test_damaged_frames_never_fail(form: str, kwire: Any) -> None:
    chance = random.Random(7)
    for path in chance.sample(FILES, 12):
        data = bytearray(path.read_bytes()[:600])
        for _ in range(4):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = bytes(data[: chance.randrange(1, len(data))])
        for given in (bytes(data), cut):
            ran = kwire("decode", "--input", "raw", "--format", form, "--elements", "5", stdin=given)
            assert ran.status in (Exit.OK, Exit.MALFORMED, Exit.NOT_KAFKA)
            assert ran.err == ""


@pytest.mark.slow
def test_no_real_answer_is_taken_for_a_request() -> None:
    for row in jsonl("frames/real"):
        (item,) = identify(bytes.fromhex(row["hex"]))
        assert item.frame
        assert item.frame.kind == ("request" if row["name"].endswith("Request") else "response"), row["name"]


@pytest.mark.parametrize("version", ["0014", "0018"])
def test_a_version_that_is_not_known_yet_keeps_its_header(version: str, kwire: Any) -> None:
    ran = kwire("decode", stdin=f"0000000e 0001 {version} 00000001 0001 61 00 0001".encode())
    assert ran.text.startswith(f"FetchRequest v{int(version, 16)} · 18 bytes · correlation id 1 · client id a\n")
    assert (ran.status, "FetchRequest has versions 0-18" in ran.text) == (Exit.MALFORMED, True)


def test_a_field_of_every_element(kwire: Any) -> None:
    frame = "fixtures/frames/JoinGroupRequest.v9.bin"
    assert kwire("decode", frame, "--field", "Protocols[*].Name").text.split() == ["range", "cooperative-sticky"]
    assert kwire("decode", frame, "--field", "protocols[*].name").text.split() == ["range", "cooperative-sticky"]
    assert (
        "no field Protocls[*].Name; did you mean Protocols["
        in kwire("decode", frame, "--field", "Protocls[*].Name").err
    )
