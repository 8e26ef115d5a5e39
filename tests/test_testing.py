"""kwire.testing as a test's author meets it: the fixture, the handle, and what they say when misused."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from struct import pack

import pytest

from kwire.errors import KwireError, OptionError
from kwire.records import build
from kwire.testing import Broker, Cluster, HookFailed, NodeSetup, broker

pytest_plugins = ["pytester"]
__all__ = ["broker"]


def heartbeat(address: str) -> int:
    """Sends Heartbeat v0 and gives the error code of its answer."""
    host, _, port = address.rpartition(":")
    frame = pack(">hhih", 12, 0, 7, -1) + pack(">h1sih1s", 1, b"g", 1, 1, b"m")
    with socket.create_connection((host, int(port)), 60) as sock:
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


def test_a_fault_ends_with_its_block_and_counts(broker: Broker) -> None:
    with broker.fault("Heartbeat:error=REBALANCE_IN_PROGRESS,after=1") as fault:
        assert [heartbeat(broker.address), heartbeat(broker.address)] == [25, 27]
    assert heartbeat(broker.address) == 25
    assert (fault.came, fault.met) == (2, 1)
    assert str(fault) == "Heartbeat:error=REBALANCE_IN_PROGRESS,after=1"
    fault.remove()  # of what is gone already
    later = broker.fault("Heartbeat:error=NOT_COORDINATOR")
    assert heartbeat(broker.address) == 16
    later.remove()
    assert heartbeat(broker.address) == 25


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


@pytest.mark.parametrize("topics", [{"a": 1, "b": 3}, ["a", "b:3"], ("a:1", "b:3")])
def test_topics_are_named_as_a_mapping_or_as_the_command_names_them(topics: object) -> None:
    with Broker(topics=topics) as made:
        assert [made.log("a"), made.log("b", 2)] == [[], []]


def test_a_text_alone_is_one_of_it() -> None:
    made = Broker(topics="b:3", super_users="admin", faults="Produce:cut", listeners="PLAINTEXT://127.0.0.1:0")
    assert made.settings.topics == (("b", 3),)
    assert made.settings.super_users == ("admin",)
    assert [rule.text for rule in made.faults.rules] == ["Produce:cut"]
    assert [each.name for each in made.settings.listeners] == ["PLAINTEXT"]
    with pytest.raises(KwireError, match="topic b:x: write NAME:PARTITIONS"):
        Broker(topics=["b:x"])


def test_an_api_that_there_is_not_is_never_asked_for(broker: Broker) -> None:
    for ask in (broker.requests, broker.wait_for):
        with pytest.raises(KwireError, match="no message Prodce; did you mean Produce"):
            ask("Prodce")
    assert broker.requests("produce") == []


def test_topics_are_made_with_a_configuration(broker: Broker) -> None:
    broker.create_topic("t", config={"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
    configs = broker.server.state.cluster.configs
    assert configs.topic("t", "cleanup.policy") == "compact"
    with pytest.raises(KwireError, match=r"[Uu]nknown topic config name: cleanup\.polcy"):
        broker.create_topic("u", config={"cleanup.polcy": "compact"})
    with pytest.raises(KwireError, match="no partition u-0"):
        broker.log("u")


def test_a_certificate_is_only_where_there_is_tls(broker: Broker) -> None:
    with pytest.raises(KwireError, match=r"no TLS"):
        _ = broker.certificate_file


def test_a_broker_says_where_it_is() -> None:
    made = Broker(nodes=2)
    assert repr(made) == "Broker, not started"
    with made:
        assert repr(made) == f"Broker at {made.address},{made.addresses[1]}"
    assert repr(made).startswith("Broker, stopped, at 127.0.0.1:")


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
    assert Broker(era="3.9").settings.era == (3, 9)
    with Broker() as made:
        assert made.server.state.groups.coordinator.settings.era == (4, 3)
    for unknown in ("9.9", (5, 0), "new"):
        with pytest.raises(OptionError):
            Broker(era=unknown)


def test_nodes_stop_and_start_at_the_same_port_with_the_same_log() -> None:
    with Cluster(topics={"t": 1}) as made:
        part = made.partition("t")
        assert (part.leader, sorted(part.replicas)) == (part.replicas[0], [1, 2, 3])
        leader = made.node(part.leader)
        address = leader.address
        leader.kill()
        assert not leader.alive
        with pytest.raises(ConnectionRefusedError):
            heartbeat(address)
        assert part.leader != leader.id
        assert leader.id not in part.in_sync
        assert leader.start().address == address
        assert heartbeat(address) in (16, 25)
        assert sorted(part.in_sync) == [1, 2, 3]
        made.node(part.leader).kill(notice=30)
        assert made.node(part.leader).alive


def test_connections_of_a_node_that_stops_end() -> None:
    with Broker(nodes=[4, 8]) as made, socket.create_connection(("127.0.0.1", int(made.addresses[1][10:])), 60) as sock:
        sock.sendall(pack(">ihhih", 10, 18, 0, 7, -1))
        assert sock.recv(1000)
        made.node(8).stop()
        assert sock.recv(1000) == b""
        assert [event.text for event in made.events("node")] == ["stops"]


def test_nodes_are_added_moved_to_and_removed() -> None:
    with Broker(topics={"t": 2}, nodes=[NodeSetup(3, rack="a")]) as made:
        added = made.add_node(9, rack="b")
        assert heartbeat(added.address) in (16, 25)
        assert (added.rack, repr(added)) == ("b", f"node 9 at {added.address}")
        made.partition("t").lead(9)
        made.move_coordinator("g", 9)
        assert (made.partition("t").leader, made.coordinator("g")) == (9, 9)
        made.partition("t").in_sync = [9]
        made.partition("t", 1).take_offline()
        assert (made.partition("t").in_sync, made.partition("t", 1).leader) == ([9], -1)
        made.remove_node(9)
        assert [node.id for node in made.nodes] == [3]
        with pytest.raises(KwireError, match="there is no node 9; there is node 3 alone"):
            made.node(9)


def test_several_listeners_with_addresses_of_their_own() -> None:
    listeners = ["PLAINTEXT://127.0.0.1:0", "OUT=SASL_PLAINTEXT://127.0.0.1:0,advertise=outside:19092"]
    with Broker(listeners=listeners, users={"u": "p"}) as made:
        assert made.node(1).address_of("OUT") == "outside:19092"
        assert heartbeat(made.address) == 25
        with pytest.raises(KwireError, match="no listener SSL; there are PLAINTEXT, OUT"):
            made.node(1).address_of("SSL")


def test_a_cluster_of_nodes_with_ids() -> None:
    with Cluster([4, 7], topics={"t": 1}) as made:
        assert sorted(made.partition("t").replicas) == [4, 7]
        made.node(4).kill()
        made.node(7).kill()
        assert repr(made.partition("t")).startswith("t-0, offline since epoch ")


def test_a_cluster_is_a_broker_with_copies() -> None:
    with Cluster(2, config={"num.partitions": 4}) as made:
        made.create_topic("one", replicas=1)
        assert (len(made.partition("one").replicas), len(made.nodes)) == (1, 2)


def test_requests_are_waited_for(broker: Broker) -> None:
    heartbeat(broker.address)
    assert len(broker.wait_for("Heartbeat")) == 1
    with pytest.raises(KwireError, match=r"1 of 2 Heartbeat requests came within 0\.01 s"):
        broker.wait_for("Heartbeat", 2, timeout=0.01)


def test_a_broker_in_an_async_program() -> None:
    async def main() -> int:
        async with Broker() as made:
            return await asyncio.to_thread(heartbeat, made.address)

    assert asyncio.run(main()) == 25


def test_a_hook_that_raises_fails_its_block() -> None:
    def hook(_: object) -> None:
        raise LookupError("nothing there")

    def use() -> None:
        with Broker() as made:
            made.control("Heartbeat", hook)
            heartbeat(made.address)

    with pytest.raises(HookFailed, match=r"the hook on Heartbeat at .*test_testing.py:\d+ raised LookupError: nothing"):
        use()


@pytest.mark.parametrize("name", ["broker", "cluster", "module_broker", "session_broker"])
def test_a_hook_that_raises_fails_the_test_that_set_it(pytester: pytest.Pytester, name: str) -> None:
    pytester.makeconftest(f"from kwire.testing import {name}")
    pytester.makepyfile(
        f"""
        from kwire.client.address import Address
        from kwire.client.connection import BrokerConnection
        from kwire.errors import Failure

        def ask({name}):
            with BrokerConnection.open(Address.parse({name}.address)) as connection:
                try:
                    connection.request("ListGroups", 4, {{}})
                except Failure:
                    pass

        def test_bad({name}):
            {name}.control("ListGroups", lambda request: request.nothing)
            ask({name})

        def test_good({name}):
            ask({name})
        """
    )
    ran = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["*the hook on ListGroups at *:13 raised AttributeError: *nothing*"])


def test_a_broker_for_a_whole_file_keeps_what_is_in_it(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from kwire.testing import module_broker")
    pytester.makepyfile(
        """
        def test_one(module_broker):
            module_broker.create_topic("t")
            module_broker.fault("Produce:cut")

        def test_two(module_broker):
            assert module_broker.log("t") == []
            assert module_broker.faults.rules == []
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
