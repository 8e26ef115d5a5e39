"""The leader's work: range and roundrobin as Kafka's assignors do it, and the bytes of subscriptions."""

from __future__ import annotations

import pytest

from kwire.client.assign import (
    ASSIGNORS,
    Subscriber,
    assigned,
    assignment,
    by_range,
    by_turns,
    subscription,
    topics_of,
)
from kwire.errors import DecodeError

A, B, C = (Subscriber(name, ("t",)) for name in "abc")


@pytest.mark.parametrize(
    ("count", "members", "out"),
    [
        (3, [B, A], {"a": [0, 1], "b": [2]}),
        (7, [A, B, C], {"a": [0, 1, 2], "b": [3, 4], "c": [5, 6]}),
        (1, [C, B, A], {"a": [0], "b": [], "c": []}),
        (0, [A], {"a": []}),
        (4, [Subscriber("z", ("t",), "i1"), A], {"z": [0, 1], "a": [2, 3]}),
    ],
)
def test_range_gives_runs(count: int, members: list[Subscriber], out: dict[str, list[int]]) -> None:
    assert by_range(members, {"t": count}) == {name: [("t", index) for index in row] for name, row in out.items()}


def test_range_goes_topic_by_topic() -> None:
    members = [Subscriber("a", ("t", "u")), Subscriber("b", ("u",))]
    assert by_range(members, {"t": 2, "u": 3}) == {
        "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)],
        "b": [("u", 2)],
    }


@pytest.mark.parametrize(
    ("topics", "members", "out"),
    [
        ({"t": 3}, [B, A], {"a": [("t", 0), ("t", 2)], "b": [("t", 1)]}),
        ({"t": 1, "u": 2}, [Subscriber("a", ("t", "u")), Subscriber("b", ("u",))],
         {"a": [("t", 0), ("u", 1)], "b": [("u", 0)]}),
        ({}, [A], {"a": []}),
    ],
)  # fmt: skip
def test_roundrobin_deals_them_out(
    topics: dict[str, int], members: list[Subscriber], out: dict[str, list[tuple[str, int]]]
) -> None:
    assert by_turns(members, topics) == out


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_every_partition_has_one_reader(name: str, count: int) -> None:
    out = ASSIGNORS[name]([A, B, C], {"t": count})
    assert sorted(index for parts in out.values() for _, index in parts) == list(range(count))
    sizes = [len(parts) for parts in out.values()]
    assert max(sizes) - min(sizes) <= 1


def test_no_members_no_assignment() -> None:
    assert [assignor([], {"t": 3}) for assignor in ASSIGNORS.values()] == [{}, {}]


def test_subscriptions_and_assignments_are_those_of_kafka() -> None:
    assert subscription(["t"]).hex() == "000000000001000174ffffffff"
    data = assignment([("t", 0), ("t", 2), ("u", 1)])
    topics = "000174000000020000000000000002", "0001750000000100000001"
    assert data.hex() == "000000000002" + "".join(topics) + "ffffffff"
    assert topics_of(subscription(["t", "u"])) == ("t", "u")
    assert assigned(data) == [("t", 0), ("t", 2), ("u", 1)]
    assert assigned(b"") == []


def test_a_newer_subscription_is_read_as_far_as_it_is_known() -> None:
    newer = bytes.fromhex("006300000001000174ffffffff0000000000000001ffffabcdef")
    assert topics_of(newer) == ("t",)


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff\0\0", b"\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\5\0\1t"])
def test_what_is_no_assignment(data: bytes) -> None:
    with pytest.raises(DecodeError):
        assigned(data)
