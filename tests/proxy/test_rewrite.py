"""The seven answers that name brokers, and ApiVersions."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from kwire.codec.headers import response_header_version
from kwire.codec.library import builtin_library
from kwire.proxy.link import PendingRequest
from kwire.proxy.rewrite import carries_addresses, edits
from kwire.proxy.splice import body_start
from kwire.proxy.types import PeerRefused
from kwire.session.broker_ids import ADDRESSES

LIBRARY = builtin_library()
NODE = {"Host": "b1.example", "Port": 9092}


def local(key: int, host: str, port: int, node: int) -> tuple[str, int]:
    assert key in ADDRESSES
    assert node in (-1, 0)
    return f"local-{host}", port + 1


def frame(key: int, version: int, body: dict[str, Any]) -> bytes:
    message = LIBRARY.api_message(key, request=False)
    assert message is not None
    head = b"\0\0\0\7" + b"\0" * response_header_version(key, version, message)
    data = head + LIBRARY.codec(message.name, version).encode(body)
    return pack(">i", len(data)) + data


def changed(key: int, version: int, sent: bytes) -> dict[str, Any]:
    edit = edits(local).response(PendingRequest(key, version, 7))
    assert edit is not None
    got = edit(sent)
    assert int.from_bytes(got[:4]) == len(got) - 4
    message = LIBRARY.api_message(key, request=False)
    assert message is not None
    return LIBRARY.codec(message.name, version).decode(got[body_start(got, key, version) :])


CASES = [
    pytest.param(key, version, id=f"{LIBRARY.registry.name_of(key)}-{version}")
    for key in ADDRESSES
    for version in LIBRARY.registry.api(key).messages[1].versions.each()
    if carries_addresses(PendingRequest(key, version, 7))
]


@pytest.mark.parametrize(("key", "version"), CASES)
def test_every_version_is_rewritten(key: int, version: int) -> None:
    where = ADDRESSES[key]
    sent = frame(key, version, NODE if key == 10 and version < 4 else {where: [NODE]})
    body = changed(key, version, sent)
    node = body if key == 10 and version < 4 else body[where][0]
    assert (node["Host"], node["Port"]) == ("local-b1.example", 9093)


def test_no_other_answer_that_clients_follow_names_brokers() -> None:
    """DescribeQuorum tells controllers' listeners, for people; Kafka Streams where its own instances are."""
    found = set()
    for definition in LIBRARY.registry.apis():
        response = definition.messages[1]
        names = {field.name for _, field in response.walk()}
        if {"Host", "Port"} <= names and "broker" in definition.listeners:
            found.add(definition.key)
    assert found - set(ADDRESSES) <= {55, 88, 89}


@pytest.mark.parametrize(("key", "version"), [(1, 16), (0, 10), (10, 3), (10, 6)])
def test_an_answer_without_addresses_passes_as_it_is(key: int, version: int) -> None:
    sent = frame(key, version, {"Host": "", "Port": -1} if (key, version) == (10, 3) else {})
    edit = edits(local).response(PendingRequest(key, version, 7))
    assert edit is not None
    assert edit(sent) is sent


def test_an_unknown_layout_of_an_answer_with_addresses_is_refused() -> None:
    with pytest.raises(PeerRefused, match="API 3 v99 names brokers, and its layout is not known"):
        edits(local).response(PendingRequest(3, 99, 7))


def test_an_answer_that_cannot_be_read_is_refused() -> None:
    edit = edits(local).response(PendingRequest(3, 9, 7))
    assert edit is not None
    with pytest.raises(PeerRefused, match="the broker's answer cannot be read"):
        edit(pack(">iib", 6, 7, 0) + b"\xff")


def keys(*ranges: tuple[int, int, int]) -> dict[str, Any]:
    return {"ApiKeys": [{"ApiKey": key, "MinVersion": low, "MaxVersion": high} for key, low, high in ranges]}


@pytest.mark.parametrize("version", [0, 3, 4])
def test_versions_are_capped_to_known_layouts(version: int) -> None:
    most = LIBRARY.registry.api(3).messages[1].versions.high
    body = changed(18, version, frame(18, version, keys((3, 0, most + 5), (12, 0, 4), (30_000, 0, 1), (1, 500, 600))))
    found = [(each["ApiKey"], each["MinVersion"], each["MaxVersion"]) for each in body["ApiKeys"]]
    assert found == [(3, 0, most), (12, 0, 4)]


def test_versions_that_are_all_known_pass_as_they_are() -> None:
    sent = frame(18, 3, keys((3, 0, 9), (12, 0, 4)))
    edit = edits(local).response(PendingRequest(18, 3, 7))
    assert edit is not None
    assert edit(sent) is sent


def test_the_answer_to_an_unknown_version_of_apiversions_has_the_form_of_v0() -> None:
    sent = frame(18, 0, {"ErrorCode": 35, **keys((18, 0, 90))})
    edit = edits(local).response(PendingRequest(18, 99, 7))
    assert edit is not None
    body = LIBRARY.codec("ApiVersionsResponse", 0).decode(edit(sent)[8:])
    assert body["ApiKeys"][0]["MaxVersion"] == LIBRARY.registry.api(18).messages[1].versions.high
