"""Consumers on their way through the seven steps, in real captures and cut ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.analyze.findings import Clock
from kwire.analyze.trace import Consumer, Trace, verdict
from kwire.session.exchange import Exchange
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def traced(name: str, until: float | None = None, without: str = "") -> tuple[Trace, Clock]:
    """until: seconds after which exchanges are not looked at, and answers not there; without: APIs left out."""
    reading = Reading([next(CAPTURES.glob(f"{name}.pcap*"))], tracking=True)
    trace = Trace()
    exchanges = list(reading.exchanges())
    first = min(reader.first_time or 0 for reader in reading.readers)
    end = None if until is None else first + round(until * 1e9)
    for exchange in exchanges:
        if exchange.api == without or (end is not None and exchange.time > end):
            continue
        if end is not None and exchange.response is not None and exchange.response.time > end:
            exchange = Exchange(exchange.connection, exchange.request, None, "the capture ended")
        trace.add(exchange)
    if end is not None:
        trace.end = end
    return trace, Clock(first)


def consumer(trace: Trace, client_id: str) -> Consumer:
    (found,) = [one for one in trace.consumers() if one.client_id == client_id]
    return found


@pytest.mark.parametrize(
    ("capture", "client_id", "reached"),
    [
        ("classic", "classic-c1", [0.327, 0.384, 3.396, 3.402, 3.404, 3.405, 4.019]),
        ("consumer848", "consumer848-c2", [3.529, 3.534, 3.56, 3.56, 3.622, 8.828, 9.351]),
    ],
)
def test_all_seven_steps(capture: str, client_id: str, reached: list[float]) -> None:
    trace, clock = traced(capture)
    steps = consumer(trace, client_id).steps
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7]
    assert clock.start is not None
    times = [(step.reached.time - clock.start) / 1e9 for step in steps if step.reached]
    assert times == pytest.approx(reached, abs=0.0015)


def test_what_the_steps_say() -> None:
    trace, _ = traced("classic")
    assert [step.detail for step in consumer(trace, "classic-c1").steps] == [
        "1 broker; topics classic-orders (4)",
        "node 1, 127.0.0.1:9092",
        "generation 4, leader of 2, session timeout 6,000 ms",
        "2 partitions: classic-orders-0,1",
        "",
        "2 of 2 partitions with a committed offset",
        "2 partitions: classic-orders-0,1",
    ]


def test_producers_and_tools_are_no_consumers() -> None:
    trace, _ = traced("classic")
    assert [one.client_id for one in trace.consumers()] == ["classic-c1", "classic-c2"]


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


def test_rounds_count_joins() -> None:
    trace, _ = traced("classic")
    assert consumer(trace, "classic-c2").rounds == 3
