"""kwire groups: exit statuses, selections, and captures that are not what they should be."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

FOLDER = "fixtures/captures/"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("capture", "status"),
    [
        ("classic.pcap.gz", Exit.MALFORMED),
        ("evict-slow-joiner.pcap.gz", Exit.OK),
        ("consumer848.pcap", Exit.OK),
        ("admin.pcap.gz", Exit.OK),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "svg", "html"])
def test_exit_statuses(capture: str, status: Exit, form: str, kwire: Any) -> None:
    assert kwire("groups", FOLDER + capture, "--format", form).status == status


def test_a_capture_without_kafka(kwire: Any) -> None:
    assert kwire("groups", FOLDER + "notkafka.pcap", "--port", "9099").status == Exit.NOT_KAFKA


def test_a_capture_without_groups(kwire: Any) -> None:
    assert kwire("groups", FOLDER + "admin.pcap.gz").text == "no groups\n"


@pytest.mark.parametrize("pattern", ["shipping", "ship*"])
def test_one_group_of_several(pattern: str, kwire: Any) -> None:
    ran = kwire("groups", FOLDER + "evict-refused-commits.pcap.gz", "--group", pattern, "--format", "json")
    (group,) = json.loads(ran.text)["groups"]
    assert group["group"] == "shipping"
    assert len(group["findings"]) == 1


def test_a_name_that_no_group_has_is_answered_with_those_there_are(kwire: Any) -> None:
    ran = kwire("groups", FOLDER + "evict-refused-commits.pcap.gz", "--group", "ship")
    assert (ran.text, ran.err) == ("no groups\n", "kwire: no group ship; 3 there are: shipping, billing, ledger\n")


@pytest.mark.parametrize("command", ["groups", "trace"])
def test_what_is_encrypted_is_told_where_nothing_else_is_there(command: str, kwire: Any) -> None:
    said = (
        "kwire: 7 connections speak TLS and cannot be read; kwire clients tells of them\n"
        "kwire: 1 connection sent a TLS ClientHello and got no ServerHello: not encrypted\n"
    )
    assert kwire(command, FOLDER + "tls.pcap").err == said


def test_a_page_without_groups_says_so(kwire: Any) -> None:
    text = kwire("groups", FOLDER + "admin.pcap.gz", "--format", "html").text
    assert "<p>no groups</p>" in text
    assert "heartbeat" not in text


def test_the_most_troubled_group_comes_first(kwire: Any) -> None:
    names = FOLDER + "consumer848.pcap", FOLDER + "evict-stopped.pcap.gz"
    ran = kwire("groups", *names, "--format", "json")
    assert [group["group"] for group in json.loads(ran.text)["groups"]] == ["billing", "consumer848-ledger"]


def test_the_frames_named_are_those_of_decode(kwire: Any) -> None:
    capture = FOLDER + "evict-stopped.pcap.gz"
    (group,) = json.loads(kwire("groups", capture, "--format", "json").text)["groups"]
    for ref in group["findings"][0]["evidence"]:
        assert ref["message"].split()[0] in kwire("decode", capture, "--frame", str(ref["frame"])).text


@pytest.mark.slow
def test_damaged_captures_end_in_words(kwire: Any, tmp_path: Path) -> None:
    data = bytearray(gzip.decompress((ROOT / FOLDER / "evict-stopped.pcap.gz").read_bytes()))
    dice = random.Random(7)
    for turn in range(25):
        broken = bytearray(data)
        for _ in range(200):
            broken[dice.randrange(24, len(broken))] = dice.randrange(256)
        path = tmp_path / f"{turn}.pcap"
        path.write_bytes(broken)
        for command in ("groups", "trace"):
            ran = kwire(command, str(path))
            assert "bug in kwire" not in ran.err
            assert ran.status in (Exit.OK, Exit.MALFORMED, Exit.NOT_KAFKA, Exit.USAGE)
