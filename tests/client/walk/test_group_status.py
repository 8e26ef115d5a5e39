"""What a group is before one joins it."""

from __future__ import annotations

from kwire.client.cluster import ClusterClient
from kwire.client.consumer import ClassicMember, ConsumerConfig
from kwire.client.epochs import EpochMember
from kwire.client.topology import GroupPlace
from kwire.client.walk.group_status import GroupStatus, group_status
from kwire.client.walk.step import Detail
from kwire.testing import Broker


def _look(broker: Broker, era: str | None = None) -> GroupStatus:
    place = GroupPlace(broker.address, "g", "t", ClusterClient(era=era))
    place.find()
    try:
        return group_status(place)
    finally:
        place.cluster.close()


def test_nobody() -> None:
    with Broker(topics={"t": 1}) as broker:
        nobody = GroupStatus("classic", "Dead", 0, Detail("group g: not there yet"))
        assert _look(broker) == nobody
        assert _look(broker, "0.9") == nobody


def test_a_classic_group_with_and_without_its_member() -> None:
    with Broker(topics={"t": 1}) as broker, ClassicMember(broker.address, "g", "t") as member:
        member.find()
        member.join()
        member.sync()
        assert _look(broker) == GroupStatus("classic", "Stable", 1, Detail("group g: Stable, 1 member", "note"))
        member.leave()
        assert _look(broker) == GroupStatus("classic", "Empty", 0, Detail("group g: Empty, 0 members"))


def test_a_group_of_the_consumer_protocol() -> None:
    with Broker(topics={"t": 1}) as broker:
        place = GroupPlace(broker.address, "g", "t", ClusterClient())
        place.find()
        EpochMember(place, ConsumerConfig()).beat()
        seen = _look(broker)
        assert (seen.kind, seen.members) == ("consumer", 1)
        assert seen.detail.text.endswith("1 member, of the consumer protocol (KIP-848)")
        place.cluster.close()


def test_a_broker_that_will_not_say() -> None:
    with Broker(topics={"t": 1}, faults=["DescribeGroups:error=GROUP_AUTHORIZATION_FAILED"]) as broker:
        said = Detail("group g: 30 GROUP_AUTHORIZATION_FAILED", "note")
        assert _look(broker) == GroupStatus("classic", None, 0, said)
