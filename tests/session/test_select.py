"""Which exchanges a selection holds."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.session.batch import of_exchanges
from kwire.session.select import Selection

START = 1_700_000_000_000_000_000
MS = 1_000_000


@pytest.fixture
def talk(traffic: Any) -> list[Any]:
    """Four exchanges: two of c-1, then two of another client, the last without an answer."""
    one = traffic.connection()  # 0 and 1 ms
    group = {"GroupId": "orders-app"}
    one.send(traffic.request("Heartbeat", 3, group, 11, "c-1")).answer(traffic.response("Heartbeat", 3, ident=11))
    one.send(traffic.request("Metadata", 9, {"Topics": [{"Name": "orders"}]}, 12, "c-1"))
    traffic.now += 100 * MS
    one.answer(traffic.response("Metadata", 9, {"Topics": [{"Name": "orders", "ErrorCode": 3}]}, 12))
    two = traffic.connection("10.0.0.8:40000", "10.0.0.3:9093")
    two.send(traffic.request("Fetch", 11, {"Topics": [{"Topic": "pay", "Partitions": [{}]}]}, 11, None))
    two.answer(traffic.response("Fetch", 11, ident=11))
    two.send(traffic.request("Heartbeat", 3, {"GroupId": "other"}, 13, "d")).close()
    return list(traffic.read(tracking=True).exchanges)


CASES: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [0, 1, 2, 3]),
    ({"apis": frozenset({12})}, [0, 3]),
    ({"apis": frozenset({12, 1})}, [0, 2, 3]),
    ({"client_ids": ("c-1",)}, [0, 1]),
    ({"client_ids": ("c-?", "d")}, [0, 1, 3]),
    ({"client_ids": ("",)}, [2]),  # null
    ({"client_ids": ("C-1",)}, []),
    ({"clients": ("10.0.0.7",)}, [0, 1]),
    ({"clients": (":40000",)}, [2, 3]),
    ({"clients": ("10.0.0.7:51522",)}, [0, 1]),
    ({"clients": ("10.0.0.2",)}, []),
    ({"brokers": (":9092",)}, [0, 1]),
    ({"brokers": ("10.0.0.2", "10.0.0.3:9093")}, [0, 1, 2, 3]),
    ({"topics": ("orders",)}, [1]),
    ({"topics": ("p*",)}, [2]),
    ({"groups": ("*",)}, [0, 3]),
    ({"groups": ("orders-*",)}, [0]),
    ({"errors": True}, [1, 3]),
    ({"slower": 50 * MS}, [1]),
    ({"slower": 0}, [0, 1, 2]),  # what has no answer took no time
    ({"ids": frozenset({11})}, [0, 2]),
    ({"connections": ("#1",)}, [0, 1, 2, 3]),
    ({"connections": ("51522>10.0.0.2",)}, [0, 1]),
    ({"start": START + 4 * MS}, [1, 2, 3]),
    ({"end": START + 4 * MS}, [0, 1]),
    ({"start": START + 3 * MS, "end": START + 4 * MS}, [1]),
    ({"apis": frozenset({12}), "ids": frozenset({11})}, [0]),
    ({"apis": frozenset({3}), "groups": ("*",)}, []),
    ({"unless": (Selection.of(api="Heartbeat"),)}, [1, 2]),
    ({"unless": (Selection.of(api="Fetch"), Selection.of(client_id="d"))}, [0, 1]),
    ({"unless": (Selection.of(topic="orders"),)}, [0, 2, 3]),
    ({"apis": frozenset({12}), "unless": (Selection.of(group="oth*"),)}, [0]),
    ({"unless": (Selection.of(error="UNKNOWN_TOPIC_OR_PARTITION"),), "settled": True}, [0, 2, 3]),
]


def test_what_belongs_to_a_start_is_left_out_unless_there_is_another_error(traffic: Any) -> None:
    one = traffic.connection()
    for ident, codes in enumerate(([79], [16], [25], [16, 25])):
        groups = [{"Key": str(code), "ErrorCode": code} for code in codes]
        one.send(traffic.request("FindCoordinator", 4, {"CoordinatorKeys": ["g"]}, ident, "c"))
        one.answer(traffic.response("FindCoordinator", 4, {"Coordinators": groups}, ident))
    batch = of_exchanges(list(traffic.read(tracking=True).exchanges))
    assert Selection(settled=True).wanted(batch).correlation_id.tolist() == [2, 3]


@pytest.mark.parametrize(("given", "held"), CASES)
def test_what_is_held(given: dict[str, Any], held: list[int], talk: list[Any]) -> None:
    chosen = Selection(**given)
    kept = chosen.wanted(of_exchanges(talk))
    assert [talk[n].first.packet for n in held] == kept.packet.tolist()
    assert [exchange.about.topics for exchange in kept] == [talk[n].about.topics for n in held]


@pytest.mark.parametrize(("given", "needs"), [({}, False), ({"topics": ("a",)}, True), ({"groups": ("a",)}, True)])
def test_bodies_are_needed_for_topics_and_groups(given: dict[str, Any], needs: bool) -> None:
    assert Selection(**given).needs_about is needs


@pytest.mark.parametrize("address", ["::1", "[::1]", "[::1]:9092", ":9092"])
def test_ipv6_addresses(address: str) -> None:
    from kwire.session.select import is_at

    assert is_at("[::1]:9092", address)
    assert not is_at("[::2]:9093", address)
