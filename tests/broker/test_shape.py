"""Error answers that mirror their request, for every API that is served."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.apis import announced, served
from kwire.broker.context import Body
from kwire.broker.shape import refusal
from kwire.codec.example import example
from kwire.codec.library import builtin_library
from kwire.codec.plan import StructPlan

LIBRARY = builtin_library()


PRODUCE: Body = {
    "TopicData": [{"Name": "a", "PartitionData": [{"Index": 0}, {"Index": 3}]}, {"Name": "b", "PartitionData": []}]
}


@pytest.mark.parametrize(
    ("api", "version", "request_body", "expected"),
    [
        ("Heartbeat", 4, {"GroupId": "g"}, {"ErrorCode": 6}),
        ("JoinGroup", 3, {"MemberId": "m", "Protocols": [{"Name": "range", "Metadata": b"x"}]},
         {"ErrorCode": 6, "Leader": "", "MemberId": "m", "Members": []}),
        ("Produce", 9, PRODUCE, {"Responses": [
            {"Name": "a", "PartitionResponses": [
                {"Index": 0, "ErrorCode": 6, "BaseOffset": -1, "RecordErrors": []},
                {"Index": 3, "ErrorCode": 6, "BaseOffset": -1, "RecordErrors": []}]},
            {"Name": "b", "PartitionResponses": []}]}),
        ("Fetch", 4, {"Topics": [{"Topic": "a", "Partitions": [{"Partition": 2, "FetchOffset": 9}]}]},
         {"Responses": [{"Topic": "a", "Partitions": [
             {"PartitionIndex": 2, "ErrorCode": 6, "HighWatermark": -1, "AbortedTransactions": [], "Records": b""}]}]}),
        ("OffsetFetch", 5, {"GroupId": "g", "Topics": [{"Name": "a", "PartitionIndexes": [1, 2]}]},
         {"Topics": [{"Name": "a", "Partitions": [
             {"PartitionIndex": 1, "CommittedOffset": -1, "ErrorCode": 6},
             {"PartitionIndex": 2, "CommittedOffset": -1, "ErrorCode": 6}]}], "ErrorCode": 6}),
        ("DeleteTopics", 5, {"TopicNames": ["a", "b"]},
         {"Responses": [{"ErrorCode": 6, "Name": "a"}, {"ErrorCode": 6, "Name": "b"}]}),
        ("FindCoordinator", 4, {"CoordinatorKeys": ["g"]}, {"Coordinators": [
            {"ErrorCode": 6, "Key": "g", "NodeId": -1, "Port": -1}]}),
        ("DescribeGroups", 5, {"Groups": ["g"]}, {"Groups": [{"ErrorCode": 6, "GroupId": "g", "Members": []}]}),
        ("Metadata", 12, {"Topics": [{"Name": "a"}]},
         {"Brokers": [], "Topics": [{"ErrorCode": 6, "Name": "a", "Partitions": []}]}),
        ("Metadata", 12, {"Topics": None}, {"Brokers": [], "Topics": []}),
        ("CreateTopics", 5, {"Topics": [{"Name": "a"}], "ValidateOnly": True},
         {"Topics": [{"Name": "a", "ErrorCode": 6, "Configs": []}]}),
    ],
)  # fmt: skip
def test_an_error_goes_into_every_error_field(api: str, version: int, request_body: Body, expected: Body) -> None:
    answer = LIBRARY.plan(f"{api}Response", version).root
    assert refusal(answer, LIBRARY.plan(f"{api}Request", version).root, request_body, 6) == expected


CASES = [
    (api, version)
    for key, versions in announced(None).items()
    for api in [LIBRARY.registry.api(key).name]
    for version in versions.each()
]


@pytest.mark.parametrize(("api", "version"), CASES)
def test_every_version_of_every_api_can_refuse(api: str, version: int) -> None:
    asked, answer = LIBRARY.plan(f"{api}Request", version), LIBRARY.plan(f"{api}Response", version)
    body: Any = example(asked)
    codec = LIBRARY.codec(f"{api}Response", version)
    made = codec.decode(codec.encode(refusal(answer.root, asked.root, body, 41)))
    found = codes(answer.root, made)
    assert set(found) <= {41}
    assert api in WITHOUT or found


WITHOUT = {"DescribeLogDirs"}  # until v2 only the directories have errors, and the request names none


def codes(plan: StructPlan, body: Body) -> list[int]:
    found = [body[slot.name] for slot in plan.slots if slot.field.error]
    for slot in plan.slots:
        if slot.struct is not None and slot.array:
            found += [code for item in body[slot.name] or () for code in codes(slot.struct, item)]
    return found


def test_what_is_served_is_in_the_schema() -> None:
    assert {LIBRARY.registry.find(name).definition.name for name in served()} == set(served())
