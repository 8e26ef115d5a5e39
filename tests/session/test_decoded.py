"""Bodies of a batch, a kind at a time: as columns, whoever read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.session.batch import ExchangeBatch
from kwire.session.decoded import Decoded
from kwire.session.reading import Reading

TAGGED = {"Responses": [{"Name": "t", "PartitionResponses": [{"Index": 0, "CurrentLeader": {"LeaderId": 3}}]}]}
PLAIN = {"Responses": [{"Name": "t", "PartitionResponses": [{"Index": 0, "BaseOffset": 5}]}]}


def batch_of(traffic: Any, folder: Path, answers: list[Any], count: int = 60) -> ExchangeBatch:
    tcp = traffic.connection()
    asked = {"Acks": 1, "TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": b""}]}]}
    for ident in range(count):
        tcp.send(traffic.request("Produce", 10, asked, ident))
        tcp.answer(traffic.response("Produce", 10, answers[ident % len(answers)], ident))
    (batch,) = Reading([traffic.save(folder / "made.pcap")]).batches()
    return batch


def test_bodies_stand_row_by_row_beside_their_exchanges(traffic: Any, tmp_path: Path) -> None:
    batch = batch_of(traffic, tmp_path, [PLAIN])
    decoded = Decoded(batch)
    for bodies in (decoded.requests(0), decoded.responses(0)):
        assert bodies.rows.tolist() == decoded.rows(0).tolist() == list(range(len(batch)))
        assert len(bodies.columns) == len(batch) > 40
    assert decoded.requests(0).columns.fields["Acks"].to_list(batch.buffer) == [1] * len(batch)


def test_tagged_fields_change_nothing(traffic: Any, tmp_path: Path) -> None:
    batch = batch_of(traffic, tmp_path, [PLAIN, TAGGED, PLAIN])
    bodies = Decoded(batch).responses(0)
    assert bodies.rows.tolist() == list(range(len(batch)))
    found = bodies.columns.to_list(bodies.buffer)
    offsets = [body["Responses"][0]["PartitionResponses"][0]["BaseOffset"] for body in found]
    assert offsets == [(5, 0, 5)[ident % 3] for ident in batch.correlation_id.tolist()]


def test_what_cannot_be_read_has_no_body(traffic: Any, tmp_path: Path) -> None:
    batch = batch_of(traffic, tmp_path, [PLAIN, b"\1\2\3"])
    decoded = Decoded(batch)
    bodies = decoded.responses(0)
    fine = [row for row, ident in enumerate(batch.correlation_id.tolist()) if ident % 2 == 0]
    assert bodies.rows.tolist() == fine
    assert len(decoded.requests(0).rows) == len(batch)
    assert bodies.places(decoded.rows(0)).tolist() == [fine.index(row) if row in fine else -1 for row in range(60)]


@pytest.mark.parametrize("count", [1, 3])
def test_few_are_read_too(traffic: Any, tmp_path: Path, count: int) -> None:
    bodies = Decoded(batch_of(traffic, tmp_path, [PLAIN], count)).requests(0)
    assert bodies.columns.fields["Acks"].to_list(bodies.buffer) == [1] * count


def test_each_kind_is_decoded_once(traffic: Any, tmp_path: Path) -> None:
    found = Decoded(batch_of(traffic, tmp_path, [PLAIN]))
    assert found.requests(0) is found.requests(0)
