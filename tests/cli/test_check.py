"""kwire check: a broker that does as Kafka does passes, and one that does not is told; clients likewise."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire.broker.client_check import HANDLED, NOT_HANDLED, NOT_SEEN
from kwire.client.conformance import REFUSALS
from kwire.errors import Exit
from kwire.testing import Broker

pytestmark = pytest.mark.slow

CLIENT = """
import os, socket, sys
from struct import pack

host, port = os.environ["KWIRE_BROKER"].rsplit(":", 1)

def ask(sock, key, body):
    frame = pack(">hhih", key, 1, 7, 1) + b"c" + body
    sock.sendall(pack(">i", len(frame)) + frame)
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL))
    return sock.recv(size, socket.MSG_WAITALL)

with socket.create_connection((host, int(port)), 30) as sock:
    name = sys.argv[1].encode()
    topic = pack(">i", 1) + pack(">h", len(name)) + name
    for _ in range(int(sys.argv[2])):
        ask(sock, 3, topic)
"""  # asks Metadata of the topic so many times, whatever is answered


@pytest.fixture(scope="module")
def plain() -> tuple[int, dict[str, Any]]:
    """What check says of the embedded broker, with --yes."""
    return _checked("--yes")


def _checked(*options: str, faults: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
    import subprocess

    with Broker(faults=faults) as broker:
        command = [sys.executable, "-m", "kwire", "check", broker.address, "--format", "json", *options]
        ran = subprocess.run(command, capture_output=True, timeout=300, check=False)
    return ran.returncode, json.loads(ran.stdout)


def test_the_embedded_broker_does_as_kafka_does(plain: tuple[int, dict[str, Any]]) -> None:
    status, found = plain
    assert [row for row in (*found["advertised"], *found["refused"]) if row["verdict"] == "differs"] == []
    assert status == Exit.OK
    assert len(found["advertised"]) > 250
    assert [row["what"] for row in found["refused"]] == [one.what for one in REFUSALS]


def test_a_broker_that_does_not_is_told() -> None:
    status, found = _checked(faults=("ListGroups:cut", "DescribeCluster:short=14"))
    assert status == Exit.MALFORMED
    wrong = {row["what"].split(" ")[0] for row in found["advertised"] if row["verdict"] == "differs"}
    assert wrong == {"ListGroups", "DescribeCluster"}
    skipped = {row["what"].split(" ")[0] for row in found["advertised"] if row["verdict"] == "not asked"}
    assert {
        "Produce",
        "CreateTopics",
        "DeleteTopics",
        "JoinGroup",
        "AlterConfigs",
    } <= skipped  # they may change something
    assert {"Metadata", "ApiVersions", "Fetch"}.isdisjoint(skipped)


@pytest.fixture
def client(tmp_path: Path) -> str:
    (tmp_path / "client.py").write_text(CLIENT)
    return f"{sys.executable} {tmp_path / 'client.py'} {{topic}}"


@pytest.mark.parametrize(("times", "verdict"), [(1, NOT_HANDLED), (4, HANDLED)])
def test_a_client_that_asks_again_handles_it(times: int, verdict: str, client: str, kwire: Any) -> None:
    ran = kwire("check", "--client", f"{client} {times}", "--only", "LEADER_NOT_AVAILABLE", "--format", "json")
    [row] = json.loads(ran.text)
    assert row["verdict"] == verdict
    assert ran.status == (Exit.OK if verdict == HANDLED else Exit.MALFORMED)


def test_what_a_client_never_asks_is_not_judged(client: str, kwire: Any) -> None:
    ran = kwire("check", "--client", f"{client} 1", "--only", "OffsetCommit", "--format", "json")
    assert [row["verdict"] for row in json.loads(ran.text)] == [NOT_SEEN]
    assert ran.status == Exit.OK


@pytest.mark.parametrize(
    "arguments",
    [(), ("127.0.0.1:1", "--client", "x"), ("--client", "true", "--only", "nothing like it"), ("--client", "true")],
)
def test_what_cannot_be_checked_is_refused(arguments: tuple[str, ...], kwire: Any) -> None:
    assert kwire("check", *arguments).status == Exit.USAGE
