"""Nodes and listeners as they are written, and where clients are told that they are."""

from __future__ import annotations

import pytest

from kwire.broker.nodes import Endpoint, Listener, Node, NodeSetup, counted_nodes, parse_advertised, setups_of
from kwire.errors import KwireError


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://127.0.0.1:9092", Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)),
        ("OUT=SASL_SSL://[::1]:0", Listener("OUT", "SASL_SSL", "::1", 0)),
        ("SSL://0.0.0.0:9093,advertise=b:19093", Listener("SSL", "SSL", "0.0.0.0", 9093, ("b", 19093))),
    ],
)
def test_a_listener_is_written(text: str, listener: Listener) -> None:
    assert Listener.parse(text) == listener


@pytest.mark.parametrize(
    "text", ["9092", "HTTP://h:1", "SSL://", "SSL://h:x", "SSL://h:70000", "SSL://h:1,x=2", "=SSL://h:1"]
)
def test_what_is_no_listener(text: str) -> None:
    with pytest.raises(KwireError, match=r"write|goes"):
        Listener.parse(text)


def test_ports_follow_each_other() -> None:
    plain, told = Listener("P", port=9092), Listener("Q", port=9192, advertised=("outside", 30000))
    nodes = setups_of([4, NodeSetup(6, 9500), 5])
    assert [plain.port_of(each, number, 0) for number, each in enumerate(nodes)] == [9092, 9500, 9094]
    assert [told.port_of(each, number, 1) for number, each in enumerate(nodes)] == [9192, 9501, 9194]
    assert told.told(2, 9194) == ("outside", 30002)
    assert Listener("R", host="0.0.0.0").told(1, 777) == ("127.0.0.1", 777)
    assert Listener("R", advertised=("b", 0)).told(1, 777) == ("b", 777)
    with pytest.raises(KwireError, match="no port 65536 for node 2"):
        Listener("P", port=65_535).port_of(NodeSetup(2), 1, 0)


def test_which_nodes_there_are() -> None:
    assert [each.id for each in setups_of(2)] == [1, 2]
    assert counted_nodes([3]) == "is node 3 alone"
    assert counted_nodes([2, 1]) == "are nodes 1 to 2"
    assert counted_nodes([1, 5]) == "are nodes 1, 5"
    for wrong in ([1, 1], [], 0, [-1]):
        with pytest.raises(KwireError):
            setups_of(wrong)


def test_a_node_has_an_endpoint_for_each_listener() -> None:
    node = Node(3, "r")
    assert node.at() == Endpoint(3, "127.0.0.1", 0, "r")
    node.endpoints = {"A": Endpoint(3, "a", 1), "B": Endpoint(3, "::1", 2)}
    assert (str(node.at()), str(node.at("B")), str(node.at("C"))) == ("a:1", "[::1]:2", "a:1")
    assert parse_advertised("b") == ("b", 0)
