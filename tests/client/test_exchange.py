"""Frames made for a request: byte for byte what kwire decode reads, at every header version."""

from __future__ import annotations

import pytest

from kwire.client.exchange import request_frame
from kwire.codec.frames import decode_frame
from kwire.codec.library import builtin_library
from kwire.errors import EncodeError, UnknownName


@pytest.mark.parametrize(
    ("api", "version", "header", "client_id"),
    [
        ("Heartbeat", 0, 1, "me"),
        ("Heartbeat", 4, 2, "me"),
        ("ControlledShutdown", 0, 0, None),
        ("ListGroups", 3, 2, None),
    ],
)
def test_the_header_is_that_of_the_version(api: str, version: int, header: int, client_id: str | None) -> None:
    data = request_frame(builtin_library(), api, version, {}, 9, client_id)
    frame = decode_frame(data, size=True)
    assert (frame.quality, frame.api, frame.api_version, frame.header_version) == ("ok", api, version, header)
    assert (frame.correlation_id, frame.client_id) == (9, client_id)


def test_the_bytes_of_a_heartbeat() -> None:
    body = {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}
    data = request_frame(builtin_library(), "Heartbeat", 0, body, 2, "c")
    assert data.hex() == "00000015000c0000000000020001630001670000000100016d"


def test_what_cannot_be_written() -> None:
    with pytest.raises(EncodeError):
        request_frame(builtin_library(), "Heartbeat", 0, {"Group": "g"}, 1, None)
    with pytest.raises(UnknownName):
        request_frame(builtin_library(), "Heartbeat", 9, {}, 1, None)
