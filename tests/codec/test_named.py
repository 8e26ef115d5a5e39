"""What a message names, in all depths."""

from __future__ import annotations

from kwire.codec.library import builtin_library
from kwire.codec.named import named


def test_groups_and_topics_in_all_depths() -> None:
    plan = builtin_library().plan("OffsetFetchRequest", 9)
    topics = [{"Name": "a", "PartitionIndexes": [0]}, {"Name": "b", "PartitionIndexes": []}]
    body = {"Groups": [{"GroupId": "g", "Topics": topics}, {"GroupId": "h", "Topics": None}]}
    assert list(named(plan.root, body, "groupId")) == ["g", "h"]
    assert list(named(plan.root, body, "topicName")) == ["a", "b"]


def test_arrays_of_names() -> None:
    plan = builtin_library().plan("DescribeGroupsRequest", 5)
    assert list(named(plan.root, {"Groups": ["g", "h"]}, "groupId")) == ["g", "h"]
