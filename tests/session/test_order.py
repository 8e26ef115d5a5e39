"""What waits for an older request: each exchange comes once, in the order of time; small batches are joined."""

from __future__ import annotations

from typing import Any

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
        assert order.release(of_exchanges([exchange]), exchanges[0].time) == []
    assert len(order._waiting) < 12
    middle = exchanges[120].time
    first = [exchange for batch in order.release(None, middle) for exchange in batch]
    rest = [exchange for batch in order.release(None, None) for exchange in batch]
    assert [each.correlation_id for each in first] == list(range(120))
    assert [each.correlation_id for each in rest] == list(range(120, 200))
    assert order.release(None, None) == []
