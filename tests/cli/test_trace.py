"""kwire trace: exit statuses, selections, JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.errors import Exit

FOLDER = "fixtures/captures/"


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
