"""kwire walk against the embedded broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kwire.testing import Broker

Kwire = Callable[..., Any]
WALK = ["-g", "g", "-t", "t", "--beats", "1"]


def test_steps_are_told_one_by_one(kwire: Kwire) -> None:
    with Broker(topics={"t": 2}) as broker:
        ran = kwire("walk", broker.address, *WALK)
    assert (ran.status, ran.err) == (0, "")
    assert ran.text.splitlines()[0] == f"group g · topic t · classic protocol · from {broker.address}"
    names = ["bootstrap", "coordinator", "join", "sync", "heartbeat", "offsets", "fetch", "leave"]
    heads = [line[12:23].strip() for line in ran.text.splitlines() if line[:8].strip().replace(".", "").isdecimal()]
    assert heads == names
    assert "ok     assigned t 0-1" in ran.text


def test_diagrams_of_all_or_of_one_step(kwire: Kwire) -> None:
    with Broker(topics={"t": 1}) as broker:
        every = kwire("walk", broker.address, *WALK, "-x").text
        one = kwire("walk", broker.address, *WALK, "--step", "4").text
    for api in ("ApiVersions", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch",
                "ListOffsets", "Fetch", "LeaveGroup"):  # fmt: skip
        assert f"\n{api}Request v" in every
        assert f"\n{api}Response v" in every
        assert (f"\n{api}Request v" in one) is (api == "SyncGroup")
    assert "AssignedPartitions" in one


def test_json_is_one_document(kwire: Kwire) -> None:
    with Broker(topics={"t": 1}) as broker:
        ran = kwire("walk", broker.address, *WALK, "--format", "json")
    out = json.loads(ran.text)
    assert (out["group"], out["topic"], out["protocol"], out["failed"], out["interrupted"]) == (
        "g", "t", "classic", False, False,
    )  # fmt: skip
    assert [step["step"] for step in out["steps"]] == [1, 2, 3, 4, 5, 6, 7, 8]
    join = out["steps"][2]["exchanges"][0]
    assert (join["api"], join["response"]["ErrorCode"]) == ("JoinGroup", 79)


def test_an_era(kwire: Kwire) -> None:
    with Broker(topics={"t": 1}) as broker:
        ran = kwire("walk", broker.address, *WALK, "--era", "0.9", "--format", "json")
    spoken = {(row["api"], row["api_version"]) for step in json.loads(ran.text)["steps"] for row in step["exchanges"]}
    assert spoken == {
        ("Metadata", 0), ("FindCoordinator", 0), ("DescribeGroups", 0), ("JoinGroup", 0), ("SyncGroup", 0),
        ("Heartbeat", 0), ("OffsetFetch", 1), ("ListOffsets", 0), ("Fetch", 1), ("LeaveGroup", 0),
    }  # fmt: skip


def test_a_failed_walk_is_status_1(kwire: Kwire) -> None:
    with Broker(topics={"t": 1}, faults=["JoinGroup:error=GROUP_MAX_SIZE_REACHED"]) as broker:
        ran = kwire("walk", broker.address, *WALK)
    assert ran.status == 1
    assert "JoinGroup v9 answers 81 GROUP_MAX_SIZE_REACHED" in ran.text


def test_a_login_for_every_connection(kwire: Kwire) -> None:
    with Broker(nodes=2, topics={"t": 2}, users={"ann": "s3cret"}) as broker:
        login = ["--sasl", "scram-sha-256", "--user", "ann", "--password", "s3cret"]
        ran = kwire("walk", broker.address, *WALK, *login, "-x")
        assert ran.status == 0
        assert "s3cret" not in ran.text
        assert len(broker.requests("SaslHandshake")) >= 2


def test_what_is_waited_for_is_said_to_a_terminal() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from kwire.cli.main import main; main()", "walk"]
    with Broker(topics={"t": 1}) as broker, os.fdopen(ours, "rb", 0) as terminal, os.fdopen(theirs, "wb", 0) as end:
        ran = subprocess.run([*command, broker.address, *WALK], stdout=subprocess.PIPE, stderr=end, timeout=60)
        said = terminal.read(1000)
    assert ran.returncode == 0
    assert said == (
        b"waiting for JoinGroup, answered when all members have joined: at most 65 s\r\x1b[K"
        b"waiting for SyncGroup, answered when the leader has assigned: at most 65 s\r\x1b[K"
    )


def test_the_help_says_how_long_a_join_may_take(kwire: Kwire) -> None:
    assert "at least 65 s" in " ".join(kwire("walk", "--help").text.split())
    assert "65 s" not in kwire("call", "--help").text


def test_a_coordinator_that_moves_is_found_again(kwire: Kwire) -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=["coordinator:move,after=6"]) as broker:
        ran = kwire("walk", broker.address, *WALK[:4], "--beats", "4", "--interval", "1ms", columns=120)
    assert (ran.status, ran.err) == (0, "")
    assert "note   beat 3 of 4, generation 1: 16 NOT_COORDINATOR" in ran.text
    assert "ok     beat 4 of 4, generation 1" in ran.text
    assert "ok     left generation 1" in ran.text


def test_breaking_off_leaves_the_group(kwire: Kwire, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kwire.client.walk.classic.ClassicWalk._beat", lambda *_: interrupt(0))
    with Broker(topics={"t": 1}) as broker:
        ran = kwire("walk", broker.address, *WALK, "--format", "json")
        assert (ran.status, ran.err) == (130, "kwire: interrupted; left group g\n")
        assert len(broker.requests("LeaveGroup")) == 1
    out = json.loads(ran.text)
    assert (out["interrupted"], [step["step"] for step in out["steps"]]) == (True, [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["b", "-g", "g"], "Error: Missing option '-t' / '--topic'."),
        (["b,c:x", "-g", "g", "-t", "t"], "kwire: c:x is no broker's address; as host:9092, or [::1]:9092"),
        (["b", "-g", "g", "-t", "t", "--era", "0.9", "--protocol", "consumer"],
         "Error: --protocol consumer came long after 0.9"),
        (["b", "-g", "g", "-t", "t", "--interval", "999999999999"],
         "Error: --interval and --session-timeout are at most a day"),
    ],
)  # fmt: skip
def test_wrong_usage(kwire: Kwire, arguments: list[str], said: str) -> None:
    ran = kwire("walk", *arguments)
    assert (ran.status, ran.err.splitlines()[-1]) == (2, said)
