"""What metadata says to a consumer: brokers that cannot be reached, partitions without leaders, topics that lack."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.client.address import Address
from kwire.client.bootstrap import Attempt, PartitionView, View, reach, view
from kwire.client.reachable import numbers, of_metadata
from kwire.errors import Failure
from kwire.testing import Broker

HERE, AWAY = Address("b1", 9092), Address("localhost", 9092)
UP = {HERE: Attempt(HERE, 300_000, None)}
DOWN = UP | {AWAY: Attempt(AWAY, 1, Failure("refused", AWAY, "connection refused: nothing listens there"))}


def _view(*rows: tuple[int, int, tuple[int, ...], tuple[int, ...]], error: int = 0, **brokers: Address) -> View:
    known = {int(name[1:]): address for name, address in brokers.items()}
    partitions = tuple(PartitionView(index, 0, leader, replicas, isr, ()) for index, leader, replicas, isr in rows)
    return View("C", 1, known, error, UUID(int=1), partitions)


def test_all_is_well() -> None:
    told = of_metadata(_view((0, 1, (1,), (1,)), (1, 1, (1,), (1,)), n1=HERE), "t", HERE, UP)
    assert (told.verdict, told.text, told.ends) == ("ok", "b1:9092 answers: 1 broker, cluster C", False)
    assert [detail.text for detail in told.details] == [
        "broker 1 at b1:9092: reached in 0.3 ms, leads 0-1",
        "topic t: 2 partitions, 1 replica, all in sync",
    ]


def test_a_leader_that_cannot_be_reached_is_where_a_client_hangs() -> None:
    seen = _view((0, 1, (1, 2), (1, 2)), (1, 2, (1, 2), (1, 2)), n1=HERE, n2=AWAY)
    told = of_metadata(seen, "t", HERE, DOWN)
    assert told.verdict == "error"
    assert not told.ends
    assert [detail.text for detail in told.details if detail.verdict == "error"] == [
        "broker 2 advertises localhost:9092, leads 1: connection refused: nothing listens there; that is this machine "
        "itself, not the broker's",
        "a real client hangs at partition 1: the leader cannot be reached",
    ]
    assert told.advice is not None
    assert "advertised.listeners" in told.advice


def test_no_leader_and_replicas_behind() -> None:
    told = of_metadata(_view((0, -1, (1, 2), (1,)), n1=HERE), "t", HERE, UP)
    assert [(detail.text, detail.verdict) for detail in told.details[1:]] == [
        ("topic t: 1 partition, 2 replicas", "ok"),
        ("without a leader: partition 0; poll() gives nothing of it", "error"),
        ("replicas not in sync: 0 (1 of 1-2)", "note"),
    ]


def test_a_topic_that_is_not_there_ends_it() -> None:
    told = of_metadata(_view(error=3, n1=HERE), "t", HERE, UP)
    assert (told.verdict, told.ends) == ("error", True)
    assert told.details[-1].text == "topic t: 3 UNKNOWN_TOPIC_OR_PARTITION"


def test_many_brokers_are_not_all_listed() -> None:
    brokers = {f"n{node}": Address(f"b{node}", 9092) for node in range(500)}
    told = of_metadata(_view((0, 0, (0,), (0,)), **brokers), "t", HERE, {})
    assert len(told.details) == 14
    assert told.details[12].text == "… 488 more brokers"


@pytest.mark.parametrize(
    ("values", "text"),
    [([], ""), ([3], "3"), ([2, 0, 1, 7], "0-2, 7"), (range(0, 40, 2), "0, 2, 4, 6, 8, 10, 12, 14 and 12 more")],
)
def test_numbers_in_runs(values: Any, text: str) -> None:
    assert numbers(values) == text


def test_metadata_of_the_oldest_version() -> None:
    row = {"ErrorCode": 0, "PartitionIndex": 0, "LeaderId": 1, "ReplicaNodes": [1], "IsrNodes": []}
    body = {"Brokers": [{"NodeId": 1, "Host": "b1", "Port": 9092}],
            "Topics": [{"ErrorCode": 0, "Name": "t", "Partitions": [row]}]}  # fmt: skip
    seen = view(body, "t")
    assert (seen.cluster_id, seen.controller, seen.brokers) == (None, None, {1: HERE})
    assert seen.leaders == {0: 1}
    assert view(body, "u").error == 3


def test_addresses_are_tried(unused: Address) -> None:
    with Broker() as broker:
        up = Address.parse(broker.address)
        tried = reach([up, unused, up], 2.0)
    assert tried[up].failure is None
    assert getattr(tried[unused].failure, "kind", None) == "refused"
    assert reach([], 1.0) == {}
