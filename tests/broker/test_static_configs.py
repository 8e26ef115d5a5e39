"""A broker's configuration at the start: each value has its effect, and DescribeConfigs tells it."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import BrokerSettings
from kwire.broker.static_configs import configured
from kwire.errors import KwireError


def test_values_go_where_they_belong() -> None:
    made = configured(BrokerSettings(), {
        "num.partitions": 4, "auto.create.topics.enable": False, "group.min.session.timeout.ms": "1",
        "transaction.max.timeout.ms": 5000, "connections.max.idle.ms": 9, "message.max.bytes": 100,
    })  # fmt: skip
    assert (made.partitions, made.create_topics, made.groups.group_min_session_timeout_ms) == (4, False, 1)
    assert (made.transactions.transaction_max_timeout_ms, made.limits.idle_ms) == (5000, 9)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("num.partition", 4, "Unknown broker config name: num.partition; did you mean num.partitions?"),
        ("num.partitions", "x", "Invalid value x for configuration num.partitions: Not a number of type INT"),
        (
            "auto.create.topics.enable",
            "maybe",
            "Invalid value maybe for configuration auto.create.topics.enable: "
            "Expected value to be either true or false",
        ),
    ],
)
def test_what_has_no_effect_is_refused(name: str, value: Any, why: str) -> None:
    with pytest.raises(KwireError) as error:
        configured(BrokerSettings(), {name: value})
    assert str(error.value) == why


def test_what_is_in_force_is_told_and_topics_have_it(make_socketless: Any) -> None:
    socketless = make_socketless(
        configured(BrokerSettings(topics=(("t", 1),)), {"message.max.bytes": 100, "num.partitions": 3})
    )

    def told(kind: int, name: str, key: str) -> tuple[str, int]:
        asked = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": [key]}
        (row,) = socketless.ask("DescribeConfigs", 4, {"Resources": [asked]})["Results"][0]["Configs"]
        return row["Value"], row["ConfigSource"]

    assert told(4, "1", "message.max.bytes") == ("100", 4)
    assert told(2, "t", "max.message.bytes") == ("100", 4)
    assert told(4, "1", "num.partitions") == ("3", 4)
    assert told(4, "1", "group.initial.rebalance.delay.ms") == ("0", 4)
    assert socketless.produce("t", b"x" * 200)["ErrorCode"] == 10
    (row,) = socketless.ask("Metadata", 12, {"Topics": [{"Name": "new"}], "AllowAutoTopicCreation": True})["Topics"]
    assert len(row["Partitions"]) == 3


def test_what_no_acl_speaks_of_is_open_when_told_so(make_socketless: Any) -> None:
    for told, code in (({}, 29), ({"allow.everyone.if.no.acl.found": "true"}, 0)):
        socketless = make_socketless(configured(BrokerSettings(super_users=("root",), topics=(("t", 1),)), told))
        answer = socketless.ask("Metadata", 9, {"Topics": [{"Name": "t"}], "AllowAutoTopicCreation": False})
        assert answer["Topics"][0]["ErrorCode"] == code
