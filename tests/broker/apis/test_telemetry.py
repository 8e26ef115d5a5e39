"""What clients are asked to measure, and what they push."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kwire.broker.context import BrokerSettings
from kwire.broker.static_configs import configured

NOBODY = UUID(int=0)


@pytest.fixture
def socketless(make_socketless: Any) -> Any:
    return make_socketless(configured(BrokerSettings(), {"metric.reporters": "test"}))


def subscribe(socketless: Any, **values: str) -> int:
    changes = [{"Name": name.replace("_", "."), "ConfigOperation": 0, "Value": value} for name, value in values.items()]
    body = {"Resources": [{"ResourceType": 16, "ResourceName": "s", "Configs": changes}], "ValidateOnly": False}
    error: int = socketless.ask("IncrementalAlterConfigs", 1, body)["Responses"][0]["ErrorCode"]
    return error


def told(socketless: Any, instance: UUID = NOBODY, client: str = "test") -> Any:
    return socketless.ask("GetTelemetrySubscriptions", 0, {"ClientInstanceId": instance}, client=client)


def pushed(socketless: Any, instance: UUID, subscription: int, metrics: bytes = b"m", **more: Any) -> int:
    body = {"ClientInstanceId": instance, "SubscriptionId": subscription, "Terminating": False, "CompressionType": 0,
            "Metrics": metrics, **more}  # fmt: skip
    error: int = socketless.ask("PushTelemetry", 0, body)["ErrorCode"]
    return error


def test_it_is_announced_when_somebody_takes_the_metrics(socketless: Any, make_socketless: Any) -> None:
    asked = {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"}

    def keys(of: Any) -> set[int]:
        return {row["ApiKey"] for row in of.ask("ApiVersions", 3, asked)["ApiKeys"]}

    assert keys(socketless) - keys(make_socketless()) == {71, 72}
    assert make_socketless().send("GetTelemetrySubscriptions", 0, {"ClientInstanceId": NOBODY})[0].data is None


def test_subscriptions_are_configurations(socketless: Any) -> None:
    nothing = told(socketless)
    assert (nothing["SubscriptionId"], nothing["RequestedMetrics"], nothing["PushIntervalMs"]) == (0, [], 300_000)
    assert nothing["ClientInstanceId"] != NOBODY
    assert subscribe(socketless, metrics="a.,b.", interval_ms="1000", match="client_id=te.*") == 0
    asked = told(socketless, nothing["ClientInstanceId"])
    assert (asked["RequestedMetrics"], asked["PushIntervalMs"]) == (["a.", "b."], 1_000)
    assert asked["ClientInstanceId"] == nothing["ClientInstanceId"]
    assert told(socketless, client="other")["RequestedMetrics"] == []
    assert subscribe(socketless, metrics="*") == 0
    assert told(socketless)["RequestedMetrics"] == [""]
    assert subscribe(socketless, interval_ms="5") == 40
    rows = socketless.ask("ListConfigResources", 0, {})["ConfigResources"]
    assert [row["ResourceName"] for row in rows] == ["s"]


def test_what_is_pushed_is_kept(socketless: Any) -> None:
    subscribe(socketless, metrics="*", interval_ms="1000")
    asked = told(socketless)
    instance, number = asked["ClientInstanceId"], asked["SubscriptionId"]
    assert pushed(socketless, instance, number) == 0
    assert socketless.state.pushed[instance].newest == (0, b"m")
    assert pushed(socketless, instance, number) == 89
    socketless.clock.run(1_001)
    assert pushed(socketless, instance, number + 1) == 117
    assert pushed(socketless, instance, number, bytes(1_048_577)) == 118
    assert pushed(socketless, instance, number, CompressionType=9) == 76
    assert pushed(socketless, NOBODY, number) == 42
    assert pushed(socketless, instance, number, Terminating=True) == 0
    assert pushed(socketless, instance, number, Terminating=True) == 42
    assert socketless.state.pushed[instance].pushes == 2


@pytest.mark.parametrize("match", ["nonsense=x", "client_id=(", "client_source_port=1"])
def test_what_matches_nobody(socketless: Any, match: str) -> None:
    subscribe(socketless, metrics="*", match=match)
    assert told(socketless)["RequestedMetrics"] == []


def test_clients_are_forgotten_when_they_are_many(socketless: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.broker.apis import telemetry

    monkeypatch.setattr(telemetry, "PUSHING", 2)
    for _ in range(5):
        told(socketless)
    assert len(socketless.state.pushed) == 2
