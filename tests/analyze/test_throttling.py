"""ThrottleTimeMs of all answers, in columns: the same as their bodies say."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import packets_of
from session.conftest import block

from kwire.analyze.throttling import throttles
from kwire.session.batch import ExchangeBatch
from kwire.session.reader import Reader

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def batches(name: str) -> list[ExchangeBatch]:
    reader = Reader(name, tracking=True)
    packets = packets_of(CAPTURES / name)
    return [*reader.feed(block(packets, 1)), *reader.finish()]


@pytest.mark.parametrize("name", ["old39.pcap.gz", "franz.pcap.gz", "evict-refused-commits.pcap.gz", "share.pcap"])
def test_columns_say_what_bodies_say(name: str) -> None:
    for batch in batches(name):
        found = {one.row: one.ms for one in throttles(batch)}
        for row, exchange in enumerate(batch):
            body = (exchange.response.body() if exchange.response else None) or {}
            assert found.get(row, 0) == body.get("ThrottleTimeMs", 0)
