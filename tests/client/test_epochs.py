"""A member of a KIP-848 group: one request for everything."""

from __future__ import annotations

import pytest

from kwire.client.address import Address
from kwire.client.cluster import ClusterClient
from kwire.client.connection import BrokerConnection
from kwire.client.consumer import ConsumerConfig
from kwire.client.epochs import EpochMember
from kwire.client.exchange import Body
from kwire.client.failure import Refusal
from kwire.client.producer import produce
from kwire.client.topology import GroupPlace
from kwire.testing import Broker


def _member(broker: Broker) -> EpochMember:
    place = GroupPlace(broker.address, "g", "t", ClusterClient())
    place.find()
    return EpochMember(place, ConsumerConfig())


def _asked(member: EpochMember) -> list[Body]:
    taken = member.place.cluster.take()
    bodies = [exchange.frames()[0][0].body for exchange in taken if exchange.api == "ConsumerGroupHeartbeat"]
    return [body for body in bodies if body is not None]


def test_joining_reading_leaving() -> None:
    with Broker(topics={"t": 2}) as broker:
        with BrokerConnection.open(Address.parse(broker.address)) as connection:
            produce(connection, "t", 1, [(None, b"x")])
        member = _member(broker)
        first = member.beat()
        assert first.epoch > 0
        assert first.interval_ms > 0
        assert len(member.member) == 22
        while not member.reader.partitions:
            member.beat()
        assert member.reader.partitions == [("t", 0), ("t", 1)]
        assert member.owes
        member.beat()
        assert not member.owes
        assert [polled.record.value for polled in member.reader.poll()] == [b"x"]
        assert member.leave() == 0
        assert _asked(member)[-1]["MemberEpoch"] == -1
        member.place.cluster.close()


def test_what_is_owned_is_told_once() -> None:
    with Broker(topics={"t": 1}) as broker:
        member = _member(broker)
        for _ in range(4):
            member.beat()
        told = [body["TopicPartitions"] for body in _asked(member)]
        assert told[0] == []
        assert [row["Partitions"] for row in told[1]] == [[0]]
        assert told[2:] == [None, None]
        member.place.cluster.close()


def test_a_fenced_member_learns_it() -> None:
    with Broker(topics={"t": 1}) as broker:
        member = _member(broker)
        member.beat()
        broker.fault("ConsumerGroupHeartbeat:error=FENCED_MEMBER_EPOCH,times=1")
        with pytest.raises(Refusal) as caught:
            member.beat()
        assert caught.value.code == 110
        member.place.cluster.close()
