"""Client ids of many rows: each once, and of a batch only once as long as its rows are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kwire.session.batch import ExchangeBatch, concatenated
from kwire.session.client_ids import client_ids_at
from kwire.session.reading import Reading

CAPTURE = Path(__file__).parents[2] / "fixtures" / "captures" / "evict-fenced.pcap.gz"


def each(batch: ExchangeBatch) -> list[str | None]:
    names, which = batch.client_ids()
    return [names[at] for at in which.tolist()]


def test_each_name_stands_once() -> None:
    names, which = client_ids_at(b"firstother\xff", np.array([0, 5, 0, 0, 10, 0]), np.array([5, 5, 5, -1, 1, 0]))
    assert names == ["first", "other", None, "\udcff", ""]
    assert which.tolist() == [0, 1, 0, 2, 3, 4]


def test_they_are_read_once_and_again_for_other_rows() -> None:
    batch = concatenated(list(Reading([CAPTURE]).batches()))
    expected = [batch.client_id(row) for row in range(len(batch))]
    assert batch.client_ids() is batch.client_ids()
    assert each(batch) == expected
    assert each(batch.take(np.arange(len(batch))[::-1])) == expected[::-1]
    assert each(batch.part(batch.errors > 0)) == [expected[row] for row in np.flatnonzero(batch.errors > 0)]
    assert each(concatenated([batch.first(3), batch])) == expected[:3] + expected
    assert each(batch.compact()) == expected
    batch.client_start, batch.client_length = batch.client_start[::-1], batch.client_length[::-1]
    assert each(batch) == expected[::-1]
