"""kwire trace: exit statuses, selections, JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

FOLDER = "fixtures/captures/"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["classic.pcap.gz"], Exit.OK),
        (["evict-fenced.pcap.gz"], Exit.MALFORMED),
        (["evict-fenced.pcap.gz", "--client-id", "usurper"], Exit.OK),
        (["notkafka.pcap", "--port", "9099"], Exit.NOT_KAFKA),
    ],
)
def test_exit_statuses(arguments: list[str], status: Exit, kwire: Any) -> None:
    assert kwire("trace", FOLDER + arguments[0], *arguments[1:]).status == status


def test_consumers_of_a_group(kwire: Any) -> None:
    ran = kwire("trace", FOLDER + "evict-refused-commits.pcap.gz", "--group", "ledger", "--format", "json")
    found = json.loads(ran.text)["consumers"]
    assert [one["client_id"] for one in found] == ["second", "transactional"]
    assert [step["name"] for step in found[0]["steps"]] == [
        "metadata",
        "coordinator",
        "join",
        "assignment",
        "heartbeat",
        "offsets",
        "fetch",
    ]


def test_no_consumer(kwire: Any) -> None:
    assert kwire("trace", FOLDER + "admin.pcap.gz", "--client-id", "nobody").text == "no consumer\n"


def test_a_name_that_nobody_has_is_answered_with_those_there_are(kwire: Any) -> None:
    ran = kwire("trace", FOLDER + "classic.pcap.gz", "--client-id", "classic-c9")
    there = "kwire: no consumer with client id classic-c9; 2 there are: classic-c2, classic-c1\n"
    assert (ran.text, ran.err) == ("no consumer\n", there)


def test_what_others_say_after_it_counts_for_one_client_too(kwire: Any, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(gzip.decompress((ROOT / FOLDER / "classic.pcap.gz").read_bytes())[:60_000])
    ran = kwire("trace", str(cut), "--client-id", "classic-c2", "--format", "json")
    (one,) = json.loads(ran.text)["consumers"]
    assert one["verdict"]["severity"] == "warning"
    assert one["verdict"]["what"] == "says nothing since 5.745 (frame 281), for 5.7 s"


def test_a_silent_stretch_is_no_usual_interval(kwire: Any) -> None:
    ran = kwire("trace", FOLDER + "classic.pcap.gz", "--client-id", "classic-c2", columns=160)
    assert "UNKNOWN_MEMBER_ID 1× · every 1.0 s, at most 9.8 s, last at 22.243" in ran.text
