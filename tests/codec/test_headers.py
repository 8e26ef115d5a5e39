"""Header versions against the official classes, and the bytes of each header."""

from __future__ import annotations

import pytest
from vectors import jsonl

from kwire.codec.annotate import annotate
from kwire.codec.headers import header_plan, request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.span import fields
from kwire.codec.values import Codec
from kwire.errors import UnknownName


def official() -> list[tuple[int, str, dict[str, int], dict[str, int]]]:
    return [
        (row["id"], row["name"], row["requestHeaderVersion"], row["responseHeaderVersion"])
        for row in jsonl("vectors/apis")
        if "requestHeaderVersion" in row
    ]


def test_every_header_version_is_the_official_one() -> None:
    library, checked = builtin_library(), 0
    for key, name, requests, responses in official():
        request, response = library.api_message(key, True), library.api_message(key, False)
        for version, header in requests.items():
            assert request_header_version(key, int(version), request) == header, f"{name} v{version}"
            checked += 1
        for version, header in responses.items():
            assert response_header_version(key, int(version), response) == header, f"{name} v{version}"
    assert checked > 368


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (7, 0, 0, 0),  # ControlledShutdown: before client ids
        (7, 1, 1, 0),
        (7, 3, 2, 1),
        (12, 3, 1, 0),
        (12, 4, 2, 1),
        (18, 0, 1, 0),  # ApiVersions: its response is for clients that know nothing yet
        (18, 3, 2, 0),
        (18, 99, 2, 0),
        (1, 99, 2, 1),
        (32000, 0, 2, 1),
        (-1, -1, 2, 1),
    ],
)
def test_header_versions(key: int, version: int, request_header: int, response_header: int) -> None:
    library = builtin_library()
    assert request_header_version(key, version, library.api_message(key, True)) == request_header
    assert response_header_version(key, version, library.api_message(key, False)) == response_header


REQUEST = {"RequestApiKey": 12, "RequestApiVersion": 4, "CorrelationId": 7}


@pytest.mark.parametrize(
    ("name", "version", "values", "raw"),
    [
        ("RequestHeader", 0, REQUEST, "000c000400000007"),
        ("RequestHeader", 1, REQUEST | {"ClientId": "me"}, "000c000400000007 00026d65"),
        ("RequestHeader", 1, REQUEST | {"ClientId": None}, "000c000400000007 ffff"),
        ("RequestHeader", 2, REQUEST | {"ClientId": "me"}, "000c000400000007 00026d65 00"),
        ("RequestHeader", 2, REQUEST | {"ClientId": None, "_tagged": {5: b"x"}}, "000c000400000007 ffff 01050178"),
        ("ResponseHeader", 0, {"CorrelationId": -1}, "ffffffff"),
        ("ResponseHeader", 1, {"CorrelationId": 7}, "00000007 00"),
    ],
)
def test_a_header_is_written_and_read(name: str, version: int, values: dict[str, object], raw: str) -> None:
    plan, data = header_plan(name, version), bytes.fromhex(raw)
    assert Codec(plan).encode(values) == data
    assert fields(annotate(plan, data)) == values


def test_a_header_plan_is_made_once_and_only_for_versions_that_there_are() -> None:
    assert header_plan("RequestHeader", 2) is header_plan("RequestHeader", 2)
    with pytest.raises(UnknownName, match=r"^no version 3 of RequestHeader \(it has 0-2\)$"):
        header_plan("RequestHeader", 3)
