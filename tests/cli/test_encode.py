"""kwire encode: JSON from everywhere, bytes with and without a header, and every real frame back to its bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"
FILES = sorted(FRAMES.glob("*.bin"))
MESSAGE = '{"GroupId": "billing", "GenerationId": 3}'
BODY = bytes.fromhex("0862696c6c696e6700000003010000")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_real_frame_goes_to_json_and_back(path: Path, kwire: Any) -> None:
    name, version = path.stem.split(".")[:2]
    row = json.loads(kwire("decode", str(path), "--as", name, "-v", version, "--format", "json", "--show-secrets").text)
    more = ["--correlation-id", str(row["correlation_id"])]
    if row["client_id"] is not None:
        more += ["--client-id", row["client_id"]]
    ran = kwire("encode", name, "-v", version, "--size", *more, stdin=json.dumps(row["body"]).encode())
    assert ran.out == path.read_bytes()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_json_from_an_argument_a_file_and_stdin(mark: bytes, kwire: Any, tmp_path: Path) -> None:
    file = tmp_path / "message.json"
    file.write_bytes(mark + MESSAGE.encode())
    assert kwire("encode", "HeartbeatRequest", "-v", "4", MESSAGE).out == BODY
    assert kwire("encode", "HeartbeatRequest", "-v", "4", f"@{file}").out == BODY
    assert kwire("encode", "HeartbeatRequest", "-v", "4", stdin=mark + MESSAGE.encode()).out == BODY
    assert kwire("encode", "HeartbeatRequest", "-v", "4", "-", stdin=mark + MESSAGE.encode()).out == BODY


@pytest.mark.parametrize(
    ("name", "version", "arguments", "head"),
    [
        ("HeartbeatRequest", "4", [], ""),
        ("HeartbeatRequest", "4", ["--header"], "000c 0004 00000000 0005 6b77697265 00"),
        ("HeartbeatRequest", "3", ["--header", "--client-id", "me"], "000c 0003 00000000 0002 6d65"),
        ("ControlledShutdownRequest", "0", ["--header", "--correlation-id", "7"], "0007 0000 00000007"),
        ("HeartbeatResponse", "4", ["--header", "--correlation-id", "-1"], "ffffffff 00"),
        ("HeartbeatResponse", "3", ["--header", "--correlation-id", "7"], "00000007"),
        ("ApiVersionsResponse", "4", ["--header", "--correlation-id", "7"], "00000007"),
    ],
)
def test_the_header_in_front(name: str, version: str, arguments: list[str], head: str, kwire: Any) -> None:
    body = kwire("encode", name, "-v", version, "{}").out
    assert kwire("encode", name, "-v", version, "{}", *arguments).out == bytes.fromhex(head) + body


def test_the_size_is_that_of_all_behind_it(kwire: Any) -> None:
    head = kwire("encode", "HeartbeatRequest", "-v", "4", MESSAGE, "--header").out
    sized = kwire("encode", "HeartbeatRequest", "-v", "4", MESSAGE, "--size").out
    assert sized == len(head).to_bytes(4, "big") + head


def test_hex_comes_in_lines_of_24_pairs(kwire: Any) -> None:
    text = kwire(
        "encode", "HeartbeatRequest", "-v", "4", '{"GroupId": "a group of forty characters: 1234567890"}', "--hex"
    ).text
    assert [len(line) for line in text.splitlines()] == [71, 68]


@pytest.mark.parametrize(
    ("arguments", "stdin", "complaint"),
    [
        (["HeartbeatRequest", "-v", "4", "[]"], b"", "HeartbeatRequest v4: needs an object with fields, has []"),
        (["HeartbeatRequest", "-v", "4"], b"", "no JSON: it comes from an argument, @FILE or stdin"),
        (["HeartbeatRequest", "-v", "4"], b"{", "HeartbeatRequest v4: not JSON: "),
        (["HeartbeatRequest", "-v", "4"], b"\xff", "the JSON is not UTF-8: byte 0 is ff"),
        (["HeartbeatRequest", "-v", "4"], b"[" * 200_000, "HeartbeatRequest v4: not JSON: "),
        (
            ["HeartbeatRequest", "-v", "4", '{"GroupID": ""}'],
            b"",
            "GroupID: no such field in HeartbeatRequest v4; did you mean",
        ),
        (["Heartbeat", "-v", "4", '{"Nope": 1}'], b"", "Nope: no such field in HeartbeatRequest v4"),
        (["OffsetCommitKey", "-v", "0", "{}", "--size"], b"", "OffsetCommitKey travels without a header"),
        (["HeartbeatRequest", "-v", "4", "@nowhere"], b"", "nowhere: No such file or directory"),
    ],
)
def test_what_does_not_fit_is_named(arguments: list[str], stdin: bytes, complaint: str, kwire: Any) -> None:
    ran = kwire("encode", *arguments, stdin=stdin)
    assert complaint in ran.err
    assert (ran.out, ran.status) == (b"", Exit.USAGE)


def test_old_names_lead_to_the_same_message(kwire: Any) -> None:
    old, new = (
        kwire("encode", name, "-v", "0", '{"Key": "g"}')
        for name in ("GroupCoordinatorRequest", "FindCoordinatorRequest")
    )
    assert old.out == new.out == b"\x00\x01g"


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}", "HeartbeatRequest"), ('{"GroupId": "g"}', "HeartbeatRequest"), ('{"ErrorCode": 27}', "HeartbeatResponse"),
     ('{"ThrottleTimeMs": 5, "ErrorCode": 0}', "HeartbeatResponse")],
)  # fmt: skip
def test_an_apis_name_is_the_message_that_has_the_fields(text: str, message: str, kwire: Any) -> None:
    meant = kwire("encode", "Heartbeat", "-v", "4", text)
    assert (meant.status, meant.out) == (0, kwire("encode", message, "-v", "4", text).out)
