"""What a consumer asks and reads: every version can be written, and answers of all versions read alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from kwire.client import bodies
from kwire.client.address import Address
from kwire.codec.library import builtin_library
from kwire.errors import KwireError

ID = UUID(int=7)
IDS = {"t": ID}
NAMES = {ID: "t"}
ASKED: dict[str, Callable[[int], dict[str, Any]]] = {
    "Metadata": lambda version: bodies.metadata(version, ["t"]),
    "FindCoordinator": lambda version: bodies.find_coordinator(version, "g"),
    "JoinGroup": lambda version: bodies.join_group(version, "g", "m", 6000, 9000, [("range", b"x")]),
    "SyncGroup": lambda version: bodies.sync_group(version, "g", 3, "m", "range", {"m": b"x"}),
    "Heartbeat": lambda version: bodies.heartbeat(version, "g", 3, "m"),
    "LeaveGroup": lambda version: bodies.leave_group(version, "g", "m", reason="enough"),
    "OffsetFetch": lambda version: bodies.offset_fetch(version, "g", [("t", 0), ("t", 2)], IDS, "m", 4),
    "ListOffsets": lambda version: bodies.list_offsets(version, [("t", 0), ("t", 2)], bodies.EARLIEST),
    "Fetch": lambda version: bodies.fetch(version, {("t", 0): 5, ("t", 2): 9}, IDS, 500, 1000),
}
EVERY = [
    (api, version)
    for api in ASKED
    for version in builtin_library().message(f"{api}Request").versions.each()
]  # fmt: skip


@pytest.mark.parametrize(("api", "version"), EVERY)
def test_every_version_is_written_and_says_what_is_meant(api: str, version: int) -> None:
    codec = builtin_library().codec(f"{api}Request", version)
    body = ASKED[api](version)
    read = codec.decode(codec.encode(body))
    assert read == read | {name: value for name, value in body.items() if not isinstance(value, list)}
    if api in ("OffsetFetch", "ListOffsets", "Fetch"):
        topics = (read["Groups"][0] if "Groups" in read else read)["Topics"]
        assert len(topics) == 1
        assert topics[0].get("TopicId", ID) == ID


@pytest.mark.parametrize("version", [0, 1, 12])
def test_all_topics(version: int) -> None:
    codec = builtin_library().codec("MetadataRequest", version)
    read = codec.decode(codec.encode(bodies.metadata(version, None)))
    assert read["Topics"] == ([] if version == 0 else None)
    assert read.get("AllowAutoTopicCreation", False) is False


@pytest.mark.parametrize("version", [0, 2, 3, 4, 6])
def test_the_coordinator(version: int) -> None:
    row = {"NodeId": 2, "Host": "b", "Port": 9, "ErrorCode": 0}
    codec = builtin_library().codec("FindCoordinatorResponse", version)
    read = codec.decode(codec.encode({"Coordinators": [row | {"Key": "g"}]} if version >= 4 else row))
    found = bodies.found_coordinator(read)
    assert (found.error, found.node, found.address) == (0, 2, Address("b", 9))


def test_no_coordinator_at_all() -> None:
    with pytest.raises(KwireError, match=r"^the answer to FindCoordinator is empty$"):
        bodies.found_coordinator({"ThrottleTimeMs": 0, "Coordinators": []})


@pytest.mark.parametrize("version", [0, 1, 2, 5, 7, 8, 9, 10])
def test_committed_offsets(version: int) -> None:
    partition = {"PartitionIndex": 2, "CommittedOffset": 41, "Metadata": "", "ErrorCode": 0}
    topic = ({"TopicId": ID} if version >= 10 else {"Name": "t"}) | {"Partitions": [partition]}
    group = {"GroupId": "g", "Topics": [topic]}
    codec = builtin_library().codec("OffsetFetchResponse", version)
    read = codec.decode(codec.encode({"Groups": [group]} if version >= 8 else {"Topics": [topic]}))
    assert bodies.committed(read, NAMES) == (0, {("t", 2): (41, 0)})


def test_the_groups_error_of_committed_offsets() -> None:
    codec = builtin_library().codec("OffsetFetchResponse", 8)
    read = codec.decode(codec.encode({"Groups": [{"GroupId": "g", "ErrorCode": 16}]}))
    assert bodies.committed(read, NAMES) == (16, {})
    assert bodies.committed({"Groups": []}, NAMES) == (0, {})


@pytest.mark.parametrize(("version", "offsets", "read"), [(0, [17], 17), (0, [], -1), (1, None, 17), (11, None, 17)])
def test_listed_offsets(version: int, offsets: list[int] | None, read: int) -> None:
    row: dict[str, Any] = {"PartitionIndex": 1, "ErrorCode": 0}
    row |= {"Offset": 17} if offsets is None else {"OldStyleOffsets": offsets}
    codec = builtin_library().codec("ListOffsetsResponse", version)
    body = codec.decode(codec.encode({"Topics": [{"Name": "t", "Partitions": [row]}]}))
    assert bodies.listed_offsets(body) == {("t", 1): (read, 0)}


@pytest.mark.parametrize("version", [0, 1, 4, 7, 12, 13, 18])
def test_fetched(version: int) -> None:
    row = {"PartitionIndex": 1, "ErrorCode": 0, "HighWatermark": 8, "Records": b"\1\2"}
    row |= {"AbortedTransactions": None} if version >= 4 else {}
    topic = ({"TopicId": ID} if version >= 13 else {"Topic": "t"}) | {"Partitions": [row]}
    codec = builtin_library().codec("FetchResponse", version)
    error, rows = bodies.fetched(codec.decode(codec.encode({"Responses": [topic]})), NAMES)
    assert (error, rows) == (0, {("t", 1): bodies.FetchAnswer(0, 8, b"\1\2")})


@pytest.mark.parametrize(
    ("body", "code"),
    [({"ErrorCode": 0}, 0), ({"ErrorCode": 25}, 25), ({"ErrorCode": 0, "Members": [{"ErrorCode": 25}]}, 25),
     ({"ErrorCode": 0, "Members": [{"ErrorCode": 0}]}, 0), ({"ErrorCode": 0, "Members": []}, 0)],
)  # fmt: skip
def test_leaving(body: dict[str, Any], code: int) -> None:
    assert bodies.left(body) == code
