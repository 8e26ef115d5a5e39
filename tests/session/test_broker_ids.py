"""Node ids of brokers by address: from which answers, and when there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.codec.thresholds import Thresholds
from kwire.session.broker_ids import BrokerIds
from kwire.session.reader import Settings
from kwire.session.reading import Reading

B1: dict[str, Any] = {"Host": "10.0.0.2", "Port": 9092, "NodeId": 1}
B2: dict[str, Any] = {"Host": "10.0.0.3", "Port": 9092, "NodeId": 2}


def renamed(broker: dict[str, Any]) -> dict[str, Any]:
    return {"BrokerId": broker["NodeId"], "Host": broker["Host"], "Port": broker["Port"]}


MOVED = [{"Name": "t", "PartitionResponses": [{"Index": 0, "ErrorCode": 6}]}]
CASES = [
    ("Metadata", 1, {}, {"Brokers": [B1, B2]}),
    ("Metadata", 12, {}, {"Brokers": [B1 | {"Rack": "a"}, B2]}),
    ("DescribeCluster", 1, {}, {"Brokers": [renamed(B1), renamed(B2)]}),
    ("FindCoordinator", 4, {}, {"Coordinators": [B1, B2 | {"Key": "g"}, {"NodeId": -1, "Port": -1, "ErrorCode": 15}]}),
    ("Produce", 10, {"Acks": 1}, {"Responses": MOVED, "NodeEndpoints": [B1, B2]}),
    ("Fetch", 16, {}, {"ErrorCode": 6, "NodeEndpoints": [B1, B2]}),
    ("ShareFetch", 1, {}, {"ErrorCode": 6, "NodeEndpoints": [B1, B2]}),
]  # fmt: skip


def learned(traffic: Any, path: Path, few: int = 24) -> BrokerIds:
    out = BrokerIds()
    settings = Settings(thresholds=Thresholds(bodies=few))
    for batch in Reading([traffic.save(path / "made.pcap")], settings).batches():
        out.learn(batch)
    return out


@pytest.mark.parametrize("few", [0, 1 << 30])
@pytest.mark.parametrize(("api", "version", "asked", "answer"), CASES)
def test_answers_that_name_brokers(
    api: str, version: int, asked: Any, answer: Any, few: int, traffic: Any, tmp_path: Path
) -> None:
    tcp = traffic.connection()
    for ident in range(3):
        told = answer | {"ThrottleTimeMs": ident} if api != "Metadata" or version > 2 else answer
        tcp.send(traffic.request(api, version, asked, ident)).answer(traffic.response(api, version, told, ident))
    found = learned(traffic, tmp_path, few)
    assert [found.of(where) for where in ("10.0.0.2:9092", "10.0.0.3:9092", "10.0.0.4:9092")] == [1, 2, None]


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_old_coordinators_stand_in_the_answer_itself(few: int, traffic: Any, tmp_path: Path) -> None:
    tcp = traffic.connection()
    for ident, answer in enumerate((B1, {"NodeId": -1, "Host": "", "Port": -1, "ErrorCode": 15})):
        tcp.send(traffic.request("FindCoordinator", 1, {}, ident))
        tcp.answer(traffic.response("FindCoordinator", 1, answer, ident))
    assert learned(traffic, tmp_path, few).of("10.0.0.2:9092") == 1


def test_leaders_are_taken_from_refusals_only(traffic: Any, tmp_path: Path) -> None:
    tcp = traffic.connection()
    tcp.send(traffic.request("ShareFetch", 1)).answer(traffic.response("ShareFetch", 1, {"NodeEndpoints": [B1]}))
    assert learned(traffic, tmp_path).of("10.0.0.2:9092") is None


def test_host_names_and_ids_below_zero_say_nothing() -> None:
    found = BrokerIds()
    found.add("broker-1.kafka", 9092, 1)
    found.add("10.0.0.2", 9092, -1)
    assert [found.of(where) for where in ("broker-1.kafka:9092", "10.0.0.2:9092")] == [None, None]


@pytest.mark.parametrize(
    ("host", "end"), [("::1", "[::1]:9092"), ("0:0::1", "[::1]:9092"), ("::ffff:10.0.0.2", "10.0.0.2:9092")]
)
def test_addresses_are_written_as_those_of_connections(host: str, end: str) -> None:
    found = BrokerIds()
    found.add(host, 9092, 7)
    assert found.of(end) == 7


def test_an_address_with_two_ids_has_none() -> None:
    first, second = BrokerIds(), BrokerIds()
    first.add("10.0.0.2", 9092, 1)
    second.add("10.0.0.2", 9092, 2)
    second.add("10.0.0.3", 9092, 3)
    first.merge(second)
    first.add("10.0.0.2", 9092, 1)
    assert [first.of(where) for where in ("10.0.0.2:9092", "10.0.0.3:9092")] == [None, 3]
