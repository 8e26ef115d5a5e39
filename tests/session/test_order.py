"""What waits for an older request: each exchange comes once, in the order of time; small batches are joined."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.capture.segmenter import CaptureMoment, ClockStep
from kwire.session.batch import of_exchanges
from kwire.session.order import Order


def test_many_small_batches_that_wait_become_few_and_come_in_order(traffic: Any) -> None:
    tcp = traffic.connection()
    for ident in range(200):
        tcp.send(traffic.request("Heartbeat", 3, ident=ident))
        tcp.answer(traffic.response("Heartbeat", 3, ident=ident))
    exchanges = traffic.read().exchanges
    order = Order()
    for exchange in exchanges:
        assert order.release(of_exchanges([exchange]), CaptureMoment(0, exchanges[0].time)) == []
    assert len(order._waiting[0]) < 12
    middle = CaptureMoment(0, exchanges[120].time)
    first = [exchange for batch in order.release(None, middle) for exchange in batch]
    rest = [exchange for batch in order.release(None, None) for exchange in batch]
    assert [each.correlation_id for each in first] == list(range(120))
    assert [each.correlation_id for each in rest] == list(range(120, 200))
    assert order.release(None, None) == []


def test_what_is_much_comes_in_batches_that_follow_each_other(traffic: Any) -> None:
    first, second = traffic.connection(), traffic.connection()
    for ident in range(30):
        for tcp in (first, second):
            tcp.send(traffic.request("Heartbeat", 3, ident=ident))
        for tcp in (second, first):
            tcp.answer(traffic.response("Heartbeat", 3, ident=ident))
    exchanges = traffic.read().exchanges
    mixed = [exchanges[at : at + 12] for at in (24, 0, 48, 12, 36)]
    order = Order(piece=1)
    for some in mixed:  # parts overlap by every other exchange
        order._waiting.setdefault(0, []).extend([of_exchanges(some[::2]), of_exchanges(some[1::2])])
    batches = order.release(None, None)
    assert len(batches) > 3
    found = [(each.time, each.first.packet) for batch in batches for each in batch]
    assert found == [(each.time, each.first.packet) for each in exchanges]
    assert order.release(None, None) == []


@pytest.mark.parametrize("feed", [None, 1, 5])
def test_what_came_before_the_clock_went_back_comes_first(traffic: Any, feed: int | None) -> None:
    """Also where a request is open meanwhile, whatever the size of blocks."""
    poll, beats = traffic.connection(), traffic.connection("10.0.0.8:4000")
    poll.send(traffic.request("Fetch", 11, ident=99))
    for ident in range(10):
        if ident == 5:
            traffic.now -= 30_000_000_000
        beats.send(traffic.request("Heartbeat", 3, ident=ident))
        beats.answer(traffic.response("Heartbeat", 3, ident=ident))
    poll.answer(traffic.response("Fetch", 11, ident=99))
    assert [each.correlation_id for each in traffic.read(feed=feed).exchanges] == [99, *range(10)]


def test_of_eras_that_wait_the_older_one_is_given_up_first(traffic: Any) -> None:
    tcp = traffic.connection()
    for ident in range(40):
        if ident == 20:
            traffic.now -= 30_000_000_000
        tcp.send(traffic.request("Heartbeat", 3, ident=ident))
        tcp.answer(traffic.response("Heartbeat", 3, ident=ident))
    exchanges = traffic.read().exchanges
    order = Order([ClockStep(exchanges[20].first.packet, exchanges[19].time, exchanges[20].time)], waiting=30)
    given = order.release(of_exchanges(exchanges), CaptureMoment(0, 0))
    assert [each.correlation_id for batch in given for each in batch] == list(range(11))
    assert [each.correlation_id for batch in order.release(None, None) for each in batch] == list(range(11, 40))


@pytest.mark.parametrize("order", [Order(waiting=10), Order(held=300)], ids=["exchanges", "bytes"])
def test_only_so_many_wait_for_an_older_one(traffic: Any, order: Order) -> None:
    poll, beats = traffic.connection(), traffic.connection("10.0.0.8:4000")
    poll.send(traffic.request("Fetch", 11, ident=99))
    for ident in range(40):
        beats.send(traffic.request("Heartbeat", 3, ident=ident))
        beats.answer(traffic.response("Heartbeat", 3, ident=ident))
    poll.answer(traffic.response("Fetch", 11, ident=99))
    first, *rest = traffic.read().exchanges
    given = []
    for each in rest:
        given += order.release(of_exchanges([each]), CaptureMoment(0, first.time))
    assert sum(map(len, given)) > 20
    given += order.release(of_exchanges([first]), None)
    assert {each.correlation_id for batch in given for each in batch} == {*range(40), 99}
    assert [each.time for batch in given for each in batch if each.api == "Heartbeat"] == [each.time for each in rest]
