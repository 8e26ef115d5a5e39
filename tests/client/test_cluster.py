"""Connections by address, and the versions of an era."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.cluster import ERAS, ClusterClient
from kwire.codec.library import builtin_library
from kwire.errors import Failure, KwireError
from kwire.testing import Broker


def test_a_connection_is_opened_once_and_again_when_it_broke() -> None:
    with Broker() as broker:
        cluster, address = ClusterClient(), Address.parse(broker.address)
        first = cluster.connect(address)
        assert cluster.connect(address) is first
        first.close()
        assert cluster.connect(address) is not first
        cluster.close()


def test_what_was_asked_comes_in_order_from_all_connections() -> None:
    with Broker(nodes=2) as broker:
        cluster = ClusterClient()
        for text in broker.addresses:
            cluster.ask(Address.parse(text), "ListGroups", lambda _: {})
        names = [exchange.api for exchange in cluster.take() if exchange.api != "ApiVersions"]
        assert names == ["ListGroups", "ListGroups"]
        assert cluster.take() == []
        cluster.close()


@pytest.mark.parametrize("api", ERAS["0.9"])
def test_an_era_speaks_versions_that_there_are(api: str) -> None:
    assert ERAS["0.9"][api] in builtin_library().message(f"{api}Request").versions


def test_an_era_asks_for_no_versions() -> None:
    with Broker() as broker:
        cluster, address = ClusterClient(era="0.9"), Address.parse(broker.address)
        cluster.ask(address, "Metadata", lambda _: {})
        assert [exchange.name for exchange in cluster.take()] == ["Metadata v0"]
        with pytest.raises(KwireError, match=r"^that era had no ConsumerGroupHeartbeat$"):
            cluster.version(address, "ConsumerGroupHeartbeat")
        cluster.close()


def test_a_version_may_be_bounded() -> None:
    with Broker() as broker:
        cluster, address = ClusterClient(), Address.parse(broker.address)
        assert cluster.version(address, "Fetch") > 12
        cluster.highest["Fetch"] = 12
        assert cluster.version(address, "Fetch") == 12
        cluster.close()


def test_a_broker_that_closes_is_asked_why(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.versions((1, 4, 16)), replies.close], [replies.versions((1, 4, 12))])
    cluster = ClusterClient()
    with pytest.raises(Failure) as caught:
        cluster.ask(server.address, "Fetch", lambda _: {})
    said = "closed the connection instead of an answer to Fetch v16; it takes Fetch v4-12, not v16"
    assert str(caught.value) == f"{server.address}: {said}"
    assert [exchange.name for exchange in cluster.take()] == ["ApiVersions v5", "Fetch v16"]
    cluster.close()
