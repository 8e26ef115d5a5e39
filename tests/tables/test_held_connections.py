"""Rows of connections wait for answers that name their brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tablerows import rows_of

from kwire.session.broker_ids import BrokerIds
from kwire.session.reader import Settings
from kwire.tables.build import Builder, read_into, tables_of
from kwire.tables.held_connections import HeldConnections, with_broker_ids
from kwire.tables.schemas import batch_of_rows

B1: dict[str, Any] = {"Host": "10.0.0.2", "Port": 9092, "NodeId": 1}


@pytest.fixture
def capture(traffic: Any) -> Path:
    """A connection that is over before another's answer names the broker."""
    first = traffic.connection()
    first.send(traffic.request("Heartbeat", 4, {})).answer(traffic.response("Heartbeat", 4, {})).close()
    second = traffic.connection(51600)
    second.send(traffic.request("Metadata", 12, {})).answer(traffic.response("Metadata", 12, {"Brokers": [B1]})).close()
    path: Path = traffic.save(traffic.folder / "made.pcap")
    return path


def test_a_connection_has_its_brokers_id_though_it_was_told_later(capture: Path) -> None:
    found = rows_of(tables_of([capture], ["connections"])["connections"])
    assert [row["broker_id"] for row in found] == [1, 1]


@pytest.mark.parametrize("columns", [["broker_id"], ["client_id", "broker_id"], ["connection"]])
def test_only_the_columns_that_are_wanted(columns: list[str], capture: Path) -> None:
    found: list[pa.RecordBatch] = []
    builder = Builder(["connections"], lambda _, batch: found.append(batch), columns=columns)
    builder.finish(read_into(builder, [capture], Settings()))
    (batch,) = found
    assert sorted(batch.schema.names) == sorted(columns)
    assert "broker_id" not in columns or batch.column("broker_id").to_pylist() == [1, 1]


def test_many_rows_wait_in_a_file_and_keep_their_order() -> None:
    held, ids = HeldConnections(memory=1000), BrokerIds()
    ids.add("::1", 9092, 3)
    for number in range(200):
        held.add(batch_of_rows("connections", [{"connection": f"[::2]:{number}>[::1]:9092#1"}]))
    rows = [row for batch in held.release(ids) for row in batch.to_pylist()]
    assert [(row["connection"], row["broker_id"]) for row in rows] == [
        (f"[::2]:{number}>[::1]:9092#1", 3) for number in range(200)
    ]


def test_rows_without_the_column_stay_as_they_are() -> None:
    batch = batch_of_rows("connections", [{"connection": "a"}], ["connection"])
    assert with_broker_ids(batch, BrokerIds()) is batch
