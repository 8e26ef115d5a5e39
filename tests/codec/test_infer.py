"""What a message could be: real responses are recognized, readings use all bytes and say how they were read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from vectors import jsonl

from kwire.codec.infer import FORMS, Interpretation, as_message, infer, plausibility, read_as
from kwire.codec.library import builtin_library

HEARTBEAT = bytes.fromhex("00000007 00 00000000 001b 00")
LIBRARY = builtin_library()


@cache
def real() -> list[tuple[str, int, bytes, list[Interpretation]]]:
    """Name, version and bytes of each response of a real broker, with what it is read as."""
    rows = [row for row in jsonl("frames/real") if row["name"].endswith("Response")]
    return [(row["name"], row["version"], data, infer(data)) for row in rows for data in [bytes.fromhex(row["hex"])]]


def places() -> Iterator[int | None]:
    """Where the true message and version stands among the readings; None when it does not."""
    for name, version, _, readings in real():
        found = [at for at, one in enumerate(readings) if one.name == name and version in one.versions]
        yield found[0] if found else None


def test_real_responses_are_recognized() -> None:
    found = list(places())
    assert len(found) >= 70
    assert sum(place is not None and place < 4 for place in found) >= 0.95 * len(found)
    assert sum(place == 0 for place in found) >= 0.85 * len(found)


def test_the_true_reading_is_always_among_them() -> None:
    assert None not in list(places())


def test_every_reading_uses_all_bytes_and_the_best_comes_first() -> None:
    for _, _, data, readings in real():
        assert [reading.score for reading in readings] == sorted((reading.score for reading in readings), reverse=True)
        for reading in readings:
            assert (reading.form, reading.span.end, reading.span.broken()) == ("frame", len(data), None)
            assert list(reading.versions) == sorted(reading.versions, reverse=True)


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (len(HEARTBEAT).to_bytes(4, "big") + HEARTBEAT, "frame"),
        (HEARTBEAT, "unsized frame"),
    ],
)
def test_a_response_is_recognized_with_and_without_its_size(data: bytes, form: str) -> None:
    found = {reading.name: reading for reading in infer(data)}["HeartbeatResponse"]
    assert (found.form, found.versions, found.title) == (form, (4,), "HeartbeatResponse v4")
    assert found.message is LIBRARY.message("HeartbeatResponse")
    assert found.definition.name == "Heartbeat"


def test_bodies_of_requests_and_of_records_are_recognized() -> None:
    body = LIBRARY.codec("JoinGroupRequest", 5).encode(
        {"GroupId": "billing", "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": b"\0\1"}]}
    )
    best = infer(body)[0]
    assert (best.title, best.form) == ("JoinGroupRequest v5", "body")
    value = {"ProtocolType": "consumer", "Protocol": "range", "Leader": "m"}
    record = LIBRARY.codec("GroupMetadataValue", 3).encode(value)
    assert "GroupMetadataValue" in {reading.name for reading in infer(record)}
    assert "GroupMetadataValue" not in {reading.name for reading in infer(record, records=False)}
    assert "JoinGroupRequest" not in {reading.name for reading in infer(body, responses=False)}


def test_versions_that_read_the_bytes_alike_are_one_reading() -> None:
    data = bytes.fromhex("0000000a 00000007 00000000 0000")
    found = {reading.name: reading for reading in infer(data)}["HeartbeatResponse"]
    assert (found.versions, found.title) == ((3, 2, 1), "HeartbeatResponse v1-3")


def test_bytes_that_no_message_uses_whole_are_nothing() -> None:
    assert infer(b"\xff" * 40) == []


# ---------------------------------------------------------------- bytes that are said to be a message


def named(data: bytes, name: str, *versions: int) -> list[Interpretation]:
    definition, message = LIBRARY.registry.find(name).definition, LIBRARY.message(name)
    return as_message(data, message, definition, versions or message.versions.each(), LIBRARY)


@pytest.mark.parametrize("form", FORMS)
def test_a_named_message_is_read_in_the_form_that_it_has(form: str) -> None:
    frame = len(HEARTBEAT).to_bytes(4, "big") + HEARTBEAT
    raw = {"frame": frame, "unsized frame": HEARTBEAT, "body": HEARTBEAT[5:]}[form]
    assert [(one.title, one.form) for one in named(raw, "HeartbeatResponse", 4)] == [("HeartbeatResponse v4", form)]


def test_a_frame_whose_size_agrees_is_read_as_one() -> None:
    """Although its size could be read as fields of a body."""
    data = bytes.fromhex("0000000d 00000007 0000 ffff 00000000 aa")
    (reading,) = named(data, "SaslAuthenticateResponse", 0)
    broken = reading.span.broken()
    assert broken is not None
    assert (reading.form, broken[0], broken[1].start) == ("frame", "trailing", 16)


def test_a_frame_whose_size_agrees_is_no_body() -> None:
    data = bytes.fromhex("0000000a 00000011 00000000 001b")
    leave = LIBRARY.codec("LeaveGroupRequest", 0).decode(data)
    assert leave == {"GroupId": "", "MemberId": data[4:].decode()}
    assert [one.form for one in named(data, "LeaveGroupRequest")] == ["frame"]


def test_of_a_broken_message_the_reading_that_comes_furthest_is_given() -> None:
    partition = {"PartitionIndex": 1, "CommittedOffset": 7, "CommittedLeaderEpoch": 3, "Metadata": "abc"}
    whole = LIBRARY.codec("OffsetFetchResponse", 5).encode({"Topics": [{"Name": "orders", "Partitions": [partition]}]})
    cut = bytes.fromhex("00000007") + whole[:-3]
    (reading,) = named(cut, "OffsetFetchResponse")
    assert (reading.title, reading.form) == ("OffsetFetchResponse v5", "unsized frame")
    broken = reading.span.broken()
    assert broken is not None
    assert (broken[0], broken[1].end) == ("Topics[0].Partitions[0].ErrorCode", len(cut))


def test_a_form_that_cannot_be_is_none() -> None:
    definition, message = LIBRARY.registry.find("Heartbeat").definition, LIBRARY.message("HeartbeatResponse")
    assert read_as(b"\0\0\0\x02\0\0", definition, message, 4, "frame", LIBRARY) is None
    assert read_as(b"\0\0\0", definition, message, 4, "unsized frame", LIBRARY) is None
    body = read_as(b"\0\0\0", definition, message, 4, "body", LIBRARY)
    assert body is not None
    assert body.broken() is not None


# ---------------------------------------------------------------- how much sense a reading makes


@pytest.mark.parametrize(
    ("name", "version", "better", "worse"),
    [
        ("HeartbeatResponse", 0, "001b", "0013"),  # an error that Heartbeat returns, and one that it does not
        ("HeartbeatResponse", 0, "0013", "7fff"),  # an error, and none
        ("HeartbeatResponse", 1, "00000000 0000", "80000000 0000"),  # a throttle time below zero
        ("HeartbeatResponse", 4, "00000000 0000 00", "00000000 0000 010501ff"),  # an unknown tag
        ("HeartbeatResponse", 4, "00000000 0000 00", "00000000 0000 8000"),  # a varint longer than needed
        ("ListGroupsResponse", 0, "0000 00000001 00026162 0000", "0000 00000001 00020102 0000"),  # controls
        ("ListGroupsResponse", 0, "0000 00000001 00026162 0000", "0000 00000001 0002ff80 0000"),  # no UTF-8
        ("MetadataRequest", 4, "00000001 00026162 01", "00000001 00020a0a 01"),
    ],
)  # fmt: skip
def test_what_makes_sense_scores_higher(name: str, version: int, better: str, worse: str) -> None:
    definition, message = LIBRARY.registry.find(name).definition, LIBRARY.message(name)
    scores = []
    for raw in (better, worse):
        data = bytes.fromhex(raw)
        span = read_as(data, definition, message, version, "body", LIBRARY)
        assert span is not None
        assert span.broken() is None
        scores.append(plausibility(span, data, definition))
    assert scores[0] > scores[1]
