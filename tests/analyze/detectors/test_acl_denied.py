"""Rights that are missing: on what, for what, and how to give them."""

from __future__ import annotations

import pytest
from scenes import Scene

METADATA = {"Brokers": [], "ClusterId": "one", "ControllerId": 1}


def topic(name: str, error: int) -> dict[str, object]:
    return METADATA | {"Topics": [{"ErrorCode": error, "Name": name, "Partitions": []}]}


def test_a_denied_topic_is_one_finding_however_often_it_is_asked_for(scene: Scene) -> None:
    line = scene.connect(0)
    for second in range(1, 6):
        line.ask(second, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, topic("orders", 29))
    (found,) = scene.findings("acl-denied")
    assert found.severity == "error"
    assert found.what == "c1 may not Describe topic orders: Metadata got TOPIC_AUTHORIZATION_FAILED 5 times in 4.0 s"
    assert found.advice == "kafka-acls --add --allow-principal User:… --operation Describe --topic orders"
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "topic": "orders", "api": "Metadata"}
    assert (found.count, len(found.evidence)) == (5, 5)


def test_one_that_is_allowed_later_is_a_warning(scene: Scene) -> None:
    line = scene.connect(0)
    line.ask(1, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, topic("orders", 29))
    line.ask(3, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, topic("orders", 0))
    (found,) = scene.findings("acl-denied")
    assert found.severity == "warning"
    assert found.what.endswith("; from 3.001 on it may")


def test_the_right_topic_of_a_request_is_named(scene: Scene) -> None:
    answer = METADATA | {"Topics": [
        {"ErrorCode": 0, "Name": "orders", "Partitions": []}, {"ErrorCode": 29, "Name": "pay", "Partitions": []},
    ]}  # fmt: skip
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": [{"Name": "orders"}, {"Name": "pay"}]}, answer)
    (found,) = scene.findings("acl-denied")
    assert found.about["topic"] == "pay"


def test_a_group_that_only_the_request_names(scene: Scene) -> None:
    asked = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}
    scene.connect(0).ask(1, "Heartbeat", 3, asked, {"ErrorCode": 30})
    (found,) = scene.findings("acl-denied")
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "group": "billing", "api": "Heartbeat"}
    assert "may not Read group billing" in found.what


def test_a_deny_in_the_capture_changes_the_advice(scene: Scene) -> None:
    acl = {"Principal": "User:*", "Host": "*", "Operation": 3, "PermissionType": 2}
    resource = {"ResourceType": 2, "ResourceName": "ord", "PatternType": 4, "Acls": [acl]}
    asked = {"ResourceTypeFilter": 2, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
    scene.connect(0, client="admin").ask(1, "DescribeAcls", 2, asked, {"Resources": [resource]})
    scene.connect(1).ask(2, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, topic("orders", 29))
    (found,) = scene.findings("acl-denied")
    assert found.advice == "A DENY stands in the way (User:* on topic ord), and wins over every ALLOW: remove it."


@pytest.mark.parametrize("error", [0, 3])
def test_other_errors_are_none_of_its_business(scene: Scene, error: int) -> None:
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, topic("orders", error))
    assert scene.findings("acl-denied") == []
