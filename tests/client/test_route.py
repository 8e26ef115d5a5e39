"""Where a request goes: to the coordinator, to the leader, or nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.route import BY_GROUP, BY_LEADER, BY_TRANSACTION, Route, is_routed, route
from kwire.codec.library import builtin_library
from kwire.errors import KwireError
from kwire.schema.registry import builtin
from kwire.testing import Broker


def routed(broker: Broker, api: str, version: int, body: dict[str, Any]) -> Route:
    with BrokerConnection.open(Address.parse(broker.address)) as connection:
        return route(connection, api, builtin_library().plan(f"{api}Request", version), body)


def test_all_names_are_apis() -> None:
    for name in (*BY_GROUP, *BY_TRANSACTION, *BY_LEADER):
        assert builtin().find(name).definition.name == name
    assert not is_routed("Metadata")


@pytest.mark.parametrize(
    ("api", "version", "body"),
    [
        ("DescribeGroups", 5, {"Groups": ["g", "h", "i"]}),
        ("OffsetFetch", 9, {"Groups": [{"GroupId": "g", "Topics": None}]}),
        ("Heartbeat", 4, {"GroupId": "g"}),
        ("InitProducerId", 4, {"TransactionalId": "g"}),
    ],
)
def test_to_the_coordinator(api: str, version: int, body: dict[str, Any]) -> None:
    with Broker(nodes=3) as broker:
        node = broker.server.state.cluster.coordinator("g")
        found = routed(broker, api, version, body)
        assert str(found.address) == broker.addresses[node - 1]
        assert found.why == f"node {node} coordinates g"
        assert ("another coordinator" in found.others) == (api == "DescribeGroups")


@pytest.mark.parametrize("api", ["ListOffsets", "Fetch", "DescribeProducers"])
def test_to_the_leader(api: str) -> None:
    topics, partitions, number = BY_LEADER[api]
    with Broker(nodes=3, topics={"t": 6}) as broker:
        led = broker.server.state.cluster.topics["t"].partitions
        name = {"Topic": "t"} if api == "Fetch" else {"Name": "t"}
        body = {topics: [{**name, partitions: [{number: n} if number else n for n in (2, 5, 3)]}]}
        found = routed(broker, api, builtin().find(api).definition.messages[0].versions.low, body)
        assert str(found.address) == broker.addresses[led[2].leader - 1]
        assert found.others == "t-3 has another leader"
        by_id = {
            topics: [{"TopicId": broker.server.state.cluster.topics["t"].id, partitions: body[topics][0][partitions]}]
        }
        assert routed(broker, api, 0, by_id).address == found.address


def test_what_names_nothing_stays() -> None:
    with Broker(nodes=3) as broker:
        assert routed(broker, "InitProducerId", 4, {"TransactionalId": None}) == Route(None)
        assert routed(broker, "ListOffsets", 4, {"Topics": []}) == Route(None)
        nothing = {"Topics": [{"Name": "no", "Partitions": [{"PartitionIndex": 0}]}]}
        assert routed(broker, "ListOffsets", 4, nothing) == Route(None)


def test_no_coordinator() -> None:
    why = "no coordinator of g: 15 COORDINATOR_NOT_AVAILABLE"
    with Broker(faults=["FindCoordinator:error=15"]) as broker, pytest.raises(KwireError, match=why):
        routed(broker, "Heartbeat", 4, {"GroupId": "g"})
