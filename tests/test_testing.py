"""kwire.testing as a test's author meets it: the fixture, the handle, and what they say when misused."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import socket
from pathlib import Path
from struct import pack

import pytest

from kwire.errors import KwireError
from kwire.records import build
from kwire.testing import Broker, broker

pytest_plugins = ["pytester"]
__all__ = ["broker"]


def heartbeat(address: str) -> int:
    """Sends Heartbeat v0 and gives the error code of its answer."""
    host, _, port = address.rpartition(":")
    frame = pack(">hhih", 12, 0, 7, -1) + pack(">h1sih1s", 1, b"g", 1, 1, b"m")
    with socket.create_connection((host, int(port)), 10) as sock:
        sock.sendall(pack(">i", len(frame)) + frame)
        answer = sock.recv(100)
    return int.from_bytes(answer[8:10], signed=True)


def test_the_fixture_is_a_running_broker(broker: Broker) -> None:
    assert heartbeat(broker.address) == 25
    assert [seen.api for seen in broker.requests()] == ["Heartbeat"]


@pytest.mark.parametrize("broker", [{"nodes": 2, "topics": {"t": 3}}], indirect=True)
def test_its_settings_come_from_the_test(broker: Broker) -> None:
    assert len(broker.addresses) == 2
    assert broker.log("t", 2) == []


def test_faults_and_hooks(broker: Broker) -> None:
    broker.fault("Heartbeat:error=REBALANCE_IN_PROGRESS,times=1")
    assert [heartbeat(broker.address), heartbeat(broker.address)] == [27, 25]
    with broker.control("Heartbeat", lambda request: {"ErrorCode": 14 if request.body["GroupId"] == "g" else 0}):
        assert heartbeat(broker.address) == 14
    assert [event.text for event in broker.events("fault")] == [
        "Heartbeat: Heartbeat:error=REBALANCE_IN_PROGRESS,times=1",
        "Heartbeat: answered by a hook on Heartbeat",
    ]


def test_what_is_misused_is_explained(broker: Broker) -> None:
    with pytest.raises(KwireError, match="no partition t-9"):
        broker.log("t", 9)
    with pytest.raises(KwireError, match="this broker runs already"):
        broker.start()
    with pytest.raises(KwireError, match="this broker has not been started"):
        _ = Broker().address
    with pytest.raises(KwireError, match="no action nothing"):
        Broker(faults=["Fetch:nothing"])
    broker.create_topic("t")
    with pytest.raises(KwireError, match="Topic 't' already exists"):
        broker.create_topic("t")


def test_what_happened_can_be_read_after_the_end() -> None:
    with Broker(topics={"t": 1}) as made:
        heartbeat(made.address)
    made.stop()
    assert len(made.requests("Heartbeat")) == 1
    assert made.log("t") == []


@pytest.mark.parametrize("how", ["from kwire.testing import broker", 'pytest_plugins = ["kwire.testing"]'])
def test_both_ways_to_the_fixture(pytester: pytest.Pytester, how: str) -> None:
    pytester.makeconftest(how)
    pytester.makepyfile("def test_it(broker):\n    assert broker.address.startswith('127.0.0.1:')\n")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_capture_is_whole_when_the_block_ends(tmp_path: Path) -> None:
    import kwire

    with Broker(capture=tmp_path / "c.pcapng") as made:
        heartbeat(made.address)
    (exchange,) = kwire.read(tmp_path / "c.pcapng")
    assert (exchange.api, exchange.error) == ("Heartbeat", 25)


def test_what_a_reader_of_committed_records_sees(broker: Broker) -> None:
    broker.create_topic("t")

    def write(value: bytes, producer: int) -> None:
        log = broker.server.state.cluster.topics["t"].partitions[0].log
        who = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "is_transactional": producer >= 0}
        log.append(build([(None, value)], **(who if producer >= 0 else {})), 0, 0)

    def end(producer: int, commit: bool) -> None:
        broker.server.state.cluster.topics["t"].partitions[0].log.mark(producer, 1, commit, 0, 2, 0, 0)

    for act in (
        lambda: write(b"aborted", 1), lambda: write(b"kept", 2), lambda: end(1, False), lambda: end(2, True),
        lambda: write(b"plain", -1), lambda: write(b"open", 3),
    ):  # fmt: skip
        broker.thread.call(act)
    assert [record.value for record in broker.log("t")] == [b"aborted", b"kept", b"plain", b"open"]
    assert [record.value for record in broker.log("t", committed=True)] == [b"kept", b"plain"]


def test_an_era_brings_its_rules_for_groups_as_the_command_does() -> None:
    with Broker(era=(0, 9)) as made:
        assert made.server.state.groups.coordinator.settings.era == (0, 9)
    with Broker() as made:
        assert made.server.state.groups.coordinator.settings.era == (4, 3)
