"""What call fills in."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.client.defaults import DEFAULTS, filled
from kwire.codec.library import builtin_library


@pytest.mark.parametrize("api", DEFAULTS)
def test_each_default_is_a_field_and_every_version_can_be_written(api: str) -> None:
    request = builtin_library().message(f"{api}Request")
    assert set(DEFAULTS[api]) <= {path for path, _ in request.walk()}
    for version in request.versions.each():
        plan = builtin_library().plan(request.name, version)
        codec = builtin_library().codec(request.name, version)
        body = filled(api, plan, {})
        assert codec.decode(codec.encode(body)).items() >= body.items()


@pytest.mark.parametrize(
    ("api", "version", "given", "out"),
    [
        ("Metadata", 12, {}, {"Topics": None, "AllowAutoTopicCreation": False}),
        ("Metadata", 0, {}, {}),
        ("Metadata", 3, {"Topics": []}, {"Topics": []}),
        ("Metadata", 4, {"AllowAutoTopicCreation": True}, {"AllowAutoTopicCreation": True, "Topics": None}),
        ("OffsetFetch", 5, {"GroupId": "g"}, {"GroupId": "g", "Topics": None}),
        ("OffsetFetch", 1, {"GroupId": "g"}, {"GroupId": "g"}),
        ("OffsetFetch", 8, {"Groups": [{"GroupId": "g"}]}, {"Groups": [{"GroupId": "g", "Topics": None}]}),
        ("Fetch", 12, {"MinBytes": 9, "Topics": [{"Topic": "t", "Partitions": [{}, {"PartitionMaxBytes": 5}]}]},
         {"MinBytes": 9, "MaxWaitMs": 500, "Topics": [
             {"Topic": "t", "Partitions": [{"PartitionMaxBytes": 1 << 20}, {"PartitionMaxBytes": 5}]}]}),
        ("ListGroups", 5, {}, {}),
    ],
)  # fmt: skip
def test_what_is_given_stays(api: str, version: int, given: dict[str, Any], out: dict[str, Any]) -> None:
    assert filled(api, builtin_library().plan(f"{api}Request", version), given) == out


@pytest.mark.parametrize("broken", [{"Topics": 5}, {"Topics": [5]}, {"Topics": None}, {"Topics": [{"Partitions": 1}]}])
def test_a_body_of_the_wrong_shape_is_left_to_the_codec(broken: dict[str, Any]) -> None:
    plan = builtin_library().plan("FetchRequest", 12)
    assert filled("Fetch", plan, broken)["Topics"] == broken["Topics"]
