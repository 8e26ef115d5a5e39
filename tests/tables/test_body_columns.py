"""Columns that bodies tell are what single bodies say, in every capture and for what is made by hand."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.codec.example import BATCH
from kwire.session.exchange import Exchange
from kwire.session.reading import Reading
from kwire.tables.body_columns import ISOLATION, MS, BodyColumns
from kwire.tables.exchange_columns import exchange_batch

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
Row = dict[str, Any]
NAMES = ("held_ns", "throttle_ns", "group", "transactional_id", "acks", "isolation_level", "max_wait_ms", "rack")


def said(exchange: Exchange) -> Row:
    """The columns from decoded bodies."""
    request = (exchange.request.body() if exchange.request else None) or {}
    response = exchange.response.body() if exchange.response else None
    if exchange.response is not None and exchange.response.body_version is not None:
        response = None  # refused: in the form of version 0
    what = exchange.about if exchange.request else None
    throttle, level = (response or {}).get("ThrottleTimeMs"), request.get("IsolationLevel")
    held, latency = None, exchange.latency or 0
    if latency > 0 and exchange.api in ("JoinGroup", "SyncGroup") and not exchange.error:
        held = latency
    elif exchange.api == "Fetch" and response is not None and request:
        empty = not any(each["Records"] for topic in response["Responses"] for each in topic["Partitions"])
        wait = request["MaxWaitMs"] * MS
        held = min(latency, wait) if wait > 0 and empty and latency * 10 >= wait * 9 else None
    return {
        "held_ns": held, "throttle_ns": None if throttle is None else throttle * MS,
        "group": next(iter(what.groups), None) if what else None,
        "transactional_id": next(iter(what.transactions), None) if what else None, "acks": request.get("Acks"),
        "isolation_level": None if level is None else ISOLATION[level], "max_wait_ms": request.get("MaxWaitMs"),
        "rack": request.get("RackId") or None,
    }  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
def test_columns_are_what_bodies_say(path: Path) -> None:
    for batch in Reading([path]).batches():
        found = exchange_batch(batch, NAMES)
        expected = [{name: said(exchange)[name] for name in found.schema.names} for exchange in batch]
        assert set(found.schema.names) == set(NAMES)
        assert found.to_pylist() == expected


def test_racks_throttles_and_what_lies_behind_long_texts(traffic: Any, ways: Any) -> None:
    tcp = traffic.connection()
    for ident in range(60):
        asked: Row = {"MaxWaitMs": 500, "IsolationLevel": ident % 2, "RackId": ("", "r1", "räck")[ident % 3]}
        tcp.send(traffic.request("Fetch", 12, asked, ident)).answer(
            traffic.response("Fetch", 12, {"ThrottleTimeMs": ident}, ident)
        )
        produced = {"TransactionalId": "t" * 200 if ident % 2 else None, "Acks": -1 if ident % 2 else 1}
        tcp.send(traffic.request("Produce", 9, produced, 1000 + ident)).answer(
            traffic.response("Produce", 9, {"ThrottleTimeMs": 7}, 1000 + ident)
        )
    rows = ways.both(traffic.save(traffic.folder / "made.pcap"), ["exchanges"])["exchanges"]
    fetches = [row for row in rows if row["api"] == "Fetch"]
    assert {(row["rack"], row["isolation_level"]) for row in fetches} == {
        (rack, level) for rack in (None, "r1", "räck") for level in ISOLATION
    }
    assert {row["throttle_ns"] // MS for row in fetches} == set(range(60))
    produces = [row for row in rows if row["api"] == "Produce"]
    assert {(row["transactional_id"], row["acks"], row["throttle_ns"]) for row in produces} == {
        (None, 1, 7 * MS), ("t" * 200, -1, 7 * MS),
    }  # fmt: skip


def test_an_empty_fetch_is_held_as_long_as_it_may_wait(traffic: Any) -> None:
    tcp = traffic.connection()
    for ident, records in enumerate((b"", BATCH)):
        given = {"Responses": [{"Topic": "t", "Partitions": [{"PartitionIndex": 0, "Records": records}]}]}
        tcp.send(traffic.request("Fetch", 11, {"MaxWaitMs": 900}, ident))
        tcp.answer(traffic.response("Fetch", 11, given, ident))
    (batch,) = Reading([traffic.save(traffic.folder / "made.pcap", 1_000_000_000)]).batches()
    found: pa.RecordBatch = exchange_batch(batch, ["latency_ns", "held_ns"])
    assert found.to_pylist() == [
        {"latency_ns": 1_000_000_000, "held_ns": 900_000_000}, {"latency_ns": 1_000_000_000, "held_ns": None},
    ]  # fmt: skip


def test_columns_let_go_of_a_batch_without_a_collection() -> None:
    """Collections are seldom: a circle of references would hold the bytes of many batches."""
    batch = next(Reading([CAPTURES / "classic.pcap.gz"]).batches())
    made = BodyColumns(batch)
    arrays = [make() for make in made.makes.values()]
    gone = weakref.ref(made)
    gc.disable()
    try:
        del made
        assert gone() is None
    finally:
        gc.enable()
    assert {len(array) for array in arrays} == {len(batch)}
