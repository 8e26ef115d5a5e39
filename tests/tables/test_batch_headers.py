"""Headers of chains of batches: together and one by one they are those that reading the records finds."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest

from kwire.codec.example import BATCH
from kwire.records import read_records
from kwire.records.build import build
from kwire.tables import batch_headers
from kwire.wire.columns import Columns

OLD = build([(b"k", b"v")], magic=1)
CHAINS = [b"", BATCH, BATCH * 3 + BATCH[:40], BATCH[:20], BATCH + b"\x7f" * 30, BATCH + OLD, OLD, BATCH * 2]
both = pytest.mark.parametrize("few", [0, 3, 100])  # chains that are walked one by one: none, the last ones, all


def found(chains: list[bytes], few: int) -> tuple[batch_headers.Headers, bytes]:
    buffer = b"".join(chains)
    lengths = [len(chain) for chain in chains]
    starts = [0, *accumulate(lengths)][: len(chains)]
    made = batch_headers.headers(buffer, Columns(buffer), np.array(starts, np.int64), np.array(lengths, np.int64), few)
    return made, buffer


@both
def test_batches_of_chains(few: int) -> None:
    made, _ = found(CHAINS, few)
    assert made.chain.tolist() == [1, 2, 2, 2, 4, 5, 5, 6, 7, 7]
    assert made.number.tolist() == [0, 0, 1, 2, 0, 0, 1, 0, 0, 1]
    assert made.old.tolist() == [False] * 6 + [True, True, False, False]
    assert (made.end - made.start)[~made.old].tolist() == [len(BATCH)] * 8
    assert len(made) == 10


@both
def test_columns_are_the_fields_of_batches(few: int) -> None:
    chain = b"".join([
        build([(b"k", b"v")] * 3, base_offset=7, timestamp=9, compression="lz4"),
        build([(b"k", b"v")], producer_id=5, producer_epoch=2, base_sequence=8, is_transactional=True),
        build([(b"k", b"v")], producer_id=5, producer_epoch=2, is_control=True, log_append_time=77),
        BATCH[:-1] + b"!",
    ])  # fmt: skip
    made, buffer = found([chain], few)
    columns = {name: make().to_pylist() for name, make in batch_headers.columns(made, buffer).items()}
    expected = read_records(chain)
    for name in ("base_offset", "last_offset", "compression", "is_transactional", "is_control", "max_timestamp"):
        assert columns[name] == [getattr(batch, name) for batch in expected], name
    assert columns["crc_ok"] == [True, True, True, False] == [batch.crc_ok for batch in expected]
    assert columns["records"] == [3, 1, 1, 1]
    assert columns["bytes"] == [batch.size for batch in expected]
    assert columns["producer_id"][:3] == [None, 5, 5]
    assert columns["producer_epoch"][:3] == [None, 2, 2]
    assert columns["base_sequence"][:3] == [None, 8, -1]
    assert columns["timestamp_type"] == ["create", "create", "append", "create"]
    assert columns["magic"] == [2] * 4


@both
def test_messages_of_old_formats_are_batches_of_one(few: int) -> None:
    chain = b"".join([
        build([(b"k", b"v")], magic=0), build([(b"k", b"v")], base_offset=6, magic=1, timestamp=7),
        build([(b"k", b"v")] * 2, magic=1, timestamp=8, compression="gzip"), OLD[:-1] + b"!",
    ])  # fmt: skip
    made, buffer = found([chain], few)
    columns = {name: make().to_pylist() for name, make in batch_headers.columns(made, buffer).items()}
    assert columns["magic"] == [0, 1, 1, 1]
    assert columns["records"] == [1, 1, None, 1]
    assert made.records.tolist() == [1, 1, 0, 1]
    assert made.wraps.tolist() == [False, False, True, False]
    assert columns["base_offset"] == columns["last_offset"] == [0, 6, 1, 0]
    assert columns["first_timestamp"] == columns["max_timestamp"]
    assert columns["max_timestamp"][:3] == [None, 7, 8]
    assert columns["timestamp_type"] == [None, "create", "create", "create"]
    assert columns["compression"] == ["none", "none", "gzip", "none"]
    assert columns["crc_ok"] == [True, True, True, False]
    assert columns["producer_id"] == columns["producer_epoch"] == columns["base_sequence"] == [None] * 4
    assert columns["is_control"] == columns["is_transactional"] == [False] * 4


def test_no_chains() -> None:
    made, buffer = found([], 0)
    assert len(made) == 0
    assert all(len(make()) == 0 for make in batch_headers.columns(made, buffer).values())
