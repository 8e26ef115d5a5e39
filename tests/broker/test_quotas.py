"""Client quotas: which one counts, for whom, how long a client waits; and that the wait is real."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import Peer
from kwire.broker.quotas import CONSUMED, PRODUCED, SECOND, QuotaFilter, Quotas
from kwire.broker.refused import Refused
from kwire.schema import codes

USER, CLIENT = "user", "client-id"


def quotas(*given: tuple[list[tuple[str, str | None]], float]) -> Quotas:
    made = Quotas()
    for entity, value in given:
        made.change(entity, [(PRODUCED, value, False)], dry=False)
    return made


@pytest.mark.parametrize(
    ("entities", "counts"),
    [
        ([[(CLIENT, None)]], 0),
        ([[(CLIENT, None)], [(CLIENT, "c")]], 1),
        ([[(CLIENT, "c")], [(USER, None)]], 1),
        ([[(USER, None)], [(USER, None), (CLIENT, "c")]], 1),
        ([[(USER, "u")], [(USER, None), (CLIENT, "c")]], 0),
        ([[(USER, "u")], [(CLIENT, None), (USER, "u")], [(CLIENT, "c"), (USER, "u")]], 2),
    ],
)
def test_the_most_exact_one_counts(entities: list[Any], counts: int) -> None:
    made = quotas(*((entity, 10.0 * (n + 1)) for n, entity in enumerate(entities)))
    found = made._quota(PRODUCED, "u", "c")
    assert found is not None
    assert found[0] == 10.0 * (counts + 1)


def test_how_long_a_client_waits() -> None:
    made = quotas(([(CLIENT, "c")], 1000))
    assert made.charge(PRODUCED, "u", "c", 10_000, 0) == 0
    assert made.charge(PRODUCED, "other", "c", 5_000, SECOND) == 5 * SECOND
    assert made.charge(PRODUCED, "u", "d", 1 << 30, SECOND) == 0
    assert made.charge(CONSUMED, "u", "c", 1 << 30, SECOND) == 0
    assert made.charge(PRODUCED, "u", "c", 1 << 40, 2 * SECOND) == 11 * SECOND
    assert made.charge(PRODUCED, "u", "c", 1, 60 * SECOND) == 0


def test_a_quota_for_each_user() -> None:
    made = quotas(([(USER, None)], 1000))
    assert made.charge(PRODUCED, "ann", "c", 20_000, 0) > 0
    assert made.charge(PRODUCED, "bob", "c", 1, 0) == 0
    assert made.charge(PRODUCED, "ann", "d", 1, 0) > 0


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ([], [(PRODUCED, 1.0, False)]),
        ([(USER, "a"), (USER, "b")], [(PRODUCED, 1.0, False)]),
        ([("planet", "a")], [(PRODUCED, 1.0, False)]),
        ([("ip", "10.0.0.1")], [("connection_creation_rate", 1.0, False)]),
        ([(USER, "")], [(PRODUCED, 1.0, False)]),
        ([(USER, "a")], [("request_percentage", 1.0, False)]),
        ([(USER, "a")], [(PRODUCED, 1.5, False)]),
        ([(USER, "a")], [(PRODUCED, 0.0, False)]),
        ([(USER, "a")], [(PRODUCED, float("nan"), False)]),
        ([(USER, "a")], [(PRODUCED, float("inf"), False)]),
        ([(USER, "a")], [(PRODUCED, 1.0, False), (PRODUCED, 2.0, False)]),
    ],
)
def test_what_cannot_be_set(entity: list[Any], ops: list[Any]) -> None:
    with pytest.raises(Refused) as refused:
        Quotas().change(entity, ops, dry=False)
    assert refused.value.code == codes.INVALID_REQUEST


def test_setting_removing_and_finding() -> None:
    made = quotas(([(CLIENT, "c")], 5), ([(USER, "u"), (CLIENT, "c")], 6), ([(CLIENT, None)], 7))
    assert len(made.find([], strict=False)) == 3
    assert len(made.find([QuotaFilter(CLIENT, 0, "c")], strict=False)) == 2
    assert len(made.find([QuotaFilter(CLIENT, 0, "c")], strict=True)) == 1
    assert len(made.find([QuotaFilter(CLIENT, 1, None)], strict=True)) == 1
    assert len(made.find([QuotaFilter(CLIENT, 2, None)], strict=True)) == 2
    made.change([(CLIENT, "c")], [(PRODUCED, 0.0, True)], dry=True)
    made.change([(CLIENT, None)], [(PRODUCED, 0.0, True)], dry=False)
    assert len(made.find([], strict=False)) == 2


def test_a_throttled_client_is_told_and_not_heard(socketless: Any) -> None:
    entity = [{"EntityType": "client-id", "EntityName": "greedy"}]
    ops = [{"Key": PRODUCED, "Value": 10.0, "Remove": False}, {"Key": CONSUMED, "Value": 10.0, "Remove": False}]
    asked = {"Entries": [{"Entity": entity, "Ops": ops}], "ValidateOnly": False}
    assert socketless.ask("AlterClientQuotas", 1, asked)["Entries"][0]["ErrorCode"] == 0
    wanted = {"Components": [{"EntityType": "client-id", "MatchType": 0, "Match": "greedy"}], "Strict": True}
    (entry,) = socketless.ask("DescribeClientQuotas", 1, wanted)["Entries"]
    assert {value["Key"]: value["Value"] for value in entry["Values"]} == {PRODUCED: 10.0, CONSUMED: 10.0}
    assert socketless.produce("t", b"x" * 500)["ErrorCode"] == 0
    peer = Peer(9, "127.0.0.1", 40009, 1)
    frame = socketless.frame("Fetch", 11, socketless.fetch_body("t"), "greedy")
    (reply,) = socketless.raw(frame, peer)
    assert socketless.body("Fetch", 11, reply)["ThrottleTimeMs"] == 11_000
    later = socketless.raw(socketless.frame("Metadata", 12, {"Topics": None}, "greedy"), peer)
    socketless.clock.run(10_999)
    assert later == []
    socketless.clock.run(1)
    assert len(later) == 1
    assert [event.kind for event in socketless.state.happenings].count("throttled") == 1
    body = {"Acks": -1, "TimeoutMs": 1000, "TopicData": []}
    assert socketless.ask("Produce", 9, body, client="greedy")["ThrottleTimeMs"] == 0


def test_what_cannot_be_described(socketless: Any) -> None:
    for kind, match in (("planet", 0), ("user", 9)):
        wanted = {"Components": [{"EntityType": kind, "MatchType": match, "Match": "x"}], "Strict": True}
        assert socketless.ask("DescribeClientQuotas", 1, wanted)["ErrorCode"] in (35, 42)
