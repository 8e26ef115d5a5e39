"""What is read as columns and what is read one by one comes to the same: Fetch and Produce of real captures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes import packets_of
from session.conftest import block

from kwire.analyze.fetched import ANSWERED, ASKED, TOP, Flat, fetched
from kwire.analyze.produced import produced
from kwire.codec.thresholds import ONE_BY_ONE, TOGETHER, Thresholds
from kwire.session.batch import ExchangeBatch
from kwire.session.decoded import Decoded
from kwire.session.reader import Reader, Settings

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NAMES = ["classic.pcap.gz", "oldjava.pcap.gz", "franz.pcap.gz", "txn.pcap.gz", "kafkajs.pcap"]


def batches(name: str, thresholds: Thresholds) -> list[ExchangeBatch]:
    reader = Reader(name, Settings(thresholds=thresholds), tracking=True)
    return [*reader.feed(block(packets_of(CAPTURES / name), 1)), *reader.finish()]


def rows(flat: Flat, names: tuple[str, ...]) -> list[tuple[object, ...]]:
    columns = [flat.row, flat.partition] if hasattr(flat, "partition") else [flat.row]
    values = [flat.values[name] for name in names]
    found = zip(*(column.tolist() for column in (*columns, flat.size, *values)), strict=True)
    return sorted((flat.names[topic], *row) for topic, row in zip(flat.topic.tolist(), found, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_both_ways(name: str) -> None:
    seen = 0
    for batch, other_batch in zip(batches(name, TOGETHER), batches(name, ONE_BY_ONE), strict=True):
        for number, kind in enumerate(batch.kinds):
            if kind is None or kind.key not in (0, 1):
                continue
            columnar = Decoded(batch)
            single = Decoded(other_batch)
            if kind.key == 0:
                one, other = produced(columnar, number), produced(single, number)
                for made in (one, other):
                    made.row, order = np.sort(made.row, kind="stable"), np.argsort(made.row, kind="stable")
                    for column in ("topic", "partition", "size", "records", "codec", "magic", "transactional"):
                        setattr(made, column, getattr(made, column)[order])
                assert [one.names[at] for at in one.topic.tolist()] == [other.names[at] for at in other.topic.tolist()]
                for column in ("row", "partition", "size", "records", "codec", "magic", "transactional"):
                    assert getattr(one, column).tolist() == getattr(other, column).tolist()
                seen += len(one)
            else:
                left, right = fetched(columnar, number), fetched(single, number)
                assert rows(left.asked, ASKED) == rows(right.asked, ASKED)
                assert rows(left.answered, ANSWERED) == rows(right.answered, ANSWERED)
                places = [np.argsort(one.rows, kind="stable") for one in (left, right)]
                for top in TOP:
                    assert left.top[top][places[0]].tolist() == right.top[top][places[1]].tolist()
                seen += len(left.asked)
    assert seen
