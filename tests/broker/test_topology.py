"""Nodes that come and go, and what that does to leaders, in-sync sets and logs."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import BrokerSettings
from kwire.broker.nodes import NodeSetup
from kwire.broker.partition import OFFLINE, Partition
from kwire.broker.refused import Refused
from kwire.broker.topology import Election, Topology
from kwire.errors import KwireError
from kwire.schema import codes


@pytest.fixture
def socketless(make_socketless: Any) -> Any:
    return make_socketless(
        BrokerSettings(setups=(NodeSetup(5, rack="a"), NodeSetup(7, rack="b"), NodeSetup(9, rack="b")))
    )


def replicated(socketless: Any, replicas: list[int]) -> tuple[Topology, Partition]:
    topic = socketless.state.cluster.create("r", -1, -1, [replicas])
    return socketless.state.topology, topic.partitions[0]


def produced(socketless: Any, partition: Partition, *values: bytes, acks: int = -1) -> Any:
    from kwire.records import build

    part = {"Index": 0, "Records": build([(None, value) for value in values])}
    body = {"Acks": acks, "TimeoutMs": 1000, "TopicData": [{"Name": "r", "PartitionData": [part]}]}
    answer = socketless.ask("Produce", 9, body, node=partition.leader)
    return answer["Responses"][0]["PartitionResponses"][0]


def fetched(socketless: Any, node: int, offset: int = 0, version: int = 12, rack: str = "", **part: Any) -> Any:
    body = socketless.fetch_body("r", offset) | {"RackId": rack}
    body["Topics"][0]["Partitions"][0] |= part
    return socketless.ask("Fetch", version, body, node=node)["Responses"][0]["Partitions"][0]


def test_a_node_that_goes_down_is_followed_by_one_in_sync(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 7, 9])
    assert (partition.leader, partition.in_sync, partition.epoch) == (5, [5, 7, 9], 0)
    topology.down(5)
    topology.down(5)
    assert (partition.leader, partition.in_sync, partition.epoch) == (7, [7, 9], 1)
    answer = socketless.ask("Metadata", 12, {"Topics": [{"Name": "r"}]}, node=7)
    assert [(row["NodeId"], row["Rack"]) for row in answer["Brokers"]] == [(7, "b"), (9, "b")]
    (row,) = answer["Topics"][0]["Partitions"]
    assert (row["ReplicaNodes"], row["IsrNodes"], row["OfflineReplicas"]) == ([5, 7, 9], [7, 9], [5])
    topology.up(5)
    assert (partition.leader, partition.in_sync) == (7, [5, 7, 9])


def test_the_last_one_in_sync_is_waited_for(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 7])
    topology.down(7)
    topology.down(5)
    assert (partition.leader, partition.in_sync) == (OFFLINE, [5])
    row = socketless.ask("Metadata", 12, {"Topics": [{"Name": "r"}]}, node=9)["Topics"][0]["Partitions"][0]
    assert (row["ErrorCode"], row["LeaderId"]) == (codes.LEADER_NOT_AVAILABLE, -1)
    topology.up(7)
    assert partition.leader == OFFLINE
    topology.up(5)
    assert (partition.leader, partition.in_sync) == (5, [5, 7])


def test_an_unclean_leader_cuts_the_log_to_what_it_had(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 7])
    produced(socketless, partition, b"both", b"have", b"these")
    topology.set_in_sync(partition, [5])
    assert produced(socketless, partition, b"only 5 has this")["BaseOffset"] == 3
    topology.down(5)
    assert partition.leader == OFFLINE
    with pytest.raises(Refused) as refused:
        topology.asked_to_elect(partition, Election.PREFERRED)
    assert refused.value.code == codes.PREFERRED_LEADER_NOT_AVAILABLE
    topology.asked_to_elect(partition, Election.UNCLEAN)
    assert (partition.leader, partition.log.end, partition.epoch) == (7, 3, 2)
    topology.up(5)
    assert partition.in_sync == [5, 7]
    assert produced(socketless, partition, b"another")["BaseOffset"] == 3
    diverging = fetched(socketless, 7, 4, CurrentLeaderEpoch=2, LastFetchedEpoch=0)
    assert diverging["DivergingEpoch"] == {"Epoch": 0, "EndOffset": 3}
    ends = {"Topics": [{"Topic": "r", "Partitions": [{"Partition": 0, "CurrentLeaderEpoch": 2, "LeaderEpoch": 0}]}]}
    row = socketless.ask("OffsetForLeaderEpoch", 4, ends, node=7)["Topics"][0]["Partitions"][0]
    assert (row["LeaderEpoch"], row["EndOffset"]) == (0, 3)


def test_unclean_elections_may_be_allowed(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 7])
    socketless.state.cluster.configs.change(2, "r", [("unclean.leader.election.enable", 0, "true")])
    topology.set_in_sync(partition, [5])
    topology.down(5)
    assert (partition.leader, partition.in_sync) == (7, [7])


def test_acks_of_all_need_enough_in_sync(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 7])
    socketless.state.cluster.configs.change(2, "r", [("min.insync.replicas", 0, "2")])
    assert produced(socketless, partition, b"x")["ErrorCode"] == 0
    topology.set_in_sync(partition, [5])
    assert produced(socketless, partition, b"x")["ErrorCode"] == codes.NOT_ENOUGH_REPLICAS
    assert produced(socketless, partition, b"x", acks=1)["ErrorCode"] == 0
    topology.set_in_sync(partition, [5, 7])
    assert produced(socketless, partition, b"x")["ErrorCode"] == 0


def test_consumers_are_sent_to_the_replica_in_their_rack(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 9])
    produced(socketless, partition, b"x")
    assert fetched(socketless, 5)["PreferredReadReplica"] == -1
    sent = fetched(socketless, 5, rack="b")
    assert (sent["PreferredReadReplica"], sent["Records"]) == (9, b"")
    assert fetched(socketless, 5, rack="a")["Records"]
    assert fetched(socketless, 9, rack="b")["Records"]
    assert fetched(socketless, 9, version=10)["ErrorCode"] == codes.NOT_LEADER_OR_FOLLOWER
    assert fetched(socketless, 7)["ErrorCode"] == codes.NOT_LEADER_OR_FOLLOWER
    topology.set_in_sync(partition, [5])
    assert fetched(socketless, 5, rack="b")["PreferredReadReplica"] == -1


def test_a_replica_that_is_behind_gives_what_it_has(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 9])
    produced(socketless, partition, b"x")
    topology.set_in_sync(partition, [5])
    produced(socketless, partition, b"y")
    assert len(fetched(socketless, 9)["Records"]) < len(fetched(socketless, 5)["Records"])
    assert fetched(socketless, 9, 1)["Records"] == b""


def test_nodes_are_added_and_removed(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5])
    topology.add(2)
    assert list(socketless.state.cluster.nodes) == [5, 7, 9, 2]
    topology.remove(5)
    assert (partition.replicas, partition.leader) == ([7], 7)
    topology.remove(9)
    topology.remove(7)
    assert (partition.replicas, partition.leader) == ([2], 2)
    for act, why in (
        (lambda: topology.remove(2), "node 2 is the last one"),
        (lambda: topology.add(2), "there is a node 2"),
        (lambda: topology.add(-1), "-1 is no node's id"),
        (lambda: topology.down(3), "there is no node 3; there is node 2 alone"),
    ):
        with pytest.raises(KwireError, match=why):
            act()


def test_what_cannot_be(socketless: Any) -> None:
    topology, partition = replicated(socketless, [5, 7])
    for nodes, why in (([5, 9], "node 9 is no replica"), ([7], "node 5 leads and is always in sync")):
        with pytest.raises(KwireError, match=why):
            topology.set_in_sync(partition, nodes)
    topology.down(7)
    with pytest.raises(KwireError, match="node 7 is down"):
        topology.lead(partition, 7)
    topology.take_offline(partition)
    assert partition.leader == OFFLINE
    topology.lead(partition, 5)
    assert (partition.leader, partition.epoch) == (5, 2)


def test_the_coordinator_of_a_node_that_is_down_is_another(socketless: Any) -> None:
    cluster, topology = socketless.state.cluster, socketless.state.topology
    first = cluster.coordinator("g")
    topology.down(first)
    second = cluster.coordinator("g")
    assert second != first
    asked = {"KeyType": 0, "CoordinatorKeys": ["g"]}
    assert socketless.ask("FindCoordinator", 4, asked, node=second)["Coordinators"][0]["NodeId"] == second
    topology.up(first)
    assert cluster.coordinator("g") == first
    other = next(node for node in cluster.nodes if node not in (first, second))
    socketless.state.groups.move("g", other)
    assert cluster.coordinator("g") == other
    for node in list(cluster.nodes):
        topology.down(node)
    assert cluster.coordinator("g") == -1
    assert socketless.ask("FindCoordinator", 4, asked, node=5)["Coordinators"][0]["ErrorCode"] == 15


@pytest.mark.parametrize("api", ["Heartbeat", "JoinGroup"])
def test_a_group_is_being_loaded(socketless: Any, api: str) -> None:
    node = socketless.state.cluster.coordinator("g")
    socketless.faults.add("coordinator:loading=2s")
    body = {"GroupId": "g", "MemberId": "", "GenerationId": 1, "ProtocolType": "consumer", "Protocols": [],
            "SessionTimeoutMs": 6000, "RebalanceTimeoutMs": 6000}  # fmt: skip
    codes = []
    for _ in range(2):
        codes.append(socketless.ask(api, 4, body, node=node)["ErrorCode"])
        socketless.clock.run(2_001)
    assert codes == ([0, 25] if api == "Heartbeat" else [14, 23])


def test_a_node_goes_down_by_a_fault_and_comes_back(socketless: Any) -> None:
    _, partition = replicated(socketless, [5, 7])
    socketless.faults.add("Produce,topic=r:down=5s")
    assert produced(socketless, partition, b"x")["ErrorCode"] == codes.NOT_LEADER_OR_FOLLOWER
    assert (partition.leader, socketless.state.cluster.alive) == (7, [7, 9])
    socketless.clock.run(5_001)
    assert socketless.state.cluster.alive == [5, 7, 9]


def test_producers_are_known_by_what_is_left_of_the_log(socketless: Any) -> None:
    from kwire.records import build

    _, partition = replicated(socketless, [5])
    log = partition.log
    for number in range(4):
        log.append(build([(None, b"x")], producer_id=8, producer_epoch=0, base_sequence=number), 0, 1_000 + number)
    log.append(build([(None, b"t")], producer_id=9, producer_epoch=1, base_sequence=0, is_transactional=True), 0, 2_000)
    log.mark(9, 1, False, 0, 1, 0, 2_001)
    log.append(build([(None, b"t")], producer_id=9, producer_epoch=1, base_sequence=1, is_transactional=True), 0, 2_000)
    aborted = list(log.producers.aborted)
    log.truncate(6)
    assert (log.end, log.producers.first_open, log.producers.aborted) == (6, None, aborted)
    assert log.producers.known[9].epoch == 1
    log.truncate(5)
    assert (log.producers.first_open, log.producers.aborted) == (4, [])
    log.truncate(2)
    assert log.append(build([(None, b"y")], producer_id=8, producer_epoch=0, base_sequence=2), 0, 3_000)[0] == 2
    assert log.latest_time().offset == 0
