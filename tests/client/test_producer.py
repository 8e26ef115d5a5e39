"""Produce, one batch at a time."""

from __future__ import annotations

import pytest

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.failure import Refusal
from kwire.client.producer import produce
from kwire.errors import KwireError
from kwire.testing import Broker


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive(compression: str) -> None:
    with Broker(topics={"t": 2}) as broker, BrokerConnection.open(Address.parse(broker.address)) as connection:
        records = [(b"k", b"one"), (None, b"two"), (b"gone", None)]
        assert produce(connection, "t", 1, records, compression=compression, timestamp=1767225600000).offset == 0
        assert produce(connection, "t", 1, [(None, b"four")]).offset == 3
        assert [(row.key, row.value) for row in broker.log("t", 1)] == [*records, (None, b"four")]
        assert broker.log("t", 1)[0].timestamp == 1767225600000


def test_without_an_answer() -> None:
    with Broker(topics={"t": 1}) as broker, BrokerConnection.open(Address.parse(broker.address)) as connection:
        assert produce(connection, "t", 0, [(None, b"x")], acks=0).offset == -1
        assert produce(connection, "t", 0, [(None, b"y")]).offset == 1


def test_a_refusal() -> None:
    fault = "Produce:error=NOT_LEADER_OR_FOLLOWER"
    with (
        Broker(topics={"t": 1}, faults=[fault]) as broker,
        BrokerConnection.open(Address.parse(broker.address)) as connection,
        pytest.raises(Refusal, match=r"^Produce v12: 6 NOT_LEADER_OR_FOLLOWER") as caught,
    ):
        produce(connection, "t", 0, [(None, b"x")])
    assert caught.value.exchange.api == "Produce"


def test_a_compression_that_there_is_none() -> None:
    with (
        Broker() as broker,
        BrokerConnection.open(Address.parse(broker.address)) as connection,
        pytest.raises(KwireError, match=r"^unknown compression rar"),
    ):
        produce(connection, "t", 0, [(None, b"x")], compression="rar")
