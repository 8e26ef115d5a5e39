"""What is known of each API key and version."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwire.codec.library import builtin_library
from kwire.session.api_versions import NEWER, Kinds

HEADERS = [
    (7, 0, "ControlledShutdown", 0, 0),
    (7, 1, "ControlledShutdown", 1, 0),
    (7, 3, "ControlledShutdown", 2, 1),
    (12, 3, "Heartbeat", 1, 0),
    (12, 4, "Heartbeat", 2, 1),
    (18, 2, "ApiVersions", 1, 0),
    (18, 4, "ApiVersions", 2, 0),  # always answered with header v0 (KIP-511)
    (0, 8, "Produce", 1, 0),
    (0, 9, "Produce", 2, 1),
    (17, 1, "SaslHandshake", 1, 0),  # never flexible
]


@pytest.mark.parametrize(("key", "version", "api", "request_header", "response_header"), HEADERS)
def test_names_and_headers(key: int, version: int, api: str, request_header: int, response_header: int) -> None:
    kind = Kinds().of(key, version)
    assert (kind.key, kind.version, kind.api, kind.supported) == (key, version, api, True)
    assert (kind.request_header, kind.response_header) == (request_header, response_header)


UNKNOWN = [(200, 0, "ApiKey200"), (-1, 3, "ApiKey-1"), (3, 99, "Metadata"), (3, -1, "Metadata"), (95, 0, "ApiKey95")]


@pytest.mark.parametrize(("key", "version", "api"), UNKNOWN)
def test_what_nobody_knows_has_a_name_too(key: int, version: int, api: str) -> None:
    kind = Kinds().of(key, version)
    assert (kind.api, kind.supported, kind.tells_names) == (api, False, False)


def test_an_unknown_api_is_new_and_therefore_flexible() -> None:
    kind = Kinds().of(200, 0)
    assert (kind.request_header, kind.response_header) == (2, 1)
    assert kind.message("request") is kind.message("response") is None


def test_definitions_by_kind() -> None:
    kind = Kinds().of(1, 16)
    names = [definition.name for way in ("request", "response") if (definition := kind.message(way))]
    assert names == ["FetchRequest", "FetchResponse"]


TELLING = [
    (3, 9, False),  # Metadata has topic ids from v10 on
    (3, 10, True),
    (3, 12, True),
    (19, 6, False),  # CreateTopics from v7 on
    (19, 7, True),
    (1, 16, False),  # Fetch has the ids alone
    (75, 0, True),  # DescribeTopicPartitions
    (12, 4, False),
]


@pytest.mark.parametrize(("key", "version", "tells"), TELLING)
def test_responses_that_hold_ids_beside_names(key: int, version: int, tells: bool) -> None:
    assert Kinds().of(key, version).tells_names is tells


def test_each_is_looked_up_once() -> None:
    kinds = Kinds()
    assert kinds.of(1, 16) is kinds.of(1, 16)
    assert kinds.of(1, 16) is not kinds.of(1, 15)


def test_what_is_read_from_the_wire_does_not_fill_the_memory() -> None:
    kinds = Kinds()
    for version in range(10_010):
        kinds.of(1000, version)
    assert len(kinds._known) == 10_000
    assert kinds.of(1000, 10_009).api == "ApiKey1000"


def test_the_highest_versions_leave_room_for_newer_ones() -> None:
    kinds = Kinds()
    request = builtin_library().api_message(12, request=True)
    assert request is not None
    assert np.flatnonzero(kinds.all_highest >= 0).tolist() == list(range(95))
    assert kinds.all_highest[12] == kinds.highest(12)
    assert kinds.highest(12) == request.versions.high + NEWER
    assert [kinds.highest(key) for key in (-1, 95, 30_000)] == [None] * 3


@pytest.mark.parametrize(
    ("way", "data", "errors"), [("request", "0001 67 00000001 0001 6d", []), ("response", "001b", [27])]
)
def test_scans_walk_over_bodies(way: str, data: str, errors: list[int]) -> None:
    found: list[Any] = []
    kind = Kinds().of(12, 0)
    scan = kind.scan_request if way == "request" else kind.scan_response
    assert scan(bytes.fromhex(data), 0, found) == len(bytes.fromhex(data))
    assert found == errors
