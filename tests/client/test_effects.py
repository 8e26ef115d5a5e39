"""Which requests change something: every API is in one of the tables, and bodies that turn it round."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.client.effects import READS, WRITES, changes
from kwire.schema.registry import builtin


def test_every_api_either_reads_or_writes() -> None:
    assert set(builtin().keys()) == READS | set(WRITES)
    assert not READS & set(WRITES)


@pytest.mark.parametrize(
    ("api", "version", "body", "effect"),
    [
        ("ListGroups", 5, {}, None),
        ("DeleteTopics", 6, {}, "deletes topics with their records"),
        ("CreateTopics", 7, {"ValidateOnly": True}, None),
        ("CreateTopics", 7, {"ValidateOnly": 1}, "creates topics"),
        ("Fetch", 14, {"ReplicaId": -1}, None),
        ("Fetch", 14, {"ReplicaId": 2}, "speaks for a follower: moves its position and the high watermark"),
        ("Fetch", 17, {"ReplicaState": {"ReplicaId": 2}}, "speaks for a follower: moves its position and the high "
         "watermark"),
        ("Metadata", 12, {"Topics": None, "AllowAutoTopicCreation": True}, None),
        ("Metadata", 12, {"Topics": [{"Name": "t"}], "AllowAutoTopicCreation": False}, None),
        ("Metadata", 12, {"Topics": [{"Name": "t"}]}, "creates the topics that it names, where the broker allows "
         "that"),
        ("Metadata", 3, {"Topics": [{"Name": "t"}]}, "creates the topics that it names, where the broker allows that"),
        ("Metadata", 0, {"Topics": []}, None),
    ],
)  # fmt: skip
def test_what_a_request_changes(api: str, version: int, body: dict[str, Any], effect: str | None) -> None:
    key = builtin().find(api).definition.key
    assert key is not None
    assert changes(key, version, body) == effect


def test_an_api_that_nobody_knows_may_change_anything() -> None:
    assert changes(999, 0, {}) == "may change something: kwire does not know this API"
