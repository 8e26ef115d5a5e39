"""Clients of other languages, where they are at hand: Java's console tools, franz-go, kafkajs.

KWIRE_LAB is a folder with jars/ of Kafka's own clients and tools. franz-go must be in Go's module cache (nothing is
fetched), kafkajs where node finds it (NODE_PATH).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kwire.testing import Broker

HERE = Path(__file__).parent
LAB = Path(os.environ.get("KWIRE_LAB", ""), "jars")
TOOLS = "org.apache.kafka.tools."


def run(*command: str, given: str = "", cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=120, cwd=cwd, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip()


# ---------------------------------------------------------------- Java


def java(broker: Broker, tool: str, *arguments: str, given: str = "") -> str:
    base = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{LAB}/*"]
    return run(*base, tool, "--bootstrap-server", broker.address, *arguments, given=given)


needs_java = pytest.mark.skipif(
    not (os.environ.get("KWIRE_LAB") and LAB.is_dir() and shutil.which("java")), reason="needs Java and KWIRE_LAB"
)


@needs_java
@pytest.mark.java
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_tools(protocol: str) -> None:
    with Broker() as broker:
        java(broker, TOOLS + "TopicCommand", "--create", "--topic", "t", "--partitions", "3")
        assert "PartitionCount: 3" in java(broker, TOOLS + "TopicCommand", "--describe", "--topic", "t")
        java(broker, TOOLS + "ConsoleProducer", "--topic", "t", given="one\ntwo\nthree\n")
        consume = ["--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "3"]
        options = ["--command-property", f"group.protocol={protocol}"]
        out = java(broker, TOOLS + "consumer.ConsoleConsumer", *consume, *options)
        assert sorted(out.splitlines()[-3:]) == ["one", "three", "two"]
        groups = TOOLS + "consumer.group.ConsumerGroupCommand"
        assert java(broker, groups, "--list") == "g"
        assert "t  " in java(broker, groups, "--describe", "--group", "g")


@needs_java
@pytest.mark.java
def test_admin_tools() -> None:
    with Broker(topics={"t": 1}) as broker:
        what = ["--entity-type", "topics", "--entity-name", "t"]
        java(broker, "kafka.admin.ConfigCommand", "--alter", *what, "--add-config", "retention.ms=7")
        assert "retention.ms=7" in java(broker, "kafka.admin.ConfigCommand", "--describe", *what)
        java(broker, TOOLS + "TopicCommand", "--alter", "--topic", "t", "--partitions", "2")
        assert len(broker.server.state.cluster.topics["t"].partitions) == 2
        java(broker, TOOLS + "TopicCommand", "--delete", "--topic", "t")
        assert broker.server.state.cluster.topics == {}


COUNT = 140  # records of a share group


@needs_java
@pytest.mark.java
@pytest.mark.parametrize("nodes", [1, 3])
def test_two_workers_share_the_records_and_each_is_decided_once(nodes: int) -> None:
    with Broker(nodes=nodes) as broker:
        said = run("java", "-Xmx256m", "-cp", f"{LAB}/*", str(HERE / "ShareWorkers.java"), broker.address, str(COUNT))
    rejected = len(range(0, COUNT, 7))
    assert f"{COUNT - rejected} accepted, {rejected} rejected, 0 twice\nEmpty\nlag 0" in said


@needs_java
@pytest.mark.java
def test_console_tools_of_share_groups() -> None:
    groups, job = TOOLS + "consumer.group.ShareGroupCommand", ["--group", "g", "--topic", "t"]
    with Broker(topics={"t": 1}) as broker:
        java(broker, TOOLS + "ConsoleProducer", "--topic", "t", given="one\ntwo\nthree\n")
        java(broker, groups, "--reset-offsets", *job, "--to-earliest", "--execute")
        out = java(broker, TOOLS + "consumer.ConsoleShareConsumer", *job, "--max-messages", "3")
        assert out.splitlines()[:3] == ["one", "two", "three"]
        assert java(broker, groups, "--list") == "g"
        row = java(broker, groups, "--describe", "--group", "g").splitlines()[-1].split()
        assert (row[:3], row[-1]) == (["g", "t", "0"], "0")
        assert "Successful" in java(broker, groups, "--delete-offsets", *job)
        assert "successful" in java(broker, groups, "--delete", "--group", "g")


# ---------------------------------------------------------------- Go


@pytest.fixture(scope="module")
def franz(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("go") is None:
        pytest.skip("needs go")
    made = tmp_path_factory.mktemp("franz") / "franz"
    build = ["go", "build", "-o", str(made), "."]
    done = subprocess.run(
        build, cwd=HERE / "franz", env={**os.environ, "GOPROXY": "off"}, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip("franz-go is not in Go's module cache")
    return str(made)


@pytest.mark.parametrize("protocol", [[], ["next"]], ids=["classic", "consumer"])
def test_franz_go(franz: str, protocol: list[str]) -> None:
    with Broker(topics={"t": 1}) as broker:
        assert run(franz, broker.address, *protocol) == "100 1 Stable"
        assert len(broker.log("t")) == 100
        assert [event.kind for event in broker.events()].count("left") == 1


# ---------------------------------------------------------------- JavaScript


def test_kafkajs() -> None:
    if (
        shutil.which("node") is None
        or subprocess.run(["node", "-e", "require('kafkajs')"], capture_output=True).returncode
    ):
        pytest.skip("needs node, and kafkajs where it finds it")
    with Broker() as broker:
        assert run("node", str(HERE / "kafkajs" / "group.js"), broker.address) == "100 Stable 1"
        assert len(broker.log("t", 0)) + len(broker.log("t", 1)) == 100
