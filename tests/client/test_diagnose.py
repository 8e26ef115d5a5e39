"""Why a broker closed the connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.diagnose import why_closed
from kwire.client.security import Security

OFFERS = ((18, 0, 3), (1, 4, 16), (12, 0, 2), (17, 0, 1))


@pytest.mark.parametrize(
    ("api", "version", "handshake", "said"),
    [
        ("Fetch", 1, 34, "it takes Fetch v4-16, not v1, which Kafka 4.0 removed"),
        ("Heartbeat", 4, 34, "it takes Heartbeat v0-2, not v4"),
        ("LeaderAndIsr", 1, 34, "this listener does not serve LeaderAndIsr"),
        ("Fetch", 12, 33, "this listener wants a login: --sasl PLAIN or SCRAM-SHA-256"),
        ("Fetch", 12, 34, None),
    ],
)
def test_what_the_broker_tells_when_it_is_asked(
    fake: Callable[..., Any], replies: Any, api: str, version: int, handshake: int, said: str | None
) -> None:
    mechanisms = ["PLAIN", "SCRAM-SHA-256"] if handshake == 33 else []
    offer = replies.answer({"ErrorCode": handshake, "Mechanisms": mechanisms})
    server = fake([replies.versions(*OFFERS), offer])
    assert why_closed(server.address, Security(), api, version, 5.0) == said


def test_a_broker_before_api_versions(fake: Callable[..., Any], replies: Any) -> None:
    server = fake([replies.close])
    said = why_closed(server.address, Security(), "Metadata", 0, 5.0)
    assert said == "it closes on ApiVersions too: a broker before 0.10, or no broker"


def test_a_broker_that_is_gone(unused: Address) -> None:
    assert why_closed(unused, Security(), "Metadata", 0, 5.0) == "nothing listens there any more"


def test_nothing_is_made_up_where_the_answer_is_no_kafka(fake: Callable[..., Any], replies: Any) -> None:
    assert why_closed(fake([replies.raw(b"HTTP/1.1 200")]).address, Security(), "Metadata", 0, 5.0) is None
