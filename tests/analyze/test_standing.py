"""The one line on where a consumer stands, in real captures and cut ones."""

from __future__ import annotations

import pytest
from traces import consumer, traced

from kwire.analyze.standing import verdict


@pytest.mark.parametrize(
    ("capture", "client_id", "until", "severity", "what"),
    [
        ("classic", "classic-c1", None, "note", "left its group at 22.773 (frame 542)"),
        ("classic", "classic-c1", 20.0, "note", "consumes: 34 fetches, records since 5.212"),
        (
            "evict-slow-joiner",
            "third",
            9.4,
            "warning",
            "waits in step 3, join: JoinGroup of 6.479 (frame 356) has no answer after 2.9 s",
        ),
        ("evict-fenced", "first", 7.0, "error", "failed in step 5, heartbeat: FENCED_INSTANCE_ID at 6.811 (frame 360)"),
    ],
)
def test_where_a_consumer_stands(capture: str, client_id: str, until: float | None, severity: str, what: str) -> None:
    trace, clock = traced(capture, until)
    found = verdict(consumer(trace, client_id), trace.end, clock)
    assert (found.severity, found.what) == (severity, what)


def test_a_consumer_that_never_fetches() -> None:
    trace, clock = traced("classic", 8.0, without="Fetch")
    found = verdict(consumer(trace, "classic-c1"), trace.end, clock)
    assert found.what == "came as far as step 6, offsets, at 3.405; fetch was not reached"
