"""Bodies of a batch, a kind at a time: which exchanges are columns, and which are left."""

from __future__ import annotations

from typing import Any

import pytest
from sinks import Kept

from kwire.session.bulk import Batch
from kwire.session.reading import Reading
from kwire.tables import decoded
from kwire.tables.decoded import Decoded

TAGGED = {"Responses": [{"Name": "t", "PartitionResponses": [{"Index": 0, "CurrentLeader": {"LeaderId": 3}}]}]}
PLAIN = {"Responses": [{"Name": "t", "PartitionResponses": [{"Index": 0, "BaseOffset": 5}]}]}


def batch_of(traffic: Any, answers: list[Any], count: int = 60) -> Batch:
    tcp = traffic.connection()
    asked = {"Acks": 1, "TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": b""}]}]}
    for ident in range(count):
        tcp.send(traffic.request("Produce", 10, asked, ident))
        tcp.answer(traffic.response("Produce", 10, answers[ident % len(answers)], ident))
    sink = Kept()
    list(Reading([traffic.save(traffic.folder / "made.pcap")]).through(sink))
    (batch,) = sink.batches
    return batch


def test_bodies_stand_row_by_row_beside_their_exchanges(traffic: Any) -> None:
    batch = batch_of(traffic, [PLAIN])
    bodies = Decoded(batch).of(0)
    assert bodies.rows.tolist() == list(range(len(batch)))
    assert len(bodies.asked) == len(bodies.answered) == len(batch) > 40
    assert bodies.asked.fields["Acks"].to_list(batch.buffer) == [1] * len(batch)
    assert bodies.left.tolist() == []


def test_tagged_fields_are_left(traffic: Any) -> None:
    batch = batch_of(traffic, [PLAIN, TAGGED, PLAIN])
    bodies = Decoded(batch).of(0)
    tagged = [row for row, ident in enumerate(batch.correlation_id.tolist()) if ident % 3 == 1]
    assert bodies.left.tolist() == tagged
    assert sorted([*bodies.rows.tolist(), *tagged]) == list(range(len(batch)))
    assert len(bodies.asked) == len(bodies.answered) == len(bodies.rows)


def test_each_kind_is_decoded_once(traffic: Any) -> None:
    found = Decoded(batch_of(traffic, [PLAIN]))
    assert found.of(0) is found.of(0)


def test_few_are_left(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded, "FEW", 100)
    batch = batch_of(traffic, [PLAIN])
    bodies = Decoded(batch).of(0)
    assert (len(bodies.rows), len(bodies.asked)) == (0, 0)
    assert bodies.left.tolist() == list(range(len(batch)))
